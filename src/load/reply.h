// One HTTP answer as it arrives: bytes go in with the time they were read at, the body comes out,
// unframed, with these times. Used by the client; one thread.
#ifndef SLUICE_SRC_LOAD_REPLY_H_
#define SLUICE_SRC_LOAD_REPLY_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::load {

using LoadClock = std::chrono::steady_clock;

struct StampedBytes {
  LoadClock::time_point at;
  std::string bytes;
};

class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();

  // Bytes after the end of the answer are an error. Interim answers (100 to 199) are passed over.
  void Feed(LoadClock::time_point at, std::string_view bytes);
  // The connection ended: an answer without a length is whole, any other was cut off.
  void FeedEnd();

  bool done() const;                                   // whole
  const std::string& error() const { return error_; }  // why it can never be; empty: it can
  bool began() const { return began_; }                // a byte has come
  bool keep_alive() const;  // when done: the connection may be used again
  int status() const;       // 0: its head is not whole yet
  const std::string& content_type() const;
  std::vector<StampedBytes>& body();

 private:
  class Parser;
  void Parse(LoadClock::time_point at);

  std::unique_ptr<Parser> parser_;
  std::string pending_;  // read, and not yet a whole line
  std::string error_;
  bool began_ = false;
};

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_REPLY_H_
