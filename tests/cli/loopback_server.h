// A small HTTP server on 127.0.0.1 whose answers a test decides, one connection at a time.
#ifndef SLUICE_TESTS_CLI_LOOPBACK_SERVER_H_
#define SLUICE_TESTS_CLI_LOOPBACK_SERVER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sluice {

struct HttpRequest {
  std::string path;
  std::string head;  // all header lines
  // Value of a header, empty if absent. `name` as curl writes it.
  std::string Header(const std::string& name) const {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const size_t begin = at + 2 + name.size() + 2;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

struct HttpResponse {
  int code = 200;
  std::string headers;  // further lines, each with its \r\n
  std::string body;
  size_t cut = std::string::npos;  // close the connection after this many body bytes
};

class LoopbackServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  explicit LoopbackServer(Handler handler) : handler_(std::move(handler)) {
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    listen(socket_, 16);
    socklen_t size = sizeof(address);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~LoopbackServer() {
    stop_ = true;
    shutdown(socket_, SHUT_RDWR);  // wakes accept
    thread_.join();
    close(socket_);
  }

  std::string url(const std::string& path, const std::string& host = "127.0.0.1") const {
    return "http://" + host + ":" + std::to_string(port_) + path;
  }
  std::vector<HttpRequest> requests() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return requests_;
  }

 private:
  void Serve() {
    while (!stop_) {
      const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) continue;
      Answer(client);
      close(client);
    }
  }

  void Answer(int client) {
    std::string text;
    char buffer[4096];
    while (text.find("\r\n\r\n") == std::string::npos) {
      const ssize_t n = recv(client, buffer, sizeof(buffer), 0);
      if (n <= 0) return;
      text.append(buffer, static_cast<size_t>(n));
    }
    const size_t begin = text.find(' ') + 1;
    const HttpRequest request{text.substr(begin, text.find(' ', begin) - begin), text};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      requests_.push_back(request);
    }
    const HttpResponse response = handler_(request);
    std::string out = "HTTP/1.1 " + std::to_string(response.code) +
                      " X\r\nContent-Length: " + std::to_string(response.body.size()) +
                      "\r\nConnection: close\r\n" + response.headers + "\r\n" +
                      response.body.substr(0, response.cut);
    for (size_t sent = 0; sent < out.size();) {
      const ssize_t n = send(client, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }

  const Handler handler_;
  int socket_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<HttpRequest> requests_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_CLI_LOOPBACK_SERVER_H_
