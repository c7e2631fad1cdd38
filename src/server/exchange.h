// One HTTP request and the way to answer it. The connection makes it and runs
// on the I/O thread; handlers run on request threads and may answer from any
// thread, at once or much later.
#ifndef SLUICE_SRC_SERVER_EXCHANGE_H_
#define SLUICE_SRC_SERVER_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;   // "GET"
  std::string path;     // decoded, without the query
  HttpHeaders query;    // decoded
  HttpHeaders headers;  // as received
  std::string body;
  std::string remote;                 // address of the client, or "unix"
  std::string request_id;             // X-Request-Id of the client, or one of ours
  int key = -1;                       // which API key let it in; -1: none was needed
  std::vector<std::string> captures;  // what {...} of the route's path stands for

  // Empty if absent; header names in any case.
  std::string_view Header(std::string_view name) const;
  std::string_view Query(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;  // further ones
};

// What the access log says about a request beside its line and status.
struct RequestLog {
  std::string model;
  size_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double queue_s = 0, prefill_s = 0, decode_s = 0;
  double prefill_per_s = 0, decode_per_s = 0;  // tokens
  std::string finish;
  std::string ceilings;  // CeilingLog of it
  std::string diverged;  // "token:text around it" where a kept prompt parted from this one
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  virtual ~Exchange() = default;
  const HttpRequest& request() const { return request_; }

  // Any thread, and in the order called. Exactly one of Respond or (StartStream, Write..., End) is
  // sent; what comes after it, or after the client has gone, is dropped.
  virtual void Respond(HttpResponse response) = 0;
  virtual void StartStream(int status, std::string content_type, HttpHeaders headers = {}) = 0;
  virtual void Write(std::string chunk) = 0;  // one chunk in one send
  virtual void End() = 0;
  // Runs `f` on the I/O thread, after what was posted before.
  virtual void Post(std::function<void()> f) = 0;
  // Once, on the I/O thread, when the client goes away before the end (also at once if it has).
  virtual void OnDisconnect(std::function<void()> f) = 0;
  // For the log line, before the last byte is given. Any thread.
  virtual void SetLog(RequestLog log) = 0;

 protected:
  HttpRequest request_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_EXCHANGE_H_
