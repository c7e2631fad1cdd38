// The upper part of the screen: how near the machine is to its limits, what it
// waits for, and what memory holds. Pure; any thread.
#ifndef SLUICE_CLI_TOP_METERS_H_
#define SLUICE_CLI_TOP_METERS_H_

#include <cstddef>
#include <vector>

#include "cli/top/state.h"
#include "cli/top/text.h"

namespace sluice::top {

// What the server says of itself, a line each and at most `most` of them: ceilings first. `history`
// lets the speed of the last minutes in.
std::vector<Line> Meters(const TopState& state, size_t width, size_t most, bool utf8, bool history);

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_METERS_H_
