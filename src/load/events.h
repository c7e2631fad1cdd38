// A streamed body as events: server-sent events (OpenAI, llama-server) or lines of JSON (Ollama),
// cut anywhere on the way. Used after a request has ended; any thread.
#ifndef SLUICE_SRC_LOAD_EVENTS_H_
#define SLUICE_SRC_LOAD_EVENTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "src/load/reply.h"

namespace sluice::load {

enum class Framing { kServerSent, kLines };

struct StreamEvent {
  LoadClock::time_point at;  // when the read that completed it did
  std::string data;
};

// Server-sent events end at a blank line, their data lines are joined by newlines, comments and
// other fields are passed over, lines end with \n, \r\n or \r (WHATWG HTML, 9.2.6).
class EventSplitter {
 public:
  explicit EventSplitter(Framing framing) : framing_(framing) {}
  void Feed(LoadClock::time_point at, std::string_view bytes);
  // The body ended. A last event without its blank line or newline counts.
  void End();
  std::vector<StreamEvent>& events() { return events_; }

 private:
  void OnLine();
  void Dispatch();

  const Framing framing_;
  std::string line_, data_;
  bool has_data_ = false;
  bool after_return_ = false;  // a \n that comes next belongs to the \r before it
  LoadClock::time_point at_{};
  std::vector<StreamEvent> events_;
};

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_EVENTS_H_
