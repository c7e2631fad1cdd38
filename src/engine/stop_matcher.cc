#include "src/engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace sluice {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, std::string());
}

std::string StopMatcher::Push(std::string_view text) {
  if (stopped_) return "";
  pending_ += text;
  size_t found = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = pending_.find(stop);
    if (at < found) {
      found = at;
      found_ = stop;
    }
  }
  stopped_ = found != std::string::npos;
  const size_t leaves = stopped_ ? found : pending_.size() - HeldBack();
  std::string out = pending_.substr(0, leaves);
  pending_.erase(0, stopped_ ? std::string::npos : leaves);
  return out;
}

std::string StopMatcher::Flush() { return std::exchange(pending_, {}); }

// Length of the longest end of `pending_` that begins a stop string.
size_t StopMatcher::HeldBack() const {
  size_t held = 0;
  for (const std::string& stop : stops_) {
    size_t n = std::min(stop.size() - 1, pending_.size());
    while (n > held && pending_.compare(pending_.size() - n, n, stop, 0, n) != 0) --n;
    held = std::max(held, n);
  }
  return held;
}

}  // namespace sluice
