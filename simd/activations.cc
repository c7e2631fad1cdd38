// QuantisePart for every target. Per 16 values: one max, one rounding, and the
// sums by adds inside 128-bit blocks, so no step depends on the vector width.
#include "simd/activations.h"

#include "simd/amx.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/activations.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Blocks whose largest value is below this are all zeros: 127 / amax would overflow.
constexpr float kSmallest = 0x1p-100f;

// Rounds 16 floats times `inverse` to int8 (ties to even); |result| <= 127 by construction.
template <class D8 = hn::FixedTag<int8_t, 16>>
hn::Vec<D8> Round16(const float* HWY_RESTRICT x, float inverse, int8_t* HWY_RESTRICT q) {
  const hn::CappedTag<float, 16> df;
  const hn::Rebind<int8_t, decltype(df)> d8;
  const auto inv = hn::Set(df, inverse);
  for (size_t i = 0; i < 16; i += hn::Lanes(df)) {
    const auto v = hn::NearestInt(hn::Mul(hn::LoadU(df, x + i), inv));
    hn::StoreU(hn::DemoteTo(d8, v), d8, q + i);
  }
  return hn::LoadU(D8(), q);
}

// Sums of 16 int8 as two int16, in every 32-bit lane: over k % 4 in {0, 1} low, {2, 3} high.
template <class V8>
auto PairSums(V8 v) {
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<int32_t, 4> d32;
  const hn::FixedTag<uint8_t, 16> du8;
  auto s = hn::BitCast(d32, hn::SatWidenMulPairwiseAdd(d16, hn::Set(du8, 1), v));
  s = hn::BitCast(d32, hn::Add(hn::BitCast(d16, s), hn::BitCast(d16, hn::Shuffle2301(s))));
  return hn::Add(hn::BitCast(d16, s), hn::BitCast(d16, hn::Shuffle1032(s)));
}

float MaxAbs32(const float* HWY_RESTRICT x) {
  const hn::CappedTag<float, 16> df;
  auto m = hn::Zero(df);
  for (size_t i = 0; i < kActBlock; i += hn::Lanes(df)) {
    m = hn::Max(m, hn::Abs(hn::LoadU(df, x + i)));
  }
  return hn::ReduceMax(df, m);
}

void Quantise(const float* HWY_RESTRICT x, const ActView& a, size_t row, size_t begin, size_t end) {
  const hn::FixedTag<int32_t, 4> d32;
  const hn::FixedTag<int8_t, 16> d8;
  int8_t* HWY_RESTRICT q = a.q + row * a.k;
  const size_t last = end / kActBlock;
  for (size_t b = begin / kActBlock, at = row * (a.k / kActBlock) + b; b < last;
       ++b, ++at, x += kActBlock) {
    const float amax = MaxAbs32(x);
    const float inverse = amax > kSmallest ? 127.0f / amax : 0.0f;
    const float scale = amax > kSmallest ? amax / 127.0f : 0.0f;
    const size_t tile = (row / 16 * (a.k / kActBlock) + b) * 16 + row % 16;
    int32_t sum = 0;
    for (size_t h = 0; h < 2; ++h) {
      const auto rounded = Round16(x + 16 * h, inverse, q + b * kActBlock + 16 * h);
      // From the register: no load has to wait for the stores. It gained nothing on a Xeon, where
      // the stores themselves, to lines far apart, are what takes the time.
      if (a.tile_q != nullptr) hn::StoreU(rounded, d8, a.tile_q + tile * kActBlock + 16 * h);
      const auto pair = PairSums(rounded);
      const int32_t s = static_cast<int16_t>(hn::GetLane(pair)) + hn::ExtractLane(pair, 1);
      a.neg_pair[2 * at + h] = hn::GetLane(hn::BitCast(d32, hn::Neg(pair)));
      a.sum16[2 * at + h] = static_cast<int16_t>(s);
      sum += s;
    }
    a.scale[at] = scale;
    a.scaled_sum[at] = scale * static_cast<float>(sum);
    a.neg_sum[at] = -sum;
    if (a.tile_q != nullptr) a.tile_scale[tile] = scale;
  }
}

void RoundBf16(const float* HWY_RESTRICT x, size_t n, uint16_t* HWY_RESTRICT out) {
  const hn::CappedTag<float, 16> d;
  const hn::Rebind<hwy::bfloat16_t, decltype(d)> d16;
  const hn::Rebind<uint16_t, decltype(d)> du16;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto v = hn::DemoteTo(d16, hn::LoadN(d, x + i, n - i));
    hn::StoreN(hn::BitCast(du16, v), du16, out + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(Quantise);
HWY_EXPORT(RoundBf16);

constexpr size_t kAlign = 64;
size_t RoundUp(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Rows that lie in tiles too.
size_t TileRows(size_t rows) { return rows >= kAmxRows && HasAmx() ? (rows + 15) / 16 * 16 : 0; }

}  // namespace

// Every array starts on its own cache line.
size_t ActBytes(size_t rows, size_t k) {
  const size_t blocks = rows * (k / kActBlock);
  return RoundUp(rows * k) + 3 * RoundUp(4 * blocks) + RoundUp(8 * blocks) + RoundUp(4 * blocks) +
         RoundUp(TileRows(rows) * k) + RoundUp(TileRows(rows) * (k / kActBlock) * 4);
}

ActView MakeActView(void* storage, size_t rows, size_t k) {
  const size_t blocks = rows * (k / kActBlock);
  uint8_t* p = static_cast<uint8_t*>(storage);
  const auto take = [&p](size_t bytes) {
    uint8_t* const start = p;
    p += RoundUp(bytes);
    return static_cast<void*>(start);
  };
  ActView a;
  a.rows = rows;
  a.k = k;
  a.q = static_cast<int8_t*>(take(rows * k));
  a.scale = static_cast<float*>(take(4 * blocks));
  a.scaled_sum = static_cast<float*>(take(4 * blocks));
  a.neg_sum = static_cast<int32_t*>(take(4 * blocks));
  a.neg_pair = static_cast<int32_t*>(take(8 * blocks));
  a.sum16 = static_cast<int16_t*>(take(4 * blocks));
  if (const size_t tile_rows = TileRows(rows); tile_rows > 0) {
    a.tile_q = static_cast<int8_t*>(take(tile_rows * k));
    a.tile_scale = static_cast<float*>(take(tile_rows * (k / kActBlock) * 4));
  }
  return a;
}

void QuantisePart(const float* x, const ActView& a, size_t row, size_t begin, size_t end) {
  HWY_DYNAMIC_DISPATCH(Quantise)(x, a, row, begin, end);
}

void RoundToBf16(const float* x, size_t n, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(RoundBf16)(x, n, out);
}

}  // namespace sluice
#endif  // HWY_ONCE
