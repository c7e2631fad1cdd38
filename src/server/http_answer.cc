// The sending half of a connection, and the Exchange that handlers answer with.
#include <algorithm>
#include <chrono>
#include <exception>

#include "src/server/http_connection.h"
#include "src/server/http_text.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

bool HasBody(int status) { return status >= 200 && status != 204 && status != 304; }

// The connection decides these.
bool IsFraming(std::string_view name) {
  return EqualNoCase(name, "Connection") || EqualNoCase(name, "Content-Length") ||
         EqualNoCase(name, "Transfer-Encoding");
}

bool IsHeaderName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), IsTokenChar);
}

}  // namespace

bool HttpConnection::IsCurrent(uint64_t number) const {
  return number == number_ && state_ == State::kWorking && !current_.ended;
}

void HttpConnection::Respond(uint64_t number, HttpResponse response) {
  LogLate(number);
  if (!IsCurrent(number) || current_.status != 0) return;
  std::string out = Head(response.status, response.content_type, response.headers);
  if (HasBody(response.status)) {
    AppendHeader("Content-Length", std::to_string(response.body.size()), out);
  }
  out += "\r\n";
  if (HasBody(response.status) && current_.method != "HEAD") out += response.body;
  current_.ended = true;
  Send(std::move(out));
}

void HttpConnection::StartStream(uint64_t number, int status, const std::string& content_type,
                                 const HttpHeaders& headers) {
  if (!IsCurrent(number) || current_.status != 0) return;
  if (!current_.http11) close_after_ = true;  // which is how the client sees the end
  std::string out = Head(status, content_type, headers);
  if (current_.http11) AppendHeader("Transfer-Encoding", "chunked", out);
  out += "\r\n";
  current_.stream = true;
  Send(std::move(out));
}

void HttpConnection::Write(uint64_t number, std::string bytes) {
  if (!IsCurrent(number) || !current_.stream) return;
  if (output_bytes_ > 0 && output_bytes_ + bytes.size() > core_->options.max_write_bytes) {
    return Close(Why::kSlowReader);
  }
  Send(std::move(bytes));
}

void HttpConnection::End(uint64_t number) {
  LogLate(number);
  if (!IsCurrent(number) || !current_.stream) return;
  current_.ended = true;
  if (current_.http11 && current_.method != "HEAD")
    Send("0\r\n\r\n");
  else if (output_.empty())
    NextRequest();
}

void HttpConnection::OnDisconnect(uint64_t number, std::function<void()> f) {
  if (number != number_ || current_.ended) return;
  if (state_ == State::kClosed)
    (void)RunSafely(f, nullptr);
  else
    current_.on_disconnect.push_back(std::move(f));
}

void HttpConnection::SetLog(uint64_t number, RequestLog log) {
  if (number == number_) current_.log = std::move(log);
}

void HttpConnection::Fail(uint64_t number, const std::string& why) {
  LogLate(number);
  if (!IsCurrent(number)) return;
  if (current_.stream) return Close(Why::kServer);
  AnswerError(500, why);
}

void HttpConnection::AnswerEarly() {
  if (current_.early_status != 204) {
    return AnswerError(current_.early_status, current_.early_message, current_.early_headers);
  }
  HttpResponse response;
  response.status = 204;
  response.content_type.clear();
  response.headers = std::move(current_.early_headers);
  Respond(number_, std::move(response));
}

void HttpConnection::AnswerError(int status, std::string_view message, const HttpHeaders& headers) {
  HttpResponse response;
  response.status = status;
  response.headers = headers;
  response.body = ErrorBody(current_.errors, status, message);
  Respond(number_, std::move(response));
}

// Everything up to the framing of the body.
std::string HttpConnection::Head(int status, std::string_view content_type,
                                 const HttpHeaders& headers) {
  current_.status = status;
  if (!current_.keep_alive || core_->draining) close_after_ = true;
  if (current_.id.empty()) current_.id = NewRequestId();
  std::string out = "HTTP/1.1 " + std::to_string(status) + " ";
  out.append(ReasonPhrase(status)).append("\r\n");
  AppendHeader("Server", "sluice", out);
  AppendHeader("Date", HttpDate(std::time(nullptr)), out);
  AppendHeader("X-Request-Id", current_.id, out);
  const std::string origin = core_->router->AllowOrigin(current_.origin);
  if (!origin.empty()) AppendHeader("Access-Control-Allow-Origin", origin, out);
  if (origin != "*") AppendHeader("Vary", "Origin", out);  // caches must not mix up origins
  if (close_after_)
    AppendHeader("Connection", "close", out);
  else if (!current_.http11)
    AppendHeader("Connection", "keep-alive", out);
  if (!content_type.empty() && HasBody(status)) AppendHeader("Content-Type", content_type, out);
  for (const auto& [name, value] : headers) {
    if (IsHeaderName(name) && !IsFraming(name)) AppendHeader(name, value, out);
  }
  return out;
}

void HttpConnection::Send(std::string bytes) {
  output_bytes_ += bytes.size();
  output_.push_back(std::move(bytes));
  if (writing_) return;
  progress_ = Clock::now();
  WatchWrites();
  WriteSome();
}

void HttpConnection::WriteSome() {
  writing_ = true;
  const std::string& first = output_.front();
  AsyncWrite(asio::buffer(first.data() + sent_, first.size() - sent_),
             [self = shared_from_this()](error_code error, size_t bytes) {
               self->OnWritten(error, bytes);
             });
}

void HttpConnection::OnWritten(const error_code& error, size_t bytes) {
  writing_ = false;
  if (state_ == State::kClosed) return;
  if (error) return ClientGone();
  progress_ = Clock::now();
  output_bytes_ -= bytes;
  sent_ += bytes;
  if (sent_ == output_.front().size()) {
    output_.pop_front();
    sent_ = 0;
  }
  if (!output_.empty()) return WriteSome();
  if (state_ == State::kWorking && current_.ended) NextRequest();
}

// One timer for many sends: when it runs out it looks when bytes last went.
void HttpConnection::WatchWrites() {
  if (watching_) return;
  watching_ = true;
  const auto timeout = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::clamp(core_->options.write_timeout_s, 0.001, 1e8)));
  write_timer_.expires_at(progress_ + timeout);
  write_timer_.async_wait([self = shared_from_this(), timeout](error_code error) {
    self->watching_ = false;
    if (error || self->state_ == State::kClosed || self->output_.empty()) return;
    if (Clock::now() - self->progress_ >= timeout) return self->Close(Why::kSlowReader);
    self->WatchWrites();
  });
}

HttpExchange::HttpExchange(std::shared_ptr<HttpConnection> connection, uint64_t number,
                           HttpRequest request, bool http11)
    : connection_(std::move(connection)),
      number_(number),
      chunked_(http11),
      head_only_(request.method == "HEAD") {
  request_ = std::move(request);
}

HttpExchange::~HttpExchange() {
  if (!ended_) Fail("the handler of this request gave no answer");
}

void HttpExchange::Respond(HttpResponse response) {
  ended_ = true;
  connection_->core().Post(
      [c = connection_, n = number_, response = std::move(response)]() mutable {
        c->Respond(n, std::move(response));
      });
}

void HttpExchange::StartStream(int status, std::string content_type, HttpHeaders headers) {
  connection_->core().Post(
      [c = connection_, n = number_, status, type = std::move(content_type),
       headers = std::move(headers)] { c->StartStream(n, status, type, headers); });
}

void HttpExchange::Write(std::string chunk) {
  if (chunk.empty() || head_only_) return;  // an empty chunk would be the end
  if (chunked_) chunk = FrameChunk(chunk);
  connection_->core().Post([c = connection_, n = number_, chunk = std::move(chunk)]() mutable {
    c->Write(n, std::move(chunk));
  });
}

void HttpExchange::End() {
  ended_ = true;
  connection_->core().Post([c = connection_, n = number_] { c->End(n); });
}

void HttpExchange::Post(std::function<void()> f) {
  connection_->core().Post([f = std::move(f)] { (void)RunSafely(f, nullptr); });
}

void HttpExchange::OnDisconnect(std::function<void()> f) {
  connection_->core().Post([c = connection_, n = number_, f = std::move(f)]() mutable {
    c->OnDisconnect(n, std::move(f));
  });
}

void HttpExchange::SetLog(RequestLog log) {
  connection_->core().Post([c = connection_, n = number_, log = std::move(log)]() mutable {
    c->SetLog(n, std::move(log));
  });
}

void HttpExchange::Fail(std::string why) {
  ended_ = true;
  connection_->core().Post(
      [c = connection_, n = number_, why = std::move(why)] { c->Fail(n, why); });
}

bool RunSafely(const std::function<void()>& f, std::string* why) {
  try {
    f();
    return true;
  } catch (const std::exception& e) {
    if (why != nullptr) *why = std::string("the server failed on this request: ") + e.what();
  } catch (...) {
    if (why != nullptr) *why = "the server failed on this request";
  }
  return false;
}

}  // namespace sluice
