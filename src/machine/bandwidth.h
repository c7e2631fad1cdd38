// How fast a thread team can read memory: the ceiling of decode, measured on
// the machine, at the moment and with the threads that decode uses. Called by
// the thread that owns the team, while it is idle.
#ifndef SLUICE_SRC_MACHINE_BANDWIDTH_H_
#define SLUICE_SRC_MACHINE_BANDWIDTH_H_

#include <cstddef>
#include <cstdint>

#include "src/base/status.h"
#include "src/machine/thread_team.h"

namespace sluice {

// A buffer so large that the caches do not help a reader who reads it again and again: 4 times the
// L3 caches, 256 MB to 2 GB. Of fewer bytes (a small model's weights) caches hold a part, more or
// less of it as others use a shared cache too: a decode that reads so few is held against the rate
// of as many.
uint64_t MemoryProbeBytes();
// What is read for a decode that reads `bytes` a token (0: memory itself): as many, but no more
// than MemoryProbeBytes, and no less than 16 MiB, of which barriers would be a part of what is
// measured.
uint64_t ReadProbeBytes(uint64_t bytes);

// GB/s (1e9 bytes) of reading a buffer of ReadProbeBytes(bytes), at most 1/8 of the free memory,
// with `threads` workers of the team (0: all; never more than have a CPU). Each reads its share, in
// windows of 20 ms, for about `seconds` in all, filling the buffer (0.03-0.3 s) included, but eight
// windows at least, in turns with and without asking for the lines ahead. The best window counts:
// other programs, a quota and the hypervisor only ever take bandwidth away, and a ceiling is not an
// average; but a few milliseconds in which all was cached are no rate that decode could have.
// Error: not enough free memory for a buffer larger than the caches.
Result<double> MeasureReadBandwidth(ThreadTeam& team, double seconds = 0.3, int threads = 0,
                                    uint64_t bytes = 0);

// The same over memory that exists already: mapped weights, resident. What fits in a cache measures
// the cache.
double MeasureReadBandwidth(ThreadTeam& team, const void* data, size_t bytes, double seconds,
                            int threads = 0);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_BANDWIDTH_H_
