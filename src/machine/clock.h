// The clock that the cores run at now, under the load just before, and the one
// they should. Called by the thread that owns the team, while it is idle.
#ifndef SLUICE_SRC_MACHINE_CLOCK_H_
#define SLUICE_SRC_MACHINE_CLOCK_H_

#include <string>

#include "src/machine/thread_team.h"

namespace sluice {

// GHz, the mean over `threads` workers (0: all) that run at once: each times a chain of additions
// that take one cycle each, in pieces of 20 us for 3 ms, and its fastest piece counts, because
// others only ever take time away. What the system reports (cpufreq) is missing in most virtual
// machines, and is a wish more than a measurement.
double MeasureClockGhz(ThreadTeam& team, int threads = 0);

// The same of the calling thread's core in a few microseconds, between two passes: the best of five
// chains of 1 us, within about 3 %. Any thread.
double GlanceAtClockGhz();

// What the maker promises of every core at once, without boost; 0: the system does not say. Of
// cpufreq (base_frequency), ACPI (nominal_freq), or, on x86 without either, the rate of the time
// stamp counter, which is that clock. `root` is put before every path, for tests.
double NominalClockGhz(const std::string& root = "");

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_CLOCK_H_
