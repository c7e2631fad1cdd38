// A server on a free loopback port with routes that a test can predict.
#ifndef SLUICE_TESTS_SERVER_RUNNING_SERVER_H_
#define SLUICE_TESTS_SERVER_RUNNING_SERVER_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/server/http_server.h"
#include "tests/server/raw_client.h"

namespace sluice {

// True as soon as it is; false after ten seconds.
inline bool Eventually(const std::function<bool()>& true_now) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!true_now()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline void Sleep(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

class RunningServer {
 public:
  explicit RunningServer(HttpOptions options = {}, std::vector<Route> more = {}) {
    if (options.ports == std::vector<uint16_t>{8080}) options.ports = {0};
    server = std::make_unique<HttpServer>(options, [this](const std::string& line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      lines_.push_back(line);
    });
    started = server->Start(Routes(std::move(more)));
    EXPECT_TRUE(started.ok()) << started.message();
    if (!started.ok() || server->addresses().empty()) return;
    const std::string url = server->addresses()[0];
    if (url.rfind("http", 0) == 0) {
      port = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
    }
  }
  ~RunningServer() { server.reset(); }

  RawClient Client() const { return RawClient(port); }
  RawAnswer Ask(const std::string& request, bool head_only = false) const {
    RawClient client(port);
    return client.Ask(request, head_only);
  }
  RawAnswer Get(const std::string& path, const std::string& headers = "") const {
    return Ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
  }
  bool Healthy() const { return Get("/health").status == 200; }
  std::vector<std::string> lines() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }
  // The first log line that contains `text`, waited for.
  std::string LogWith(const std::string& text) {
    std::string found;
    (void)Eventually([&] {
      for (const std::string& line : lines()) {
        if (line.find(text) != std::string::npos) found = line;
      }
      return !found.empty();
    });
    return found;
  }

  Status started;
  std::unique_ptr<HttpServer> server;
  uint16_t port = 0;
  std::atomic<int> gone{0};  // streams whose client went away

 private:
  static HttpResponse Text(std::string body) {
    HttpResponse response;
    response.content_type = "text/plain";
    response.body = std::move(body);
    return response;
  }

  std::vector<Route> Routes(std::vector<Route> more) {
    std::vector<Route> routes = {
        {"GET", "/health", [](auto x) { x->Respond(Text("ok")); }, Access::kOpen,
         ErrorShape::kOpenAi, true},
        {"GET", "/", [](auto x) { x->Respond(Text("root")); }, Access::kOpen},
        {"POST", "/echo", [](auto x) { x->Respond(Text(x->request().body)); }},
        {"GET", "/get",
         [](auto x) { x->Respond(Text("got " + std::string(x->request().Query("q")))); }},
        {"GET", "/slots/{id}",
         [](auto x) { x->Respond(Text("slot " + x->request().captures[0])); }},
        {"GET", "/slots/all", [](auto x) { x->Respond(Text("all slots")); }},
        {"DELETE", "/api/delete", [](auto x) { x->Respond(Text("deleted")); }, Access::kManage,
         ErrorShape::kOllama},
        {"GET", "/metrics", [](auto x) { x->Respond(Text("metrics")); }, Access::kMetrics},
        {"GET", "/key", [](auto x) { x->Respond(Text(std::to_string(x->request().key))); }},
        {"GET", "/throw", [](auto) { throw std::runtime_error("a \"bad\" day\n\xff"); }},
        {"GET", "/drop", [](auto) {}},
        {"GET", "/stream",
         [](auto x) {
           x->StartStream(200, "text/event-stream", {{"Cache-Control", "no-cache"}});
           for (int i = 0; i < 5; ++i) x->Write("data: " + std::to_string(i) + "\n\n");
           x->End();
         }},
        // Until its client goes away.
        {"GET", "/endless", [this](auto x) { Endless(x); }},
        // Starts nothing; counts when its client goes away.
        {"GET", "/silent", [this](auto x) { x->OnDisconnect([this, x] { ++gone; }); }},
    };
    for (Route& route : more) routes.push_back(std::move(route));
    return routes;
  }

  void Endless(const std::shared_ptr<Exchange>& x) {
    auto over = std::make_shared<std::atomic<bool>>(false);
    x->OnDisconnect([this, over] {
      *over = true;
      ++gone;
    });
    x->StartStream(200, "text/plain");
    while (!*over) {
      x->Write("tick\n");
      Sleep(1);
    }
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

}  // namespace sluice
#endif  // SLUICE_TESTS_SERVER_RUNNING_SERVER_H_
