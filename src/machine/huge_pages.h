// Whether 2 MB pages pay on this machine: they save TLB misses on most CPUs and
// have lost on some. Called at load by the thread that owns the team, while it
// is idle.
#ifndef SLUICE_SRC_MACHINE_HUGE_PAGES_H_
#define SLUICE_SRC_MACHINE_HUGE_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/machine/thread_team.h"

namespace sluice {

// How much faster the team reads `huge` than `small`, two maps of the same resident bytes: 1.1 is
// 10 %. Windows of the two are read in turn, each where the other will not be for a while, so that
// no cache helps; the best window of each counts. About 60 ms for 512 MB. 1 when there are too few
// bytes to tell.
double HugePageGain(ThreadTeam& team, const uint8_t* small, const uint8_t* huge, size_t bytes);

// The gain that was measured on this CPU, kernel and number of threads and written to `path`.
std::optional<double> RecallHugePageGain(const std::string& path, const ThreadTeam& team);
// A path that cannot be written is no error: it is measured again next time.
void RememberHugePageGain(const std::string& path, const ThreadTeam& team, double gain);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_HUGE_PAGES_H_
