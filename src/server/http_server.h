// The HTTP/1.1 server: listeners, connections, limits, keys, CORS, the access
// log, draining. Knows routes, not models. Boost.Beast on one I/O thread;
// handlers run on request threads of their own, so that nothing they do keeps a
// stream waiting.
#ifndef SLUICE_SRC_SERVER_HTTP_SERVER_H_
#define SLUICE_SRC_SERVER_HTTP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/server/exchange.h"

namespace sluice {

// Who may call a route: anybody; holders of an API key, if there are keys; the same, but where
// there are none only with --allow-manage; holders of the metrics key or an API key, if there is a
// metrics key.
enum class Access : uint8_t { kOpen, kKey, kManage, kMetrics };
// The shape of the errors that the server itself answers with (401, 404, 413 ...).
enum class ErrorShape : uint8_t { kOpenAi, kOllama };

using Handler = std::function<void(std::shared_ptr<Exchange>)>;

struct Route {
  std::string method;  // "GET" also answers HEAD
  std::string path;    // "/slots/{id}": a segment in braces stands for any one segment
  Handler handler;
  Access access = Access::kKey;
  ErrorShape errors = ErrorShape::kOpenAi;
  bool quick = false;   // runs on the I/O thread: nothing but a few lookups (/health)
  bool polled = false;  // asked again and again by those who watch: only failures are logged
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::vector<uint16_t> ports = {8080};  // 0: one that is free
  std::string unix_path;
  std::vector<std::string> api_keys;
  std::string metrics_key;
  bool allow_manage = false;
  std::string tls_cert, tls_key;  // PEM files, both or none
  std::vector<std::string> cors_origins = {"*"};
  size_t request_threads = 2;

  // Limits. Each has a flag of the same name and counts in HttpCounters.
  size_t max_connections = 2048;
  size_t max_body_bytes = size_t{32} << 20;
  size_t max_header_bytes = 16384;
  size_t max_header_count = 100;
  double header_timeout_s = 10;  // from the first byte of a request to the end of its headers
  double body_timeout_s = 60;    // for the whole body
  double idle_timeout_s = 120;   // between requests
  double write_timeout_s = 30;   // for one send to make progress
  size_t max_write_bytes = size_t{4} << 20;  // waiting for a slow reader
};

// What happened, for /metrics. Any thread.
struct HttpCounters {
  uint64_t connections = 0, open_connections = 0, requests = 0;
  uint64_t refused_connections = 0, body_too_large = 0, headers_too_large = 0, timeouts = 0,
           slow_readers = 0, bad_requests = 0, unauthorized = 0, disconnects = 0;
};

// What clients of OpenAI and of llama-server tell errors apart by: "invalid_request_error".
std::string_view ErrorType(int status);
// {"error": ...} of a status code in the shape given. `param`, `code` may be empty: null.
std::string ErrorBody(ErrorShape shape, int status, std::string_view message,
                      std::string_view param = "", std::string_view code = "");

class HttpServer {
 public:
  // `log`: one line per request, without a newline; null: none. Any thread.
  HttpServer(HttpOptions options, std::function<void(const std::string&)> log);
  ~HttpServer();

  // Binds the ports, looks at the Unix path and reads the certificate, so that what cannot be had
  // is known before long work such as loading a model; connections are refused until Start. kIo: an
  // address that cannot be had, a key that cannot be read.
  Status TakeAddresses();
  // TakeAddresses where that is still to be done, listens and starts the threads.
  Status Start(std::vector<Route> routes);
  // "http://127.0.0.1:8080", "unix:/run/sluice.sock": where it can be reached.
  std::vector<std::string> addresses() const;
  // No new connections or requests; waits until the running ones have ended, at most this long,
  // then closes them. Any thread but the I/O thread.
  void Drain(double seconds);
  HttpCounters counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_HTTP_SERVER_H_
