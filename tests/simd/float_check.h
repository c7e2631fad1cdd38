// For the tests of float kernels: the same run on every SIMD target, random
// floats that need no libm, a hash to compare targets and machines by.
#ifndef SLUICE_TESTS_SIMD_FLOAT_CHECK_H_
#define SLUICE_TESTS_SIMD_FLOAT_CHECK_H_

#include <gtest/gtest.h>
#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

#include "hwy/highway.h"
#include "hwy/targets.h"

namespace sluice {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t Bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }
  // Uniform in +-range.
  float Float(float range) {
    return (static_cast<float>(Bits() >> 7) / 8388608.0f - 1.0f) * range;  // 24 bits of 31
  }
  std::vector<float> Floats(size_t n, float range) {
    std::vector<float> v(n);
    for (float& x : v) x = Float(range);
    return v;
  }

 private:
  uint64_t state_;
};

// FNV-1a over the bytes of the floats.
inline uint64_t Hash(const std::vector<float>& v, uint64_t hash = 1469598103934665603u) {
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(v.data());
  for (size_t i = 0; i < v.size() * sizeof(float); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

// Runs `test()`, which returns floats, on every target this CPU has: all must give the same bytes.
// Returns their hash; a test that expects a constant compares machines (the same run on ARM64) and
// versions.
template <class F>
uint64_t OnEveryTarget(const F& test) {
  std::vector<float> expected;
  std::string first;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    const std::string name = hwy::TargetName(target);
    SCOPED_TRACE(name);
    const std::vector<float> got = test();
    if (first.empty()) {
      expected = got;
      first = name;
    }
    EXPECT_EQ(Hash(got), Hash(expected)) << name << " and " << first << " differ";
  }
  hwy::SetSupportedTargetsForTest(0);
  return Hash(expected);
}

}  // namespace sluice
#endif  // SLUICE_TESTS_SIMD_FLOAT_CHECK_H_
