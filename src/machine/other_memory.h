// Not all memory of a virtual machine is of one kind: its host may hold a part in small pages or on
// another node, which nothing inside shows but the time it takes to read (a Xeon: 19 to 27 GB/s
// beside 35). Called at load by the thread that owns the team, while it is idle.
#ifndef SLUICE_SRC_MACHINE_OTHER_MEMORY_H_
#define SLUICE_SRC_MACHINE_OTHER_MEMORY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/machine/thread_team.h"

namespace sluice {

// Below this share of other memory's rate memory is slow; above it a copy is not worth its place.
constexpr double kSlowMemory = 0.85;

// Whether a hypervisor runs this system; false where that cannot be told.
bool InVirtualMachine();

struct MemoryRates {
  double here_gb_s, other_gb_s;
  bool Slow() const { return here_gb_s < kSlowMemory * other_gb_s; }
};
// How fast the team reads resident memory, and as much (up to 512 MB) that the system gives now:
// in turns, all windows of a second pass. 0.2 s. nullopt: too few bytes or too little memory to
// tell.
std::optional<MemoryRates> CompareMemory(ThreadTeam& team, std::span<const uint8_t> memory);

// The rates of slow memory. `path` keeps the best rate of other memory of this boot, and what reads
// about as fast (30 ms) is not compared. nullopt: too few bytes or too little memory to tell, or
// not slow.
std::optional<MemoryRates> FindSlowMemory(ThreadTeam& team, std::span<const uint8_t> memory,
                                          const std::string& path);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_OTHER_MEMORY_H_
