// Stop strings across token borders: text leaves once it cannot be the start of
// a stop string any more; nothing of a stop string ever leaves. One per
// sequence, engine thread.
#ifndef SLUICE_SRC_ENGINE_STOP_MATCHER_H_
#define SLUICE_SRC_ENGINE_STOP_MATCHER_H_

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class StopMatcher {
 public:
  // Empty strings are left out: they would stop everything.
  explicit StopMatcher(std::vector<std::string> stops);

  // Adds text; what may leave now. After a stop string was found, nothing more does.
  std::string Push(std::string_view text);
  // What was held back, at the end of the sequence.
  std::string Flush();
  bool stopped() const { return stopped_; }
  const std::string& found() const { return found_; }  // the stop string; empty: none yet

 private:
  size_t HeldBack() const;

  std::vector<std::string> stops_;
  std::string pending_, found_;
  bool stopped_ = false;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_STOP_MATCHER_H_
