// A server on the loopback that answers by a script: which bytes, how long after the request. One
// thread per connection, so no answer waits for another unless the script makes it.
#ifndef SLUICE_TESTS_LOAD_SCRIPTED_SERVER_H_
#define SLUICE_TESTS_LOAD_SCRIPTED_SERVER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice {

struct ScriptedPart {
  double at_ms;  // after the request was read
  std::string bytes;
};

struct ScriptedAnswer {
  int status = 200;
  std::string type = "text/event-stream";
  std::vector<ScriptedPart> parts;
  bool cut = false;     // the connection ends without the last chunk
  bool close = false;   // after a whole answer, without saying so before
  std::string instead;  // sent as it is, then closed
};

class ScriptedServer {
 public:
  using Script = std::function<ScriptedAnswer(const std::string& path, const std::string& body)>;

  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    (void)listen(socket_, 256);
    socklen_t size = sizeof(address);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~ScriptedServer() {
    shutdown(socket_, SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    }
    ending_.notify_all();
    for (std::thread& t : threads_) t.join();
    close(socket_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  size_t connections() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return threads_.size();
  }
  std::vector<std::string> bodies() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bodies_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void Accept() {
    while (true) {
      const int fd = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      const std::lock_guard<std::mutex> lock(mutex_);
      open_.push_back(fd);
      threads_.emplace_back([this, fd] {
        while (Exchange(fd)) {
        }
        const std::lock_guard<std::mutex> closing(mutex_);
        open_.remove(fd);
        close(fd);
      });
    }
  }

  static bool Send(int fd, const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t n = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }

  // False: the connection is over.
  bool Exchange(int fd) {
    std::string text;
    char buffer[4096];
    size_t head_end = std::string::npos, length = 0;
    while (true) {
      if (head_end == std::string::npos) {
        head_end = text.find("\r\n\r\n");
        const size_t at = text.find("Content-Length: ");
        if (head_end != std::string::npos && at != std::string::npos) {
          length = std::strtoull(text.c_str() + at + 16, nullptr, 10);
        }
      }
      if (head_end != std::string::npos && text.size() >= head_end + 4 + length) break;
      const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
      if (n <= 0) return false;
      text.append(buffer, static_cast<size_t>(n));
    }
    const auto begin = Clock::now();
    const size_t path = text.find(' ') + 1;
    const std::string body = text.substr(head_end + 4, length);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      bodies_.push_back(body);
    }
    const ScriptedAnswer answer = script_(text.substr(path, text.find(' ', path) - path), body);
    if (!answer.instead.empty()) {
      (void)Send(fd, answer.instead);
      return false;
    }
    std::string out = "HTTP/1.1 " + std::to_string(answer.status) +
                      " X\r\nContent-Type: " + answer.type +
                      "\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const ScriptedPart& part : answer.parts) {
      if (part.at_ms > 0 && !out.empty()) {
        if (!Send(fd, std::exchange(out, {}))) return false;
      }
      const auto due = begin + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double, std::milli>(part.at_ms));
      {
        std::unique_lock<std::mutex> lock(mutex_);
        if (ending_.wait_until(lock, due, [this] { return over_; })) return false;
      }
      char size[32];
      snprintf(size, sizeof(size), "%zx\r\n", part.bytes.size());
      out += size + part.bytes + "\r\n";
      if (!Send(fd, std::exchange(out, {}))) return false;
    }
    if (answer.cut) return false;
    return Send(fd, out + "0\r\n\r\n") && !answer.close;
  }

  const Script script_;
  int socket_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool over_ = false;                // guarded by mutex_
  std::list<int> open_;              // guarded by mutex_
  std::list<std::thread> threads_;   // guarded by mutex_; joined at the end
  std::vector<std::string> bodies_;  // guarded by mutex_
  std::thread acceptor_;
};

inline std::string Event(const std::string& json) { return "data: " + json + "\n\n"; }

inline ScriptedAnswer JsonAnswer(const std::string& json, int status = 200) {
  return {status, "application/json", {{0, json}}, false, false, ""};
}

// An OpenAI completion: the first token after first_ms, the others every gap_ms, usage at the end.
inline ScriptedAnswer Completion(double first_ms, double gap_ms, size_t tokens,
                                 size_t prompt_tokens = 7) {
  ScriptedAnswer answer;
  for (size_t i = 0; i < tokens; ++i) {
    answer.parts.push_back(
        {first_ms + gap_ms * static_cast<double>(i),
         Event(R"({"choices":[{"index":0,"text":" a","finish_reason":null}]})")});
  }
  answer.parts.back().bytes +=
      Event(R"({"choices":[{"index":0,"text":"","finish_reason":"length"}]})") +
      Event(R"({"choices":[],"usage":{"prompt_tokens":)" + std::to_string(prompt_tokens) +
            R"(,"completion_tokens":)" + std::to_string(tokens) + "}}") +
      "data: [DONE]\n\n";
  return answer;
}

// The routes that a probe asks, and `answer` for completions of more than one token.
inline ScriptedServer::Script OpenAiScript(std::function<ScriptedAnswer()> answer) {
  return [answer](const std::string& path, const std::string& body) {
    if (path == "/v1/models") return JsonAnswer(R"({"object":"list","data":[{"id":"scripted"}]})");
    if (path != "/v1/completions")
      return JsonAnswer(R"({"error":{"message":"no such route"}})", 404);
    if (body.find("\"max_tokens\":1,") != std::string::npos) return Completion(0, 0, 1);
    return answer();
  };
}

}  // namespace sluice
#endif  // SLUICE_TESTS_LOAD_SCRIPTED_SERVER_H_
