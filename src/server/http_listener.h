// Where the server listens: TCP ports, a Unix socket, with or without TLS. Made
// by the thread that starts the server; accepting is the I/O thread's.
#ifndef SLUICE_SRC_SERVER_HTTP_LISTENER_H_
#define SLUICE_SRC_SERVER_HTTP_LISTENER_H_

#include <sys/types.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/server/http_core.h"
#include "src/server/http_server.h"

namespace sluice {

using StreamAcceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

// One bound socket that connections come from.
class HttpListener : public std::enable_shared_from_this<HttpListener> {
 public:
  HttpListener(std::shared_ptr<HttpCore> core, StreamAcceptor acceptor, std::string address)
      : core_(std::move(core)),
        acceptor_(std::move(acceptor)),
        retry_(core_->io),
        address_(std::move(address)) {}
  const std::string& address() const { return address_; }
  // Connections are refused before.
  Status Listen();
  // I/O thread.
  void Accept();
  void Close();

 private:
  void OnAccept(const boost::system::error_code& error,
                boost::asio::generic::stream_protocol::socket socket,
                const boost::asio::generic::stream_protocol::endpoint& peer);

  const std::shared_ptr<HttpCore> core_;
  StreamAcceptor acceptor_;
  boost::asio::steady_timer retry_;
  const std::string address_;
  bool closed_ = false;
};

// Binds the ports that the options name; kIo: what cannot be had, and why.
Result<std::vector<std::shared_ptr<HttpListener>>> BindPorts(const std::shared_ptr<HttpCore>& core);
// Whether the options' Unix socket, if there is one, could be bound now; removes a dead one. kIo.
Status CheckUnixPath(HttpCore& core);
// Binds it. To be followed by Listen at once: until then others take it for dead.
Result<std::shared_ptr<HttpListener>> BindUnix(const std::shared_ptr<HttpCore>& core);

// The file of a Unix socket: goes with this object, unless another server has replaced it.
class UnixSocketFile {
 public:
  ~UnixSocketFile() { Remove(); }
  void Remember(const std::string& path);
  void Remove();

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// TLS 1.2 and later.
Result<boost::asio::ssl::context> LoadTls(const std::string& cert, const std::string& key);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_HTTP_LISTENER_H_
