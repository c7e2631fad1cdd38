#include "src/load/reply.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

namespace sluice::load {

namespace http = boost::beast::http;
using boost::system::error_code;
using View = boost::beast::string_view;

constexpr uint32_t kMostHeadBytes = 64 << 10;

// Beast's parser gives the body piece by piece, chunks undone.
class ReplyReader::Parser : public http::basic_parser<false> {
 public:
  Parser() {
    eager(true);
    header_limit(kMostHeadBytes);
    body_limit(boost::none);
  }

  LoadClock::time_point at{};  // of the bytes that are being parsed
  int status = 0;
  bool head_done = false;
  std::string content_type;
  std::vector<StampedBytes> body;

 private:
  void Keep(View bytes) {
    if (bytes.empty()) return;
    if (!body.empty() && body.back().at == at) {
      body.back().bytes.append(bytes.data(), bytes.size());
    } else {
      body.push_back({at, std::string(bytes)});
    }
  }

  void on_request_impl(http::verb, View, View, int, error_code&) override {}
  void on_response_impl(int code, View, int, error_code&) override { status = code; }
  void on_field_impl(http::field name, View, View value, error_code&) override {
    if (name == http::field::content_type) content_type = std::string(value);
  }
  void on_header_impl(error_code&) override { head_done = true; }
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(View bytes, error_code&) override {
    Keep(bytes);
    return bytes.size();
  }
  void on_chunk_header_impl(uint64_t, View, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, View bytes, error_code&) override {
    Keep(bytes);
    return bytes.size();
  }
  void on_finish_impl(error_code&) override {}
};

ReplyReader::ReplyReader() : parser_(std::make_unique<Parser>()) {}
ReplyReader::~ReplyReader() = default;

void ReplyReader::Feed(LoadClock::time_point at, std::string_view bytes) {
  if (bytes.empty() || !error_.empty()) return;
  began_ = true;
  pending_ += bytes;
  Parse(at);
}

void ReplyReader::Parse(LoadClock::time_point at) {
  while (!pending_.empty() && error_.empty()) {
    if (done()) {
      error_ = "bytes after the end of the answer";
      return;
    }
    parser_->at = at;
    error_code error;
    const size_t used = parser_->put(boost::asio::buffer(pending_), error);
    pending_.erase(0, used);
    if (error && error != http::error::need_more) {
      error_ = "no answer in HTTP: " + error.message();
    } else if (parser_->is_done() && parser_->status < 200) {
      parser_ = std::make_unique<Parser>();
    } else if (error == http::error::need_more || used == 0) {
      return;
    }
  }
}

void ReplyReader::FeedEnd() {
  if (done() || !error_.empty()) return;
  error_code error;
  if (parser_->got_some()) parser_->put_eof(error);
  if (!done()) error_ = "the connection ended in the middle of the answer";
}

bool ReplyReader::done() const { return parser_->is_done(); }
bool ReplyReader::keep_alive() const { return done() && parser_->keep_alive(); }
int ReplyReader::status() const { return parser_->head_done ? parser_->status : 0; }
const std::string& ReplyReader::content_type() const { return parser_->content_type; }
std::vector<StampedBytes>& ReplyReader::body() { return parser_->body; }

}  // namespace sluice::load
