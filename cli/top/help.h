// What the help of `sluice top` says, line by line; the layout shows as many as fit.
#ifndef SLUICE_CLI_TOP_HELP_H_
#define SLUICE_CLI_TOP_HELP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/top/state.h"

namespace sluice::top {

struct HelpLine {
  std::string name, what;  // both empty: a blank line
};

// Keys, the columns that fit into `width`, and the meters.
std::vector<HelpLine> HelpLines(const View& view, size_t width);

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_HELP_H_
