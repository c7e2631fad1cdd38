// Whether 2 MB pages pay on this machine: they save TLB misses on most CPUs and
// have lost on some. Called at load by the thread that owns the team, while it
// is idle.
#ifndef SLUICE_SRC_MACHINE_HUGE_PAGES_H_
#define SLUICE_SRC_MACHINE_HUGE_PAGES_H_

#include <cstdint>
#include <span>

#include "src/machine/thread_team.h"

namespace sluice {

// How much faster the team reads `huge` than `small`, two maps of the same resident bytes: 1.1 is
// 10 %. The best window of each counts (read_in_turns.h). About 60 ms for 512 MB. 1 when there are
// too few bytes to tell.
double HugePageGain(ThreadTeam& team, std::span<const uint8_t> small,
                    std::span<const uint8_t> huge);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_HUGE_PAGES_H_
