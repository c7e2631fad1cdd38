// What was measured on this machine once and is kept: how read bandwidth and
// arithmetic grow with the threads, how fast each kind of core is, what a
// barrier costs; and the thread counts chosen from that. Kept in machine.json in
// the cache folder under a key of CPU, usable cores, quota and build; measured
// again when the key is not there. Called by the thread that will own the thread
// team, before it has one.
#ifndef SLUICE_SRC_MACHINE_MACHINE_PROFILE_H_
#define SLUICE_SRC_MACHINE_MACHINE_PROFILE_H_

#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/machine/topology.h"

namespace sluice {

struct ThreadRates {
  int threads = 1;
  double read_gb_s = 0;  // from memory
  double gmac_s = 0;     // multiply-accumulates of the 4-bit matrix kernel, in cache
};

struct MachineProfile {
  std::string key;
  std::vector<ThreadRates> rates;  // threads ascending; empty: nothing was measured
  std::vector<double> kind_rates;  // [kinds of cores] speed of one core, of the fastest kind 1
  double barrier_us = 0;           // all threads
  int decode_threads = 1;
  int prefill_threads = 1;
};

// Says which machines may share a profile.
std::string ProfileKey(const Topology& machine);

// Whether measuring can change anything: with one kind of core, and so few that the threads of both
// phases are all of them, it cannot.
bool WorthCalibrating(const Topology& machine);

// The profile without measurements: every usable core in both phases.
MachineProfile DefaultProfile(const Topology& machine);

// decode_threads and prefill_threads from the rates: the fewest that reach 97 % of the best,
// because more of them only add barrier time and heat.
void ChooseThreads(MachineProfile& profile);

// Relative speeds of `threads` workers for ThreadTeam::SetRates; empty when they are the same, or
// when workers are not bound to a core each.
std::vector<double> WorkerRates(const Topology& machine, const MachineProfile& profile,
                                int threads);

// A file holds the profiles of several keys (containers that share a home). kNotFound: no file, or
// not this key in it; kCorrupt: no profile file.
Result<MachineProfile> ReadProfile(const std::string& path, const std::string& key);
// Adds or replaces; the oldest go when there are many. A corrupt file is replaced.
Status WriteProfile(const std::string& path, const MachineProfile& profile);

// About 2 s on many cores, 0.3 s on one; uses them all. An error: other programs had more than
// a twentieth of the CPU time meanwhile, so the result is no property of the machine.
Result<MachineProfile> Calibrate();

// The kept profile, or one measured now and kept. Never an error: what cannot be read is measured,
// what cannot be written is used all the same, what cannot be measured is the default.
MachineProfile ProfileOfThisMachine();

// Measures now and keeps the result (`sluice bench --calibrate`).
Result<MachineProfile> Recalibrate();

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_MACHINE_PROFILE_H_
