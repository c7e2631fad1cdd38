// The HTTP client of `sluice load`: many requests at once over kept connections, on one thread. The
// time of every piece of an answer is taken where its read completes, before anything else is done
// with it. Everything here runs in the io_context's handlers.
#ifndef SLUICE_SRC_LOAD_CLIENT_H_
#define SLUICE_SRC_LOAD_CLIENT_H_

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "src/base/status.h"
#include "src/load/reply.h"
#include "src/load/target.h"

namespace sluice::load {

struct ClientOptions {
  std::string api_key;     // sent as a bearer token unless empty
  bool insecure = false;   // takes any certificate
  double timeout_s = 600;  // of one request, from Send to its last byte
};

struct LoadRequest {
  std::string method = "POST", path;  // without the target's prefix
  std::string body;
};

// What became of a request.
struct Reply {
  int status = 0;
  std::string content_type;
  std::vector<StampedBytes> body;
  LoadClock::time_point sent, end;  // Send was called; the last byte came, or it failed
  bool new_connection = false;
  std::string error;   // kind of what went wrong below HTTP's status: "refused", "timeout", ...
  std::string detail;  // in words
  std::string Text() const;  // the body
};

class Client {
 public:
  using OnReply = std::function<void(Reply)>;

  Client(boost::asio::io_context& io, Target target, ClientOptions options);
  ~Client();

  // Looks the host up. Error: it has no address; certificates cannot be read.
  Status Resolve();
  // Over an idle connection, or a new one. A connection that the server had closed while it was
  // idle is replaced once. `done` is called once, from the io_context, also for failures.
  void Send(const LoadRequest& request, OnReply done);
  // Sends, and runs the io_context until the answer is there.
  Reply Ask(const LoadRequest& request);
  // Ends everything that runs; their replies have the error "interrupted".
  void CancelAll();

  size_t running() const { return running_.size(); }
  size_t connections() const { return connections_; }  // opened so far
  const Target& target() const { return target_; }

 private:
  class Connection;
  class Exchange;
  std::unique_ptr<Connection> TakeIdle();

  boost::asio::io_context& io_;
  const Target target_;
  const ClientOptions options_;
  std::vector<boost::asio::generic::stream_protocol::endpoint> endpoints_;
  std::optional<boost::asio::ssl::context> tls_;
  std::vector<std::unique_ptr<Connection>> idle_;  // the last one is taken first
  std::unordered_set<Exchange*> running_;
  size_t connections_ = 0;
};

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_CLIENT_H_
