// One connection: reads requests, hands each to its route, sends the answer,
// and notices when the client goes away. Everything here happens on the I/O
// thread; the Exchange that a handler gets posts its calls to it.
#ifndef SLUICE_SRC_SERVER_HTTP_CONNECTION_H_
#define SLUICE_SRC_SERVER_HTTP_CONNECTION_H_

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/server/exchange.h"
#include "src/server/http_core.h"
#include "src/server/http_reader.h"

namespace sluice {

// TCP and Unix sockets alike.
using StreamSocket = boost::asio::generic::stream_protocol::socket;

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // `secure`: speaks TLS, for which the core has the certificate.
  HttpConnection(std::shared_ptr<HttpCore> core, StreamSocket socket, std::string remote,
                 bool secure);
  ~HttpConnection();

  void Start();
  void Refuse();       // too many connections: says so and closes
  void CloseIfIdle();  // no request has begun
  void Cut();          // the server ends

  // The answer to request `number`, as an Exchange calls it; dropped if that is over.
  void Respond(uint64_t number, HttpResponse response);
  void StartStream(uint64_t number, int status, const std::string& content_type,
                   const HttpHeaders& headers);
  void Write(uint64_t number, std::string bytes);  // framed already
  void End(uint64_t number);
  void OnDisconnect(uint64_t number, std::function<void()> f);
  void SetLog(uint64_t number, RequestLog log);
  // Its handler threw, or dropped it: 500, or an end that the client cannot take for a whole
  // stream.
  void Fail(uint64_t number, const std::string& why);

  HttpCore& core() { return *core_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class State {
    kHandshake,
    kReading,  // waits for a request (idle until its first byte) or is within one
    kWorking,  // a handler or the sending of its answer
    kLinger,   // all is said; waits for the client to close
    kClosed
  };
  enum class Why { kClient, kSlowReader, kServer, kIdle };

  // What is known of the request being read or answered.
  struct Current {
    Clock::time_point begin;
    bool counted = false;  // its head has been read
    std::string method = "-", target = "-", id, origin;
    bool http11 = true, keep_alive = true;
    HttpRequest request;
    const Route* route = nullptr;
    ErrorShape errors = ErrorShape::kOpenAi;
    int early_status = 0;  // answered without a handler
    std::string early_message;
    HttpHeaders early_headers;

    int status = 0;  // of the answer: 0 until it starts
    bool stream = false, ended = false;
    std::vector<std::function<void()>> on_disconnect;
    RequestLog log;
    bool logged = false;
    Clock::time_point end;
    std::string_view ending;  // why it ended before its time
  };

  // http_connection.cc: reading
  void OnHandshake(const boost::system::error_code& error);
  void Read();
  void OnRead(const boost::system::error_code& error, size_t bytes);
  void Process();
  void BeginRequest();
  void OnHead();
  void OnRequest();
  void OnBadRequest();
  void Preflight(const std::string& allow);
  void CheckHead();
  void RefuseEarly(int status, std::string message);
  void Dispatch();

  // http_connection.cc: the end of things
  void SetDeadline(double seconds);
  void OnDeadline();
  void ClientGone();
  void Close(Why why);
  void Linger();
  void NextRequest();
  void Log();
  void LogLate(uint64_t number);

  // http_answer.cc: writing
  bool IsCurrent(uint64_t number) const;
  void AnswerEarly();
  void AnswerError(int status, std::string_view message, const HttpHeaders& headers = {});
  std::string Head(int status, std::string_view content_type, const HttpHeaders& headers);
  void Send(std::string bytes);
  void WriteSome();
  void OnWritten(const boost::system::error_code& error, size_t bytes);
  void WatchWrites();

  template <class Buffers, class F>
  void AsyncRead(const Buffers& buffers, F f) {
    if (tls_)
      tls_->async_read_some(buffers, std::move(f));
    else
      socket_.async_read_some(buffers, std::move(f));
  }
  template <class Buffers, class F>
  void AsyncWrite(const Buffers& buffers, F f) {
    if (tls_)
      tls_->async_write_some(buffers, std::move(f));
    else
      socket_.async_write_some(buffers, std::move(f));
  }

  const std::shared_ptr<HttpCore> core_;  // first: what follows needs its io_context to the end
  StreamSocket socket_;
  std::optional<boost::asio::ssl::stream<StreamSocket&>> tls_;
  const std::string remote_;
  const bool secure_;
  State state_ = State::kHandshake;
  bool busy_ = false;

  boost::asio::steady_timer deadline_;  // of the handshake, the head, the body, idleness, lingering
  uint64_t deadline_number_ = 0;        // of the latest one set

  std::array<char, 16384> chunk_;
  bool reading_ = false;
  std::string input_;  // read and not used yet
  std::optional<HttpReader> reader_;

  uint64_t number_ = 0;  // of the request
  Current current_;
  bool close_after_ = false;  // this answer is the last
  bool client_ended_ = false;
  Clock::time_point linger_until_;

  std::deque<std::string> output_;
  size_t output_bytes_ = 0;  // waiting, with what is left of the first
  size_t sent_ = 0;          // of the first
  bool writing_ = false;
  boost::asio::steady_timer write_timer_;
  bool watching_ = false;
  Clock::time_point progress_;  // when bytes last went, or began to wait
};

// The Exchange of a request on a connection.
class HttpExchange : public Exchange {
 public:
  HttpExchange(std::shared_ptr<HttpConnection> connection, uint64_t number, HttpRequest request,
               bool http11);
  ~HttpExchange() override;

  void Respond(HttpResponse response) override;
  void StartStream(int status, std::string content_type, HttpHeaders headers) override;
  void Write(std::string chunk) override;
  void End() override;
  void Post(std::function<void()> f) override;
  void OnDisconnect(std::function<void()> f) override;
  void SetLog(RequestLog log) override;
  void Fail(std::string why);

 private:
  const std::shared_ptr<HttpConnection> connection_;
  const uint64_t number_;
  const bool chunked_, head_only_;
  std::atomic<bool> ended_{false};
};

// Runs what a route or a model gave us; false: it threw, and *why says what.
bool RunSafely(const std::function<void()>& f, std::string* why);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_HTTP_CONNECTION_H_
