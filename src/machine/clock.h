// The clock that the cores run at now, under the load just before. Called by
// the thread that owns the team, while it is idle.
#ifndef SLUICE_SRC_MACHINE_CLOCK_H_
#define SLUICE_SRC_MACHINE_CLOCK_H_

#include "src/machine/thread_team.h"

namespace sluice {

// GHz, the mean over `threads` workers (0: all) that run at once: each times a chain of additions
// that take one cycle each, in pieces of 20 us for 3 ms, and its fastest piece counts, because
// others only ever take time away. What the system reports (cpufreq) is missing in most virtual
// machines, and is a wish more than a measurement.
double MeasureClockGhz(ThreadTeam& team, int threads = 0);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_CLOCK_H_
