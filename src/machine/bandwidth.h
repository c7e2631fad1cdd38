// How fast a thread team can read memory: the ceiling of decode, measured on
// the machine, at the moment and with the threads that decode uses. Called by
// the thread that owns the team, while it is idle.
#ifndef SLUICE_SRC_MACHINE_BANDWIDTH_H_
#define SLUICE_SRC_MACHINE_BANDWIDTH_H_

#include <cstddef>

#include "src/base/status.h"
#include "src/machine/thread_team.h"

namespace sluice {

// GB/s (1e9 bytes) of reading DRAM with `threads` workers of the team (0: all; never more than have
// a CPU). The buffer is 4
// times the L3 caches, 256 MB to 2 GB, at most 1/8 of the free memory; every one of them reads its
// share, in passes, for about `seconds` in all, filling the buffer (0.03-0.3 s) included, but three
// passes at least. The best pass counts: other programs and the hypervisor only ever take bandwidth
// away, and a ceiling is not an average. Error: not enough free memory for a buffer larger than the
// caches.
Result<double> MeasureReadBandwidth(ThreadTeam& team, double seconds = 0.3, int threads = 0);

// The same over memory that exists already: mapped weights, resident. What fits in a cache measures
// the cache.
double MeasureReadBandwidth(ThreadTeam& team, const void* data, size_t bytes, double seconds,
                            int threads = 0);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_BANDWIDTH_H_
