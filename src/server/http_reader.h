// Bytes of a connection in, one request out. Stricter than it must be where
// servers and proxies have disagreed about where a request ends (two lengths,
// folded or bare line ends): such requests are refused. One reader per request;
// the connection's, on the I/O thread.
#ifndef SLUICE_SRC_SERVER_HTTP_READER_H_
#define SLUICE_SRC_SERVER_HTTP_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/server/exchange.h"

namespace sluice {

struct ReadLimits {
  size_t head_bytes = 0;    // of the request line and the headers
  size_t header_count = 0;  // lines
  size_t body_bytes = 0;
};

struct RequestHead {
  std::string method, target;
  HttpHeaders headers;
  bool http11 = true;
  bool keep_alive = true;
  bool expect_continue = false;
  bool has_body = false;
};

class HttpReader {
 public:
  explicit HttpReader(const ReadLimits& limits) : limits_(limits) {}

  enum class Step { kNeedMore, kHead, kDone, kError };
  // Reads on in `input`, which starts with what the last call has not used. kHead once, when the
  // head is complete; then kDone (at once where there is no body). *used bytes are done with.
  Step Next(std::string_view input, size_t* used);

  bool started() const { return started_; }  // a byte of the request has come
  const RequestHead& head() const { return head_; }
  RequestHead& head() { return head_; }
  std::string TakeBody() { return std::move(body_); }
  // The answer is known already: what is still to come of the body is only counted.
  void DiscardBody() { discard_ = true; }

  // After kError: what to answer.
  int error_status() const { return error_status_; }
  const std::string& error() const { return error_; }

 private:
  enum class State {
    kHead,
    kBodyStart,
    kLength,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kDone,
    kFailed
  };

  Step Fail(int status, std::string message);
  Step ReadHead(std::string_view input, size_t* used);
  Step ScanHead(std::string_view input);
  Step CheckRequestLine(std::string_view line);
  Step ParseHead(std::string_view text);
  Step ReadBody(std::string_view input, size_t* used);
  bool ReadChunkSize(std::string_view line);
  // The line at the start of `input` without its end, and how long it is with it (0: incomplete).
  size_t TakeLine(std::string_view input, size_t limit, std::string_view* line);
  size_t TakeData(std::string_view input);

  const ReadLimits limits_;
  State state_ = State::kHead;
  bool started_ = false;
  RequestHead head_;
  // The scan of the head so far: offsets into the input, which stays in place until it is whole.
  size_t scanned_ = 0, line_begin_ = 0, head_begin_ = 0, head_end_ = 0, lines_ = 0;
  uint64_t content_length_ = 0;
  bool chunked_ = false;
  uint64_t left_ = 0;   // of the body or the chunk
  uint64_t total_ = 0;  // bytes of a chunked body so far
  size_t trailer_bytes_ = 0;
  bool discard_ = false;
  std::string body_;
  int error_status_ = 0;
  std::string error_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_HTTP_READER_H_
