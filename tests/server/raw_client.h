// A client that sends the bytes it is told to and shows the bytes that come back, each wait
// bounded.
#ifndef SLUICE_TESTS_SERVER_RAW_CLIENT_H_
#define SLUICE_TESTS_SERVER_RAW_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

struct RawAnswer {
  int status = 0;  // 0: the connection ended before an answer
  std::string head, body;
  bool whole = false;  // the body came to its end
  // Value of a header as the server writes its name; empty if absent.
  std::string Header(const std::string& name) const {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

class RawClient {
 public:
  explicit RawClient(uint16_t port, bool v6 = false, int receive_bytes = 0) {
    fd_ = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    in6.sin6_addr = in6addr_loopback;
    connected_ = v6 ? connect(fd_, reinterpret_cast<sockaddr*>(&in6), sizeof(in6)) == 0
                    : connect(fd_, reinterpret_cast<sockaddr*>(&in), sizeof(in)) == 0;
  }
  explicit RawClient(const std::string& unix_path) {
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, unix_path.c_str(), sizeof(address.sun_path) - 1);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        connected_(other.connected_),
        received_(std::move(other.received_)) {}
  ~RawClient() { Close(); }

  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Reset() {  // RST instead of FIN
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    Close();
  }
  void HalfClose() { shutdown(fd_, SHUT_WR); }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // One recv, after at most this long; empty: nothing came, or the end did (then ended()).
  std::string Receive(int timeout_ms = 10000) {
    if (!received_.empty()) return std::exchange(received_, "");
    pollfd wait{fd_, POLLIN, 0};
    if (poll(&wait, 1, timeout_ms) <= 0) return "";
    char buffer[65536];
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
    if (n <= 0) ended_ = true;
    return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
  }
  bool ended() const { return ended_; }
  std::string ReceiveAll(int timeout_ms = 10000) {
    std::string all;
    while (!ended_) {
      const std::string more = Receive(timeout_ms);
      if (more.empty()) break;
      all += more;
    }
    return all;
  }

  // The next answer. `head_only`: to a HEAD request.
  RawAnswer Answer(bool head_only = false, int timeout_ms = 10000) {
    RawAnswer answer;
    size_t end;
    std::string text;
    while ((end = text.find("\r\n\r\n")) == std::string::npos) {
      const std::string more = Receive(timeout_ms);
      if (more.empty()) return answer;
      text += more;
    }
    answer.head = text.substr(0, end + 2);
    answer.status = std::atoi(answer.head.substr(9, 3).c_str());
    received_ = text.substr(end + 4);
    if (head_only || answer.status == 204 || answer.status == 304 || answer.status == 100) {
      answer.whole = true;
    } else if (answer.Header("Transfer-Encoding") == "chunked") {
      ReadChunks(answer, timeout_ms);
    } else if (!answer.Header("Content-Length").empty()) {
      answer.whole = Take(std::stoul(answer.Header("Content-Length")), answer.body, timeout_ms);
    } else {
      answer.body = ReceiveAll(timeout_ms);
      answer.whole = ended_;
    }
    return answer;
  }
  RawAnswer Ask(std::string_view request, bool head_only = false) {
    if (!Send(request)) return RawAnswer();
    return Answer(head_only);
  }

 private:
  bool Take(size_t bytes, std::string& out, int timeout_ms) {
    while (received_.size() < bytes) {
      const std::string had = std::exchange(received_, "");
      const std::string more = Receive(timeout_ms);
      received_ = had + more;
      if (more.empty()) break;
    }
    const size_t n = std::min(bytes, received_.size());
    out += received_.substr(0, n);
    received_.erase(0, n);
    return n == bytes;
  }
  void ReadChunks(RawAnswer& answer, int timeout_ms) {
    while (true) {
      std::string line;
      while (line.size() < 2 || line.substr(line.size() - 2) != "\r\n") {
        if (!Take(1, line, timeout_ms)) return;
      }
      const size_t size = std::strtoul(line.c_str(), nullptr, 16);
      std::string end;
      if (!Take(size, answer.body, timeout_ms) || !Take(2, end, timeout_ms)) return;
      if (size == 0) {
        answer.whole = true;
        return;
      }
    }
  }

  int fd_ = -1;
  bool connected_ = false, ended_ = false;
  std::string received_;  // and not asked for yet
};

}  // namespace sluice
#endif  // SLUICE_TESTS_SERVER_RAW_CLIENT_H_
