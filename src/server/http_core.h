// What the server, its listeners and its connections share. Lives as long as
// the last of them or the last exchange that somebody still holds, so that
// answering after the server has gone is safe (and does nothing).
#ifndef SLUICE_SRC_SERVER_HTTP_CORE_H_
#define SLUICE_SRC_SERVER_HTTP_CORE_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/server/http_router.h"
#include "src/server/http_server.h"

namespace sluice {

class HttpConnection;

class HttpCore {
 public:
  HttpCore(HttpOptions http_options, std::function<void(const std::string&)> log_line)
      : options(std::move(http_options)), log(std::move(log_line)) {}

  // Runs `f` on the I/O thread after what was posted before; drops it once the thread has ended.
  template <class F>
  void Post(F f) {
    {
      const std::lock_guard<std::mutex> lock(post_mutex_);
      if (!ended_) {
        boost::asio::post(io, std::move(f));
        return;
      }
    }
    // `f` goes here, outside the lock: what it holds may post when it is destroyed.
  }
  void EndPosts() {
    const std::lock_guard<std::mutex> lock(post_mutex_);
    ended_ = true;
  }

  // A connection is busy until it has nothing more to say; Drain waits for those.
  void AddBusy();
  void RemoveBusy();
  void SetDraining();  // I/O thread
  // False: after `seconds` there still are busy ones.
  bool WaitUntilQuiet(double seconds);

  const HttpOptions options;
  std::optional<HttpRouter> router;  // from Start on
  const std::function<void(const std::string&)> log;

  boost::asio::io_context io{1};

  // The I/O thread's.
  std::optional<boost::asio::ssl::context> tls;
  boost::asio::thread_pool* pool = nullptr;  // the server's; joined before the I/O thread ends
  std::unordered_set<HttpConnection*> connections;
  bool draining = false;

  struct Counters {
    std::atomic<uint64_t> connections{0}, open_connections{0}, requests{0}, refused_connections{0},
        body_too_large{0}, headers_too_large{0}, timeouts{0}, slow_readers{0}, bad_requests{0},
        unauthorized{0}, disconnects{0};
  } counters;

 private:
  std::mutex post_mutex_;
  bool ended_ = false;  // guarded by post_mutex_
  std::mutex busy_mutex_;
  std::condition_variable quiet_;
  size_t busy_ = 0;             // guarded by busy_mutex_
  bool drain_started_ = false;  // guarded by busy_mutex_
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_HTTP_CORE_H_
