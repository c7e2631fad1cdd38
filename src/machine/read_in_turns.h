// Two maps read in turns by a thread team: which one lies in faster memory or pages.
#ifndef SLUICE_SRC_MACHINE_READ_IN_TURNS_H_
#define SLUICE_SRC_MACHINE_READ_IN_TURNS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/machine/thread_team.h"

namespace sluice {

constexpr size_t kReadWindowBytes = 32 << 20;
constexpr size_t kLeastReadBytes = 4 * kReadWindowBytes;  // fewer do not tell

// Seconds of each window of the two maps, in the order in which they were read.
struct WindowTimes {
  std::vector<double> a_s, b_s;
};
// Reads windows from all over two resident maps, up to 512 MB of each, `passes` times: one of `a`
// after one of `b`, each where the other will not be for a while, so that no cache helps one of
// them only. The first pass also makes the page tables. About 30 ms a pass. Nothing when there are
// too few bytes to tell. Called by the thread that owns the team, while it is
// idle.
WindowTimes ReadInTurns(ThreadTeam& team, std::span<const uint8_t> a, std::span<const uint8_t> b,
                        int passes);

// A number that was measured on this CPU, kernel and number of threads and written to `path`; with
// `this_boot`, since the system was started.
std::optional<double> Recall(const std::string& path, const ThreadTeam& team,
                             bool this_boot = false);
// A path that cannot be written is no error: it is measured again next time.
void Remember(const std::string& path, const ThreadTeam& team, double number,
              bool this_boot = false);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_READ_IN_TURNS_H_
