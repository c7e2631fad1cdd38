// The measurements of `sluice doctor`, each bounded, about a second and a half in all.
// Called by the thread that owns the team, while it is idle.
#ifndef SLUICE_SRC_MACHINE_CHECKUP_PROBES_H_
#define SLUICE_SRC_MACHINE_CHECKUP_PROBES_H_

#include "src/machine/checkup.h"
#include "src/machine/thread_team.h"

namespace sluice {

// Who has the CPUs while this thread sleeps for so many seconds.
IdleWindow WatchIdle(double seconds);

// How much faster the team reads anonymous memory in 2 MB pages than in 4 KB pages. Pages are made
// large also where the setting is "never" (MADV_COLLAPSE, Linux 6.1). nullopt: no large pages to be
// had, or too little free memory.
std::optional<double> MeasureHugePageGain(ThreadTeam& team);

// How much faster the best SIMD target is than the one chosen; leaves the choice as it was.
// nullopt: they are the same.
std::optional<double> MeasureTargetGain(ThreadTeam& team);

// All of them. About 0.4 s of waiting, then about 1 s of all threads. read_bytes: what a model
// reads a token; 0: there is none.
Measured MeasureForCheckup(ThreadTeam& team, uint64_t read_bytes = 0);

// What runs, what could (simd_target.h, CPUID).
SimdFacts ReadSimdFacts();

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_CHECKUP_PROBES_H_
