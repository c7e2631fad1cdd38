// What the control groups (containers, systemd slices) let this process use:
// CPU time and memory, v1 and v2, the smallest limit on the way from the
// process's own group up to the root. Read when a thread team or a KV pool is
// sized; any thread. A missing or unreadable file means no limit.
#ifndef SLUICE_SRC_MACHINE_QUOTA_H_
#define SLUICE_SRC_MACHINE_QUOTA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

// CPUs worth of time per period, e.g. 1.5; nullopt when unlimited. `root` is put
// before every path read (/proc/self/cgroup, /proc/self/mountinfo, the mounts
// named there), so that tests bring their own tree.
std::optional<double> CpuQuota(const std::string& root = "");

// Periods in which such a limit stopped this process's group (or the worst of its parents), since
// the group was made; 0 where none is counted.
uint64_t CpuThrottledPeriods(const std::string& root = "");

// The share of the group's periods (or of the worst of its parents) in which that happened, 0 to 1.
double CpuThrottledShare(const std::string& root = "");

// How a limit stopped a group's threads.
struct Throttling {
  uint64_t periods = 0;
  double seconds = 0;  // added up over the CPUs that had threads to run
};

// The same from one reading to the next, for whoever asks often: the groups are looked up once, a
// reading costs about 10 us for each. One thread at a time.
class ThrottleMeter {
 public:
  explicit ThrottleMeter(const std::string& root = "");
  // Since the call before (or since this was made), of the group that was stopped longest.
  Throttling Next();

 private:
  struct Group {
    std::string file;  // cpu.stat
    Throttling seen;
  };
  std::vector<Group> groups_;
};

// Bytes; nullopt when unlimited.
std::optional<uint64_t> MemoryLimit(const std::string& root = "");

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_QUOTA_H_
