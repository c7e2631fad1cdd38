// The screen of `sluice top` as lines of styled text, for any size: no terminal
// is needed to make or to test it. Pure; any thread.
#ifndef SLUICE_CLI_TOP_LAYOUT_H_
#define SLUICE_CLI_TOP_LAYOUT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/top/controls.h"
#include "cli/top/state.h"
#include "cli/top/text.h"

namespace sluice::top {

inline constexpr size_t kLeastWidth = 40, kLeastHeight = 10;

struct Size {
  size_t width = 80;
  size_t height = 24;  // 0: as many lines as there are, and no keys: for a pipe
  bool utf8 = true;
};

// At most `height` lines of at most `width` columns; fewer where there is nothing to say.
std::vector<Line> Layout(const std::string& url, const TopState& state, const Controls& controls,
                         const Size& size);
// Rows of the table, or of the help, that this size has room for.
size_t PageRows(const TopState& state, const Controls& controls, const Size& size);

// A line each, without colours and blanks at the end.
std::string PlainText(const std::vector<Line>& lines);

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_LAYOUT_H_
