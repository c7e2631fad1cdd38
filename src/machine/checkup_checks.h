// The checks, by what they look at. Each reads below CheckupInput::files and returns
// one finding; nothing to say is Severity::kOk. For checkup.cc.
#ifndef SLUICE_SRC_MACHINE_CHECKUP_CHECKS_H_
#define SLUICE_SRC_MACHINE_CHECKUP_CHECKS_H_

#include <optional>
#include <string>
#include <vector>

#include "src/machine/checkup.h"

namespace sluice {

using Check = Finding (*)(const CheckupInput&);

// checkup_clock.cc
Finding CheckGovernor(const CheckupInput& in);
Finding CheckBoost(const CheckupInput& in);
Finding CheckClock(const CheckupInput& in);
Finding CheckThermal(const CheckupInput& in);
// checkup_cores.cc
Finding CheckQuota(const CheckupInput& in);
Finding CheckThrottling(const CheckupInput& in);
Finding CheckAffinity(const CheckupInput& in);
Finding CheckSmt(const CheckupInput& in);
Finding CheckCoreKinds(const CheckupInput& in);
Finding CheckLoad(const CheckupInput& in);
Finding CheckSteal(const CheckupInput& in);
// checkup_simd.cc
Finding CheckSimdTarget(const CheckupInput& in);
Finding CheckHiddenIsa(const CheckupInput& in);
// checkup_memory.cc
Finding CheckHugePages(const CheckupInput& in);
Finding CheckPanelPages(const CheckupInput& in);
Finding CheckPanelMemory(const CheckupInput& in);
Finding CheckReservedPages(const CheckupInput& in);
Finding CheckSwap(const CheckupInput& in);
Finding CheckMemory(const CheckupInput& in);
Finding CheckMemoryLimit(const CheckupInput& in);
Finding CheckMemoryPressure(const CheckupInput& in);
Finding CheckOvercommit(const CheckupInput& in);
Finding CheckNumaBalancing(const CheckupInput& in);
Finding CheckNumaPlacement(const CheckupInput& in);
// checkup_limits.cc
Finding CheckLockedMemory(const CheckupInput& in);
Finding CheckOpenFiles(const CheckupInput& in);
Finding CheckMapCount(const CheckupInput& in);
// checkup_storage.cc
Finding CheckModelDisk(const CheckupInput& in);
Finding CheckCacheFolder(const CheckupInput& in);
Finding CheckCacheRoom(const CheckupInput& in);
Finding CheckFirstLoad(const CheckupInput& in);

// ---- What they share (checkup.cc)
// ----------------------------------------------------------------

Finding Ok(const char* check, std::string found);
Finding Note(const char* check, std::string found);
Finding CannotTell(const char* check, const std::string& why);  // a note
Cost Measure(double value, CostUnit unit, std::string how);
Cost Model(double value, CostUnit unit, std::string how);
std::string Printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Size(uint64_t bytes);  // "241 MiB", "25.3 GiB"

// The CPUs below a root.
struct CpuMap {
  std::vector<int> online;              // of the machine
  std::vector<int> allowed;             // to this process; of the online ones
  std::vector<std::vector<int>> cores;  // CPUs of each core that has an allowed one; first first
  size_t machine_cores = 0;
  size_t threads_per_core = 1;
};
Result<CpuMap> ReadCpuMap(const SystemFiles& files);
// Cores that threads may run on: the mask's, or the machine's where that cannot be read, at
// least 1.
double UsableCores(const SystemFiles& files);
// Whether /proc/cpuinfo shows a hypervisor.
bool InVirtualMachine(const SystemFiles& files);
// One flag (x86: "avx512f") of the CPU, as the system shows it.
bool HasCpuFlag(const SystemFiles& files, const std::string& flag);
const Place* FindPlace(const CheckupInput& in, const std::string& what);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_CHECKUP_CHECKS_H_
