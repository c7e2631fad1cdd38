// The read stream, compiled once per SIMD target.
#include "simd/stream.h"

#include <string.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/stream.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Eight vectors a step, four sums: enough loads in flight for one core. Software prefetch 512 to
// 4096 bytes ahead lost on Zen 4 (28-30 against 31.7 GB/s on one core, 43-56 against 61 on two) and
// wins on a Xeon with AMX (two cores, none and 512, 1024, 2048, 4096
// ahead: 21.3, 26.0, 25.6, 26.5, 20.7).
template <bool kPrefetch>
uint64_t ReadSumOf(const void* data, size_t bytes) {
  constexpr size_t kAhead = 1024, kLine = 64;
  const hn::ScalableTag<uint64_t> d;
  const auto* from = static_cast<const uint8_t*>(data);
  const size_t vector = hn::Lanes(d) * sizeof(uint64_t);
  const size_t step = 8 * vector;
  const auto load = [&](size_t at) {
    return hn::LoadU(d, reinterpret_cast<const uint64_t*>(from + at));
  };
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  size_t at = 0;
  for (; at + step <= bytes; at += step) {
    if constexpr (kPrefetch) {
      for (size_t i = 0; i < step; i += kLine) __builtin_prefetch(from + at + kAhead + i, 0, 2);
    }
    sum0 = hn::Add(sum0, hn::Add(load(at), load(at + vector)));
    sum1 = hn::Add(sum1, hn::Add(load(at + 2 * vector), load(at + 3 * vector)));
    sum2 = hn::Add(sum2, hn::Add(load(at + 4 * vector), load(at + 5 * vector)));
    sum3 = hn::Add(sum3, hn::Add(load(at + 6 * vector), load(at + 7 * vector)));
  }
  uint64_t sum = hn::ReduceSum(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
  for (; at < bytes; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, from + at, HWY_MIN(sizeof(word), bytes - at));
    sum += word;
  }
  return sum;
}

uint64_t ReadSum(const void* data, size_t bytes, bool prefetch) {
  return prefetch ? ReadSumOf<true>(data, bytes) : ReadSumOf<false>(data, bytes);
}

const char* StreamTarget() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
HWY_EXPORT(ReadSum);
HWY_EXPORT(StreamTarget);

uint64_t ReadSum(const void* data, size_t bytes, bool prefetch) {
  return HWY_DYNAMIC_DISPATCH(ReadSum)(data, bytes, prefetch);
}
const char* StreamTarget() { return HWY_DYNAMIC_DISPATCH(StreamTarget)(); }

}  // namespace sluice
#endif  // HWY_ONCE
