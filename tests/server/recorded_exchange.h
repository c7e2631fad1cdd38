// An exchange without a connection: keeps what is sent, in order, and lets the
// client go away when the test says so.
#ifndef SLUICE_TESTS_SERVER_RECORDED_EXCHANGE_H_
#define SLUICE_TESTS_SERVER_RECORDED_EXCHANGE_H_

#include <boost/json.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/server/exchange.h"

namespace sluice {

class RecordedExchange : public Exchange {
  template <class F>
  auto Locked(const F& f) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return f();
  }

 public:
  explicit RecordedExchange(std::string body = "") { request_.body = std::move(body); }
  HttpRequest& mutable_request() { return request_; }

  void Respond(HttpResponse response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = response.status;
    headers_ = std::move(response.headers);
    type_ = std::move(response.content_type);
    chunks_ = {std::move(response.body)};
    Finish();
  }
  void StartStream(int status, std::string content_type, HttpHeaders headers) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = status;
    type_ = std::move(content_type);
    headers_ = std::move(headers);
  }
  void Write(std::string chunk) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    chunks_.push_back(std::move(chunk));
  }
  void End() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Finish();
  }
  void Post(std::function<void()> f) override { f(); }
  void OnDisconnect(std::function<void()> f) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    on_disconnect_ = std::move(f);
  }
  void SetLog(RequestLog log) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    log_ = std::move(log);
  }

  void Disconnect() {
    std::function<void()> f;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      f = std::move(on_disconnect_);
    }
    if (f) f();
  }
  // False: not within a minute, which is for hangs only.
  bool WaitForEnd() {
    std::unique_lock<std::mutex> lock(mutex_);
    return ended_cv_.wait_for(lock, std::chrono::minutes(1), [&] { return ended_ > 0; });
  }

  int status() const {
    return Locked([&] { return status_; });
  }
  std::string type() const {
    return Locked([&] { return type_; });
  }
  int ended() const {
    return Locked([&] { return ended_; });
  }  // how often
  std::vector<std::string> chunks() const {
    return Locked([&] { return chunks_; });
  }
  std::string header(std::string_view name) const {
    return Locked([&] {
      for (const auto& [key, value] : headers_) {
        if (key == name) return value;
      }
      return std::string();
    });
  }
  // The body of a plain answer.
  boost::json::value json() const {
    const std::vector<std::string> all = chunks();
    return all.size() == 1 ? Parse(all[0]) : nullptr;
  }
  // Of a stream: every chunk without its frame, which must be exactly `before` and `after`.
  std::vector<boost::json::object> lines(std::string_view before, std::string_view after) const {
    std::vector<boost::json::object> lines;
    for (const std::string& chunk : chunks()) {
      std::string_view text = chunk;
      if (!text.starts_with(before) || !text.ends_with(after)) return {};
      text.remove_prefix(before.size());
      text.remove_suffix(after.size());
      const boost::json::value value = Parse(text);
      if (!value.is_object() || text.find('\n') != std::string_view::npos) return {};
      lines.push_back(value.get_object());
    }
    return lines;
  }

 private:
  static boost::json::value Parse(std::string_view text) {
    boost::system::error_code error;
    boost::json::value value = boost::json::parse(text, error);
    return error ? boost::json::value() : value;
  }
  void Finish() {
    ++ended_;
    ended_cv_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable ended_cv_;
  int status_ = 0, ended_ = 0;
  std::string type_;
  HttpHeaders headers_;
  std::vector<std::string> chunks_;
  std::function<void()> on_disconnect_;
  RequestLog log_;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_SERVER_RECORDED_EXCHANGE_H_
