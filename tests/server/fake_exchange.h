// An exchange without a connection: keeps what was answered. Posts run at once, on
// the thread that posts.
#ifndef SLUICE_TESTS_SERVER_FAKE_EXCHANGE_H_
#define SLUICE_TESTS_SERVER_FAKE_EXCHANGE_H_

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "src/server/exchange.h"

namespace sluice {

class FakeExchange : public Exchange {
 public:
  explicit FakeExchange(HttpRequest request = {}) { request_ = std::move(request); }

  void Respond(HttpResponse response) override {
    EXPECT_FALSE(responded || streaming);
    responded = true;
    answer = std::move(response);
    over_.set_value();
  }
  void StartStream(int status, std::string type, HttpHeaders headers) override {
    EXPECT_FALSE(responded || streaming);
    streaming = true;
    answer.status = status;
    answer.content_type = std::move(type);
    answer.headers = std::move(headers);
  }
  void Write(std::string chunk) override {
    EXPECT_TRUE(streaming && !ended);
    writes.push_back(std::move(chunk));
  }
  void End() override {
    EXPECT_TRUE(streaming && !ended);
    ended = true;
    over_.set_value();
  }
  void Post(std::function<void()> f) override { f(); }
  void OnDisconnect(std::function<void()>) override {}
  void SetLog(RequestLog) override {}

  // For the end of an answer that comes from another thread; false: it never came.
  bool Wait() {
    return over_.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  }

  boost::json::value Body() const { return boost::json::parse(answer.body); }
  // The data of every event, each of which must be one write; "[DONE]" as a string.
  std::vector<boost::json::value> Events() const {
    std::vector<boost::json::value> events;
    for (std::string_view write : writes) {
      if (write.starts_with("event: ")) write.remove_prefix(write.find('\n') + 1);
      EXPECT_TRUE(write.starts_with("data: ") && write.ends_with("\n\n")) << write;
      const std::string_view data = write.substr(6, write.size() - 8);
      EXPECT_EQ(data.find('\n'), data.npos);
      events.push_back(data == "[DONE]" ? boost::json::value(data) : boost::json::parse(data));
    }
    return events;
  }

  bool responded = false, streaming = false, ended = false;
  HttpResponse answer;
  std::vector<std::string> writes;

 private:
  std::promise<void> over_;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_SERVER_FAKE_EXCHANGE_H_
