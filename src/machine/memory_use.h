// What this process holds in memory, as the operating system counts it. For
// the closing line, metrics and tests; any thread; a read costs about 20 us.
#ifndef SLUICE_SRC_MACHINE_MEMORY_USE_H_
#define SLUICE_SRC_MACHINE_MEMORY_USE_H_

#include <cstdint>

namespace sluice {

struct MemoryUse {
  uint64_t rss_bytes = 0;        // resident now: anonymous + file + shared
  uint64_t peak_rss_bytes = 0;   // the most it has been
  uint64_t anonymous_bytes = 0;  // heap, stacks, KV pages, repacked weights
  uint64_t file_bytes = 0;       // mapped files (weights in place, code); the kernel may drop them
  uint64_t shared_bytes = 0;     // shared memory
  uint64_t major_faults = 0;     // page faults that read a disk, since the start
};

// Fields that the system does not tell are 0.
MemoryUse ThisProcessMemory();
// Lets peak_rss_bytes start again from what is resident now; without effect where the system does
// not offer it.
void RestartPeakRss();

// Memory that can still be taken without swapping, no more than the control group's limit leaves.
uint64_t AvailableMemoryBytes();

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_MEMORY_USE_H_
