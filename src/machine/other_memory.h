// Not all memory of a virtual machine is of one kind: its host may hold a part in small pages or on
// another node, which nothing inside shows but the time it takes to read (a Xeon: 16 to 23 GB/s
// beside 29 to 35). Called at load by the thread that owns the team, while it is idle.
#ifndef SLUICE_SRC_MACHINE_OTHER_MEMORY_H_
#define SLUICE_SRC_MACHINE_OTHER_MEMORY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/machine/read_in_turns.h"
#include "src/machine/thread_team.h"

namespace sluice {

// Below this share of other memory's rate memory is slow; above it a copy is not worth its place.
constexpr double kSlowMemory = 0.85;

// The most bytes that may be copied out of slow memory: half of what is available, on a virtual
// machine of one node (on several, panels lie on their nodes); elsewhere none.
uint64_t CopyRoomBytes();

struct MemoryRates {
  double here_gb_s, other_gb_s;
  bool Slow() const { return here_gb_s < kSlowMemory * other_gb_s; }
};
// Of the second half of the windows, the middle half of each map's: a moment in which another
// program had a CPU does not count, and a part of each kind of memory does. Not of no windows.
MemoryRates RatesOf(const WindowTimes& times);

// How fast the team reads `memory`, and up to 256 MB that the system gives now, in 2 MB pages where
// `huge` (as `memory` should be, to be compared). 0.1 s, more while `memory` is not resident yet.
// nullopt: too few bytes or too little memory to tell.
std::optional<MemoryRates> CompareMemory(ThreadTeam& team, std::span<const uint8_t> memory,
                                         bool huge);

// The rates, if memory is slower than two samples of other memory (of three at most). `path` keeps
// the rate of other memory, for one number of threads and this boot, and what reads about as fast
// (30 ms) is not compared. nullopt: too few bytes or too little memory to tell, or not slow.
std::optional<MemoryRates> FindSlowMemory(ThreadTeam& team, std::span<const uint8_t> memory,
                                          bool huge, const std::string& path);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_OTHER_MEMORY_H_
