#include "src/server/http_reader.h"

#include <boost/beast/http/basic_parser.hpp>
#include <charconv>

#include "src/server/http_text.h"

namespace sluice {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;

constexpr size_t kMaxChunkLine = 4096;  // size and extensions, which nobody sends

// Takes apart the head of one request; bodies are HttpReader's, which knows how much it may keep.
class HeadParser : public http::basic_parser<true> {
 public:
  explicit HeadParser(RequestHead& head) : head_(head) { skip(true); }

  size_t hosts = 0, lengths = 0, codings = 0;
  std::string length, coding;

 private:
  using View = boost::beast::string_view;
  static std::string Text(View view) { return {view.data(), view.size()}; }

  void on_request_impl(http::verb, View method, View target, int, error_code&) override {
    head_.method = Text(method);
    head_.target = Text(target);
  }
  void on_field_impl(http::field field, View name, View value, error_code&) override {
    head_.headers.emplace_back(Text(name), Text(value));
    if (field == http::field::host) ++hosts;
    if (field == http::field::content_length) ++lengths, length = Text(value);
    if (field == http::field::transfer_encoding) ++codings, coding = Text(value);
    if (field == http::field::expect)
      head_.expect_continue = EqualNoCase(Text(value), "100-continue");
  }
  void on_response_impl(int, View, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(View body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(uint64_t, View, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, View body, error_code&) override { return body.size(); }
  void on_finish_impl(error_code&) override {}

  RequestHead& head_;
};

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

HttpReader::Step HttpReader::Next(std::string_view input, size_t* used) {
  *used = 0;
  switch (state_) {
    case State::kHead:
      return ReadHead(input, used);
    case State::kBodyStart:
      state_ = chunked_ ? State::kChunkSize : left_ > 0 ? State::kLength : State::kDone;
      return ReadBody(input, used);
    case State::kFailed:
      return Step::kError;
    default:
      return ReadBody(input, used);
  }
}

HttpReader::Step HttpReader::Fail(int status, std::string message) {
  state_ = State::kFailed;
  error_status_ = status;
  error_ = std::move(message);
  return Step::kError;
}

HttpReader::Step HttpReader::ReadHead(std::string_view input, size_t* used) {
  const Step step = ScanHead(input);
  if (step != Step::kHead) return step;
  *used = head_end_;
  return ParseHead(input.substr(head_begin_, head_end_ - head_begin_));
}

// Looks at every byte once, as it comes: what can never become a request is refused at once and not
// when the end of the headers fails to come.
HttpReader::Step HttpReader::ScanHead(std::string_view input) {
  for (; scanned_ < input.size(); ++scanned_) {
    const char c = input[scanned_];
    if (scanned_ >= limits_.head_bytes) {
      return Fail(431, "the request line and headers are longer than " +
                           std::to_string(limits_.head_bytes) + " bytes");
    }
    const bool after_return = scanned_ > line_begin_ && input[scanned_ - 1] == '\r';
    if (after_return != (c == '\n')) return Fail(400, "a line does not end in CR LF");
    if (c == '\n') {
      const std::string_view line = input.substr(line_begin_, scanned_ - 1 - line_begin_);
      line_begin_ = scanned_ + 1;
      if (line.empty() && lines_ > 0) {
        head_end_ = line_begin_;
        return Step::kHead;
      }
      if (line.empty()) {  // some clients send one after a body
        head_begin_ = line_begin_;
        continue;
      }
      if (++lines_ == 1 && CheckRequestLine(line) == Step::kError) return Step::kError;
      if (lines_ > limits_.header_count + 1) {
        return Fail(431, "more than " + std::to_string(limits_.header_count) + " headers");
      }
      continue;
    }
    if (c == '\r') continue;
    started_ = true;
    const bool first = scanned_ == line_begin_;
    if (first && !IsTokenChar(c)) {
      return Fail(400, lines_ == 0 ? "this is not an HTTP request" : "a header line has no name");
    }
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) {
      return Fail(400, "a control character in the request line or headers");
    }
  }
  return Step::kNeedMore;
}

HttpReader::Step HttpReader::CheckRequestLine(std::string_view line) {
  const size_t blank = line.rfind(' ');
  const std::string_view version =
      blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
  if (version == "HTTP/1.1") return Step::kHead;
  if (version == "HTTP/1.0") {
    head_.http11 = false;
    return Step::kHead;
  }
  if (version.substr(0, 5) == "HTTP/") return Fail(505, "only HTTP/1.1 and HTTP/1.0 are spoken");
  return Fail(400, "the request line is not METHOD TARGET HTTP/1.1");
}

HttpReader::Step HttpReader::ParseHead(std::string_view text) {
  HeadParser parser(head_);
  parser.header_limit(static_cast<uint32_t>(text.size()));
  error_code error;
  const size_t read = parser.put({text.data(), text.size()}, error);
  if (error || read != text.size() || !parser.is_done()) {
    return Fail(400, "malformed request: " + error.message());
  }
  head_.keep_alive = parser.keep_alive();
  if (parser.hosts > 1) return Fail(400, "more than one Host header");
  if (parser.lengths > 1) return Fail(400, "more than one Content-Length header");
  if (parser.lengths + parser.codings > 1) {
    return Fail(400, "Content-Length and Transfer-Encoding together");
  }
  if (parser.codings == 1) {
    if (!head_.http11 || !EqualNoCase(parser.coding, "chunked")) {
      return Fail(400, "Transfer-Encoding must be chunked, in HTTP/1.1");
    }
    chunked_ = true;
  }
  if (parser.lengths == 1) {
    const char* const end = parser.length.data() + parser.length.size();
    const auto [at, failed] = std::from_chars(parser.length.data(), end, content_length_);
    if (failed != std::errc() || at != end) return Fail(400, "Content-Length is not a number");
  }
  left_ = content_length_;
  head_.has_body = chunked_ || left_ > 0;
  if (left_ > limits_.body_bytes) {
    return Fail(413, "the body has " + std::to_string(left_) + " bytes, more than " +
                         std::to_string(limits_.body_bytes));
  }
  state_ = State::kBodyStart;
  return Step::kHead;
}

HttpReader::Step HttpReader::ReadBody(std::string_view input, size_t* used) {
  while (state_ != State::kDone) {
    const std::string_view rest = input.substr(*used);
    if (state_ == State::kLength || state_ == State::kChunkData) {
      if (rest.empty()) return Step::kNeedMore;
      *used += TakeData(rest);
      if (left_ == 0) state_ = state_ == State::kLength ? State::kDone : State::kChunkEnd;
      continue;
    }
    std::string_view line;
    const size_t size = TakeLine(rest, kMaxChunkLine, &line);
    if (state_ == State::kFailed) return Step::kError;
    if (size == 0) return Step::kNeedMore;
    *used += size;
    if (state_ == State::kChunkEnd) {
      if (!line.empty()) return Fail(400, "a chunk is longer than its size says");
      state_ = State::kChunkSize;
    } else if (state_ == State::kChunkSize) {
      if (!ReadChunkSize(line)) return Step::kError;
    } else if (line.empty()) {
      state_ = State::kDone;  // the end of the trailers, none of which is believed
    } else if ((trailer_bytes_ += size) > limits_.head_bytes) {
      return Fail(431, "the trailers are longer than " + std::to_string(limits_.head_bytes));
    }
  }
  return Step::kDone;
}

bool HttpReader::ReadChunkSize(std::string_view line) {
  const char* const end = line.data() + line.size();
  const auto [at, failed] = std::from_chars(line.data(), end, left_, 16);
  const char* rest = at;
  while (rest != end && IsBlank(*rest)) ++rest;
  if (failed == std::errc::result_out_of_range)
    left_ = ~uint64_t{0};
  else if (failed != std::errc() || (rest != end && *rest != ';')) {
    (void)Fail(400, "a chunk without a size");
    return false;
  }
  if (left_ > limits_.body_bytes - total_) {
    (void)Fail(413, "the body has more than " + std::to_string(limits_.body_bytes) + " bytes");
    return false;
  }
  total_ += left_;
  state_ = left_ == 0 ? State::kTrailer : State::kChunkData;
  return true;
}

size_t HttpReader::TakeLine(std::string_view input, size_t limit, std::string_view* line) {
  const size_t end = input.substr(0, limit).find('\n');
  if (end == std::string_view::npos) {
    if (input.size() >= limit) (void)Fail(400, "a line of a chunked body is too long");
    // What must be an empty line is not waited for when it is not.
    if (state_ == State::kChunkEnd && !input.empty() && input[0] != '\r') {
      (void)Fail(400, "a chunk is longer than its size says");
    }
    return 0;
  }
  if (end == 0 || input[end - 1] != '\r') {
    (void)Fail(400, "a line of a chunked body does not end in CR LF");
    return 0;
  }
  *line = input.substr(0, end - 1);
  for (const char c : *line) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) {
      (void)Fail(400, "a control character in a line of a chunked body");
      return 0;
    }
  }
  return end + 1;
}

size_t HttpReader::TakeData(std::string_view input) {
  const size_t n = static_cast<size_t>(std::min<uint64_t>(left_, input.size()));
  if (!discard_) body_.append(input.substr(0, n));
  left_ -= n;
  return n;
}

}  // namespace sluice
