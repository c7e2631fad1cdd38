#include "src/machine/simd_target.h"

#include <cstdint>
#include <cstdlib>

#include "hwy/highway.h"
#include "hwy/targets.h"
#include "simd/avx_vnni.h"

namespace sluice {
namespace {

constexpr int64_t kCompiled = HWY_TARGETS;
// AVX2 with AVX-VNNI, of which Highway makes no target.
constexpr char kAvx2Vnni[] = "AVX2_VNNI";

// Better targets have lower bits.
int64_t Best(int64_t targets) { return targets & -targets; }

int64_t UsableBits() {
  static const int64_t usable = [] {
    hwy::SetSupportedTargetsForTest(0);  // ask the CPU, not an earlier choice
    return hwy::SupportedTargets() & kCompiled;
  }();
  return usable;
}

std::string NameOf(int64_t target, bool vnni) {
  return target == HWY_AVX2 && vnni ? kAvx2Vnni : hwy::TargetName(target);
}

// Names of `targets`, best first.
std::vector<std::string> Names(int64_t targets) {
  std::vector<std::string> names;
  for (; targets != 0; targets &= targets - 1) {
    const int64_t best = Best(targets);
    if (best == HWY_AVX2 && HasAvxVnni()) names.push_back(kAvx2Vnni);
    names.push_back(hwy::TargetName(best));
  }
  return names;
}

std::string Listed(int64_t targets) {
  std::string list;
  for (const std::string& name : Names(targets)) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

std::vector<std::string> UsableSimdTargets() { return Names(UsableBits()); }

std::string BestSimdTargetOfCpu() {
  constexpr int64_t kAll =
      HWY_AVX2 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_NEON_WITHOUT_AES | HWY_NEON_BF16;
  const int64_t chosen = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(0);
  const auto names = Names(Best((hwy::SupportedTargets() & kAll) | UsableBits()));
  hwy::SetSupportedTargetsForTest(chosen);
  return names.empty() ? "none" : names[0];
}

Status ChooseSimdTarget(const std::string& name) {
  const int64_t usable = UsableBits();
  if (usable == 0) {
    return Status(StatusCode::kUnsupported,
                  "this CPU has none of the SIMD targets built in: " + Listed(kCompiled));
  }
  if (name.empty()) {
    hwy::SetSupportedTargetsForTest(0);
    UseAvxVnni(true);
    return Status();
  }
  for (int64_t left = usable; left != 0; left &= left - 1) {
    const int64_t target = Best(left);
    for (const bool vnni : {true, false}) {
      if ((vnni && !HasAvxVnni()) || name != NameOf(target, vnni)) continue;
      // Named for tests, but the only call that dispatch obeys for one target exactly.
      hwy::SetSupportedTargetsForTest(target);
      UseAvxVnni(vnni);
      return Status();
    }
  }
  return Status(StatusCode::kInvalidArgument, "SIMD target (SLUICE_TARGET): expected one of " +
                                                  Listed(usable) + ", found '" + name + "'");
}

Status ChooseSimdTargetFromEnvironment() {
  const char* name = std::getenv("SLUICE_TARGET");
  return ChooseSimdTarget(name == nullptr ? "" : name);
}

std::string SimdTarget() {
  const int64_t target = Best(hwy::SupportedTargets() & kCompiled);
  return target == 0 ? "none" : NameOf(target, UsesAvxVnni());
}

}  // namespace sluice
