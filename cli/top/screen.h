// The terminal that `sluice top` draws on: ncurses, opened for the life of one
// object and given back whatever ends the program. One at a time, one thread.
#ifndef SLUICE_CLI_TOP_SCREEN_H_
#define SLUICE_CLI_TOP_SCREEN_H_

#include <memory>
#include <vector>

#include "cli/top/controls.h"
#include "cli/top/layout.h"
#include "src/base/status.h"

namespace sluice::top {

// Whether the locale's characters are UTF-8. The locale was set by the caller.
bool LocaleIsUtf8();

class Screen {
 public:
  // kUnsupported: TERM names no terminal that can be drawn on.
  static Result<std::unique_ptr<Screen>> Open(bool colour);
  ~Screen();

  Size size() const;
  void Draw(const std::vector<Line>& lines);
  // Waits at most so long; Key::kNone: nothing was pressed.
  Key Read(int timeout_ms);

 private:
  explicit Screen(bool colour) : colour_(colour) {}
  const bool colour_;
  void* terminal_ = nullptr;
};

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_SCREEN_H_
