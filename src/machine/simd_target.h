// Which SIMD target the kernels run on. main() chooses it before the first
// kernel call, on the main thread; constant afterwards.
#ifndef SLUICE_SRC_MACHINE_SIMD_TARGET_H_
#define SLUICE_SRC_MACHINE_SIMD_TARGET_H_

#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

// Targets that are compiled in and that this CPU has, best first: {"AVX3_ZEN4", "AVX3_DL", "AVX2"}.
std::vector<std::string> UsableSimdTargets();

// The best target of this CPU for which sluice has kernels, compiled into this program or not (the
// release list of cmake/highway.cmake); "none" if it has none of them.
std::string BestSimdTargetOfCpu();

// Makes every later kernel call use this one of UsableSimdTargets(); "" means the best. Error: a
// name that is not among them, or a CPU that has none of them.
Status ChooseSimdTarget(const std::string& name);

// ChooseSimdTarget with the value of the environment variable SLUICE_TARGET.
Status ChooseSimdTargetFromEnvironment();

// The one that runs now; "none" if the CPU has none of those compiled in.
std::string SimdTarget();

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_SIMD_TARGET_H_
