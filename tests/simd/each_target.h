// One body, every SIMD target: kernels run on each that this build has and this CPU can.
#ifndef SLUICE_TESTS_SIMD_EACH_TARGET_H_
#define SLUICE_TESTS_SIMD_EACH_TARGET_H_

#include <gtest/gtest.h>
#include <stdint.h>

#include "hwy/targets.h"
#include "simd/avx_vnni.h"

namespace sluice {

template <class F>
void ForEachTarget(const F& f) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    f();
    if (target == HWY_AVX2 && HasAvxVnni()) {
      SCOPED_TRACE("without AVX-VNNI");
      UseAvxVnni(false);
      f();
      UseAvxVnni(true);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace sluice
#endif  // SLUICE_TESTS_SIMD_EACH_TARGET_H_
