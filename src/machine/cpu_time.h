// Who had the CPUs this process may use: itself, other programs, the
// hypervisor; and whether the control group's quota stopped it. Two readings
// around a measurement tell whether its numbers mean anything. Any thread; a
// reading costs about 50 us.
#ifndef SLUICE_SRC_MACHINE_CPU_TIME_H_
#define SLUICE_SRC_MACHINE_CPU_TIME_H_

#include <cstdint>
#include <string>

namespace sluice {

// Sums since the start of the machine or of the process; what the system does not tell is 0.
struct CpuTime {
  double busy_s = 0;       // of the allowed CPUs, by any program, in steps of 10 ms
  double steal_s = 0;      // of the allowed CPUs, taken by the hypervisor
  double own_s = 0;        // by this process
  uint64_t throttled = 0;  // periods in which a quota of the control groups stopped it
};

// `root` is put before every path read (/proc/stat, the control groups), for tests.
CpuTime ReadCpuTime(const std::string& root = "");

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_CPU_TIME_H_
