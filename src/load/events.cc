#include "src/load/events.h"

#include <utility>

namespace sluice::load {

void EventSplitter::Feed(LoadClock::time_point at, std::string_view bytes) {
  at_ = at;
  for (const char c : bytes) {
    const bool second_half = c == '\n' && std::exchange(after_return_, false);
    if (second_half) continue;
    after_return_ = c == '\r';
    if (c == '\n' || c == '\r') {
      OnLine();
    } else {
      line_ += c;
    }
  }
}

void EventSplitter::End() {
  if (!line_.empty()) OnLine();
  Dispatch();
}

void EventSplitter::OnLine() {
  const std::string line = std::exchange(line_, {});
  if (framing_ == Framing::kLines) {
    data_ = line;
    has_data_ = line.find_first_not_of(" \t") != std::string::npos;
    return Dispatch();
  }
  if (line.empty()) return Dispatch();
  if (!line.starts_with("data")) return;
  std::string_view value(line);
  value.remove_prefix(4);
  if (!value.empty() && value[0] != ':') return;  // another field that begins so
  if (!value.empty()) value.remove_prefix(1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

void EventSplitter::Dispatch() {
  if (has_data_) events_.push_back({at_, std::move(data_)});
  data_.clear();
  has_data_ = false;
}

}  // namespace sluice::load
