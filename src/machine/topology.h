// What this machine is: cores, SMT, caches, NUMA nodes, kinds of cores, the
// CPU's name, memory. Read once through hwloc, before the first thread is bound
// to a core; constant afterwards. Used to size and place the thread team, by
// the bandwidth probe and by whoever describes the machine. Any thread.
#ifndef SLUICE_SRC_MACHINE_TOPOLOGY_H_
#define SLUICE_SRC_MACHINE_TOPOLOGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

// A physical core that the affinity mask lets this process use.
struct Core {
  int numa_node = 0;
  int kind = 0;  // 0: the fastest kind of core here; larger is slower
  std::vector<int>
      cpus;  // its allowed logical CPUs, by the operating system's numbers; never empty
};

struct Topology {
  std::string cpu_name;     // "AMD EPYC 9554"; the architecture when the system does not say
  std::vector<Core> cores;  // fastest kind first, else by position; never empty
  int cpus = 1;             // allowed logical CPUs
  int machine_cores = 1;    // all cores of the machine, allowed or not
  int machine_cpus = 1;
  int numa_nodes = 1;
  int core_kinds = 1;      // 2 on a machine with P and E cores
  uint64_t l1d_bytes = 0;  // of one core; 0 unknown
  uint64_t l2_bytes = 0;   // of one core or cluster; 0 unknown
  uint64_t l3_bytes = 0;   // all of them together; 0 unknown
  uint64_t memory_bytes = 0;
  std::optional<double> cpu_quota;       // CPUs, from the control groups
  std::optional<uint64_t> memory_limit;  // bytes, from the control groups

  // One thread per allowed physical core, no more than the quota rounded down, at least 1.
  int DefaultThreads() const;
  // Logical CPUs that threads may keep busy: the mask and the quota rounded down, at least 1.
  int UsableCpus() const;
  // Of so many threads, those that can run at once: the mask, at least 1. A quota does not keep
  // them from it; when they have used it up it stops them all.
  int RunningAtOnce(int threads) const;
  // Of those, as many as the quota, rounded up, lets run all the time.
  int RunningAllTheTime(int threads) const;
  uint64_t LastCacheBytes() const { return l3_bytes > 0 ? l3_bytes : l2_bytes; }  // 0 unknown
  uint64_t UsableMemoryBytes() const;  // the smaller of memory and its limit
};

const Topology& ThisMachine();

// Binds the calling thread to these CPUs (Core::cpus); false when the system refuses, or
// has no memory for the mask.
bool BindThisThread(const std::vector<int>& cpus);
// The same for a thread of this process by the kernel's number, which must be alive.
bool BindThread(int tid, const std::vector<int>& cpus);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_TOPOLOGY_H_
