#include "src/server/http_connection.h"

#include <algorithm>
#include <utility>

#include "src/base/printable.h"
#include "src/server/http_text.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Read ahead of a request that is being answered. Beyond it only a reset shows that the client has
// gone, and it has to wait: nobody who means well sends that much before an answer.
constexpr size_t kMaxReadAhead = 65536;
constexpr double kLingerSeconds = 1;      // without a byte
constexpr double kMaxLingerSeconds = 10;  // with what goes on coming

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(std::clamp(seconds, 0.0, 1e8) * 1e9));
}

// Text from outside as one value of the log line, which blanks separate.
std::string LogValue(std::string_view text, size_t limit) {
  std::string out;
  for (const char c : Printable(text, limit))
    out += c == ' ' ? std::string("\\x20") : std::string(1, c);
  return out;
}

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<HttpCore> core, StreamSocket socket,
                               std::string remote, bool secure)
    : core_(std::move(core)),
      socket_(std::move(socket)),
      remote_(std::move(remote)),
      secure_(secure),
      deadline_(core_->io),
      write_timer_(core_->io) {
  current_.begin = Clock::now();
  core_->connections.insert(this);
  core_->counters.open_connections = core_->connections.size();
  core_->AddBusy();
  busy_ = true;
}

HttpConnection::~HttpConnection() = default;

void HttpConnection::Start() {
  ++core_->counters.connections;
  if (!secure_) {
    BeginRequest();
    Read();
    return;
  }
  tls_.emplace(socket_, *core_->tls);
  SetDeadline(core_->options.header_timeout_s);
  tls_->async_handshake(
      asio::ssl::stream_base::server,
      [self = shared_from_this()](error_code error) { self->OnHandshake(error); });
}

void HttpConnection::Refuse() {
  ++core_->counters.refused_connections;
  // In TLS a refusal would cost a handshake, which is what there is no room for.
  if (secure_) return Close(Why::kServer);
  state_ = State::kWorking;
  Read();
  close_after_ = true;
  AnswerError(503, "all " + std::to_string(core_->options.max_connections) +
                       " connections are in use; try again later");
}

void HttpConnection::OnHandshake(const error_code& error) {
  if (state_ == State::kClosed) return;
  if (error) {
    ++core_->counters.bad_requests;
    return Close(Why::kIdle);
  }
  BeginRequest();
  Read();
}

// One read is pending whenever the connection is open: that is how a client that goes away is
// noticed while a handler works.
void HttpConnection::Read() {
  if (reading_ || state_ == State::kClosed || client_ended_) return;
  if (state_ == State::kWorking && input_.size() >= kMaxReadAhead) return;
  reading_ = true;
  AsyncRead(asio::buffer(chunk_), [self = shared_from_this()](error_code error, size_t bytes) {
    self->OnRead(error, bytes);
  });
}

void HttpConnection::OnRead(const error_code& error, size_t bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) {
    // Its answer is on the way: a client that has only ended its sending side gets the rest.
    if (error == asio::error::eof && state_ == State::kWorking && current_.ended) {
      client_ended_ = close_after_ = true;
      return;
    }
    return ClientGone();
  }
  if (state_ != State::kLinger) {
    input_.append(chunk_.data(), bytes);
    Process();
  } else if (Clock::now() < linger_until_) {
    SetDeadline(kLingerSeconds);
  }
  Read();
}

void HttpConnection::BeginRequest() {
  state_ = State::kReading;
  current_ = Current();
  current_.begin = Clock::now();
  reader_.emplace(ReadLimits{core_->options.max_header_bytes, core_->options.max_header_count,
                             core_->options.max_body_bytes});
  SetDeadline(core_->options.idle_timeout_s);
}

void HttpConnection::Process() {
  while (state_ == State::kReading) {
    if (input_.empty() && !current_.counted) return;
    const bool had_started = reader_->started();
    size_t used = 0;
    const HttpReader::Step step = reader_->Next(input_, &used);
    if (!had_started && reader_->started()) {
      current_.begin = Clock::now();
      SetDeadline(core_->options.header_timeout_s);
    }
    input_.erase(0, used);
    if (step == HttpReader::Step::kNeedMore) return;
    if (step == HttpReader::Step::kHead)
      OnHead();
    else if (step == HttpReader::Step::kDone)
      OnRequest();
    else
      OnBadRequest();
  }
}

void HttpConnection::OnHead() {
  ++core_->counters.requests;
  current_.counted = true;
  RequestHead& head = reader_->head();
  current_.http11 = head.http11;
  current_.keep_alive = head.keep_alive;
  current_.method = head.method;
  current_.request.method = std::move(head.method);
  current_.request.headers = std::move(head.headers);
  current_.request.remote = remote_;
  const std::string_view id = current_.request.Header("X-Request-Id");
  current_.id = IsRequestId(id) ? std::string(id) : NewRequestId();
  current_.request.request_id = current_.id;
  current_.origin = std::string(current_.request.Header("Origin"));
  CheckHead();
  if (!head.has_body) return;
  SetDeadline(core_->options.body_timeout_s);
  const bool expects = head.expect_continue && head.http11;
  if (current_.early_status == 0) {
    if (expects && input_.empty()) Send("HTTP/1.1 100 Continue\r\n\r\n");
    return;
  }
  reader_->DiscardBody();
  if (!expects) return;
  // Nothing has been sent of the body, or all that has is in vain.
  close_after_ = true;
  OnRequest();
}

// What the head decides: where the request goes, or why it goes nowhere.
void HttpConnection::CheckHead() {
  const std::string& text = reader_->head().target;
  auto target = ParseTarget(text);
  current_.target = text.substr(0, text.find('?'));
  if (!target) {
    ++core_->counters.bad_requests;
    return RefuseEarly(400, "the request's target is not a well-formed path");
  }
  HttpRequest& request = current_.request;
  HttpRouter::Match match = core_->router->Find(request.method, target->raw_path);
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  current_.errors = match.errors;
  if (match.route == nullptr && request.method == "OPTIONS") return Preflight(match.allow);
  if (match.allow.empty()) return RefuseEarly(404, "there is no " + Printable(request.path, 200));
  if (match.route == nullptr) {
    current_.early_headers.emplace_back("Allow", match.allow);
    return RefuseEarly(405, Printable(request.path, 200) + " takes " + match.allow + ", not " +
                                Printable(request.method));
  }
  HttpRouter::Admission admission = core_->router->Admit(*match.route, request);
  if (admission.status != 200) {
    ++core_->counters.unauthorized;
    if (admission.status == 401) {
      current_.early_headers.emplace_back("WWW-Authenticate", "Bearer realm=\"sluice\"");
    }
    return RefuseEarly(admission.status, std::move(admission.message));
  }
  current_.route = match.route;
  request.key = admission.key;
  request.captures = std::move(match.captures);
}

// What a browser asks before it lets a page of another origin send a request. Needs no key.
void HttpConnection::Preflight(const std::string& allow) {
  const std::string methods = allow.empty() ? "GET, POST, DELETE, OPTIONS" : allow;
  HttpHeaders& headers = current_.early_headers;
  headers.emplace_back("Allow", methods);
  if (!core_->router->AllowOrigin(current_.origin).empty()) {
    headers.emplace_back("Access-Control-Allow-Methods", methods);
    const std::string_view asked = current_.request.Header("Access-Control-Request-Headers");
    headers.emplace_back("Access-Control-Allow-Headers",
                         asked.empty() ? "Authorization, Content-Type" : std::string(asked));
    headers.emplace_back("Access-Control-Max-Age", "86400");
  }
  current_.early_status = 204;
}

void HttpConnection::RefuseEarly(int status, std::string message) {
  current_.early_status = status;
  current_.early_message = std::move(message);
}

void HttpConnection::OnRequest() {
  SetDeadline(0);
  state_ = State::kWorking;
  if (current_.early_status != 0) return AnswerEarly();
  current_.request.body = reader_->TakeBody();
  Dispatch();
}

void HttpConnection::Dispatch() {
  auto exchange = std::make_shared<HttpExchange>(shared_from_this(), number_,
                                                 std::move(current_.request), current_.http11);
  auto run = [route = current_.route, exchange = std::move(exchange)]() mutable {
    std::string why;
    if (!RunSafely([&] { route->handler(exchange); }, &why)) exchange->Fail(std::move(why));
  };
  if (current_.route->quick)
    run();
  else
    asio::post(*core_->pool, std::move(run));
}

void HttpConnection::OnBadRequest() {
  HttpCore::Counters& counters = core_->counters;
  const int status = reader_->error_status();
  ++(status == 413   ? counters.body_too_large
     : status == 431 ? counters.headers_too_large
                     : counters.bad_requests);
  SetDeadline(0);
  state_ = State::kWorking;
  close_after_ = true;
  if (!current_.counted) {
    // As far as the head can be understood.
    current_.http11 = reader_->head().http11;
    if (!reader_->head().method.empty()) current_.method = reader_->head().method;
    if (!reader_->head().target.empty()) {
      current_.target = reader_->head().target.substr(0, reader_->head().target.find('?'));
      current_.errors = core_->router->Find(current_.method, current_.target).errors;
    }
  }
  AnswerError(status, reader_->error());
}

// 0: none. A deadline that is set again does not run out.
void HttpConnection::SetDeadline(double seconds) {
  const uint64_t number = ++deadline_number_;
  if (seconds <= 0) {
    deadline_.cancel();
    return;
  }
  deadline_.expires_after(Nanoseconds(seconds));
  deadline_.async_wait([self = shared_from_this(), number](error_code error) {
    if (!error && number == self->deadline_number_) self->OnDeadline();
  });
}

void HttpConnection::OnDeadline() {
  if (state_ == State::kClosed) return;
  if (state_ != State::kReading) {
    if (state_ == State::kHandshake) ++core_->counters.timeouts;
    return Close(Why::kIdle);
  }
  if (!reader_->started()) return Close(Why::kIdle);
  ++core_->counters.timeouts;
  state_ = State::kWorking;
  close_after_ = true;
  AnswerError(
      408, current_.counted ? "the body did not come in time" : "the headers did not come in time");
}

// The end of the client's sending side counts as its going away, as with llama-server: it is how a
// closed connection shows, and a client that only half-closes and still reads cannot be told apart.
void HttpConnection::ClientGone() { Close(state_ == State::kWorking ? Why::kClient : Why::kIdle); }

void HttpConnection::CloseIfIdle() {
  const bool idle =
      state_ == State::kHandshake || (state_ == State::kReading && !reader_->started());
  if (idle) Close(Why::kIdle);
}

void HttpConnection::Cut() { Close(Why::kServer); }

void HttpConnection::Close(Why why) {
  if (state_ == State::kClosed) return;
  const bool in_request = state_ == State::kWorking;
  state_ = State::kClosed;
  if (why == Why::kClient) ++core_->counters.disconnects;
  if (why == Why::kSlowReader) ++core_->counters.slow_readers;
  error_code ignored;
  socket_.close(ignored);
  SetDeadline(0);
  write_timer_.cancel();
  core_->connections.erase(this);
  core_->counters.open_connections = core_->connections.size();
  if (busy_) core_->RemoveBusy();
  busy_ = false;
  // Taken out in any case: they may hold the exchange, which holds this connection.
  const auto callbacks = std::exchange(current_.on_disconnect, {});
  if (!in_request) return;
  current_.ending = why == Why::kClient       ? "client_gone"
                    : why == Why::kSlowReader ? "slow_reader"
                                              : "shutdown";
  current_.end = Clock::now();
  // A handler that still works says later how far it came, and is logged then (LogLate).
  if (current_.ended || why == Why::kServer) Log();
  if (current_.ended) return;
  for (const auto& f : callbacks) (void)RunSafely(f, nullptr);
}

// Says goodbye and waits until the client does. Closing at once would reset the connection where
// the client has sent what nobody read, and with it the answer on its way.
void HttpConnection::Linger() {
  state_ = State::kLinger;
  input_.clear();
  if (busy_) core_->RemoveBusy();
  busy_ = false;
  if (client_ended_) return Close(Why::kIdle);
  linger_until_ = Clock::now() + Nanoseconds(kMaxLingerSeconds);
  SetDeadline(kLingerSeconds);
  if (tls_) {
    tls_->async_shutdown([self = shared_from_this()](error_code) { self->Close(Why::kIdle); });
  } else {
    error_code ignored;
    socket_.shutdown(StreamSocket::shutdown_send, ignored);
  }
  Read();
}

// The answer is out.
void HttpConnection::NextRequest() {
  current_.end = Clock::now();
  Log();
  current_.on_disconnect.clear();
  ++number_;
  if (close_after_) return Linger();
  BeginRequest();
  if (core_->draining && input_.empty()) return Close(Why::kIdle);
  Process();
  Read();
}

void HttpConnection::LogLate(uint64_t number) {
  if (state_ == State::kClosed && number == number_) Log();
}

void HttpConnection::Log() {
  if (!core_->log || std::exchange(current_.logged, true)) return;
  const double ms =
      std::chrono::duration<double, std::milli>(current_.end - current_.begin).count();
  // 499: no answer had begun, which no client sees.
  const int status = current_.status == 0 ? 499 : current_.status;
  if (current_.route != nullptr && current_.route->polled && status < 400) return;
  char number[160];
  std::snprintf(number, sizeof(number), " %d %.1fms", status, ms);
  std::string line = LogValue(current_.method, 32) + " " + LogValue(current_.target, 512) + number;
  line += " id=" + (current_.id.empty() ? "-" : current_.id) + " ip=" + remote_;
  if (!current_.ending.empty()) line.append(" ended=").append(current_.ending);
  const RequestLog& log = current_.log;
  if (!log.model.empty()) {
    line += " model=" + LogValue(log.model, 128);
    std::snprintf(number, sizeof(number),
                  " prompt=%zu cached=%zu generated=%zu queue_ms=%.1f prefill_ms=%.1f "
                  "decode_ms=%.1f prefill_tok_s=%.2f decode_tok_s=%.2f",
                  log.prompt_tokens, log.cached_tokens, log.generated_tokens, log.queue_s * 1e3,
                  log.prefill_s * 1e3, log.decode_s * 1e3, log.prefill_per_s, log.decode_per_s);
    line += number;
    line += log.ceilings;
    line += " finish=" + (log.finish.empty() ? "-" : LogValue(log.finish, 32));
    if (!log.diverged.empty()) line += " cache_diverged=" + LogValue(log.diverged, 120);
  }
  (void)RunSafely([&] { core_->log(line); }, nullptr);
}

}  // namespace sluice
