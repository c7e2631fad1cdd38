// Why a team's workers did not run: the time that ThreadTeam::lost_ns counts,
// split into what a quota took, what other threads had, and reads of the disk.
// Asked by the thread that leads the team, after a pass that lost time.
//
// How it is told: the kernel counts for each thread how long it was ready to run
// and had no CPU (/proc/self/task/TID/schedstat, its second number), the control
// group how long a quota stopped it (cpu.stat). Stopped threads count as ready
// too, so the quota's time is taken off that first; from Linux 6.18 on they count
// as stopped once they were picked to run: until then others have the CPU.
// A worker that was neither running nor ready was blocked, and in a region
// nothing blocks but a page fault that waits for the disk: so that time is
// theirs if the process had faults or disk reads meanwhile, and a hypervisor's
// or an interrupt's if it had none. Where schedstat is not kept, all of it is the
// disk's if there were faults.
#ifndef SLUICE_SRC_MACHINE_LOST_TIME_H_
#define SLUICE_SRC_MACHINE_LOST_TIME_H_

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "src/machine/quota.h"

namespace sluice {

// What happened between two readings, added up over the workers.
struct LostEvidence {
  double ready_s = -1;  // had no CPU though ready to run; < 0: the system does not say
  Throttling throttling;
  uint64_t major_faults = 0;  // of the process
  uint64_t disk_reads = 0;    // of the process, in the system's blocks
};

struct LostCauses {
  double throttled_s = 0, preempted_s = 0, page_faults_s = 0;
};

// lost_s in all, whatever the evidence says.
LostCauses SplitLost(double lost_s, const LostEvidence& evidence);

class LostTime {
 public:
  explicit LostTime(const std::string& root = "");
  ~LostTime();
  LostTime(const LostTime&) = delete;
  LostTime& operator=(const LostTime&) = delete;

  // Since the last call, of these threads (ThreadTeam::ThreadIds). 3 us and as much a thread and a
  // control group.
  LostEvidence Next(std::span<const int> threads);

 private:
  struct Thread {
    int file = -1;  // its schedstat, kept open
    uint64_t ready_ns = 0;
  };
  double ReadySeconds(std::span<const int> threads);

  const std::string root_;
  ThrottleMeter throttle_;
  std::unordered_map<int, Thread> threads_;
  uint64_t major_faults_ = 0, disk_reads_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_LOST_TIME_H_
