// Which memory node pages lie on, and how to spread them. With one node nothing
// here does anything. A page is placed when it is first touched, on the node of
// the thread that touches it; so memory that each worker of a pinned team
// fills for itself lies where it is read, and needs no call. Any thread.
#ifndef SLUICE_SRC_MACHINE_NUMA_H_
#define SLUICE_SRC_MACHINE_NUMA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

enum class NumaMode : uint8_t {
  kAuto,        // each worker's rows on its own node
  kOff,         // wherever the system puts them
  kInterleave,  // page by page over all nodes
};

// Spreads the pages of untouched memory over all nodes; false when the system refuses.
bool InterleavePages(void* data, size_t bytes);

// The node that the calling thread runs on; 0 where the system cannot say.
int NodeOfThisThread();

// Bytes of [data, data + bytes) on each node, whole pages; pages that were never touched are on
// none. Empty where the system cannot say.
std::vector<uint64_t> BytesPerNode(const void* data, size_t bytes);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_NUMA_H_
