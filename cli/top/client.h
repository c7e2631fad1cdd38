// Asks a server for what `sluice top` shows, over HTTP, HTTPS or a Unix socket,
// each request with a time limit. One thread at a time.
#ifndef SLUICE_CLI_TOP_CLIENT_H_
#define SLUICE_CLI_TOP_CLIENT_H_

#include <atomic>
#include <memory>
#include <string>

#include "cli/top/state.h"
#include "src/base/status.h"

namespace sluice::top {

struct ClientOptions {
  std::string url;  // http://HOST:PORT, https://..., unix:/PATH; without a scheme http
  std::string api_key;
  bool insecure = false;  // takes any certificate
  double timeout_s = 5;   // of each request
};

class Client {
 public:
  // kInvalidArgument: no such kind of URL.
  static Result<std::unique_ptr<Client>> Create(ClientOptions options);
  ~Client();

  const std::string& url() const { return url_; }
  // /metrics, and /slots of every model that it names. Scrape::error says what went wrong.
  Scrape Look();
  // One line that says what came of it.
  std::string Cancel(const std::string& request_id);
  // Any thread: requests end soon, and so do those that come.
  void Stop() { stop_ = true; }

 private:
  struct Answer {
    int status = 0;  // 0: there is none, and `error` says why
    std::string body, error;
  };
  explicit Client(ClientOptions options) : options_(std::move(options)) {}
  Answer Ask(const char* method, const std::string& path);
  std::string Escaped(const std::string& text) const;

  const ClientOptions options_;
  std::string url_;   // as it is shown
  std::string base_;  // what paths are appended to
  std::string unix_path_;
  void* curl_ = nullptr;
  std::atomic<bool> stop_ = false;
};

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_CLIENT_H_
