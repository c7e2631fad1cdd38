// QuantisePart for every target. Per 16 values: one max, one rounding, and the
// sums by adds inside 128-bit blocks, so no step depends on the vector width.
#include "simd/activations.h"

#include "simd/amx.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/activations.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "simd/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Blocks whose largest value is below this are all zeros: 127 / amax would overflow.
constexpr float kSmallest = 0x1p-100f;

using DX = hn::CappedTag<float, 16>;

// A vector of floats times `inverse`, rounded to integers, ties to even.
HWY_INLINE hn::Vec<hn::RebindToSigned<DX>> Round(const float* HWY_RESTRICT x, float inverse) {
  const auto v = hn::Mul(hn::LoadU(DX(), x), hn::Set(DX(), inverse));
#if HWY_ARCH_X86
  return hn::NearestIntInRange(hn::RebindToSigned<DX>(), v);  // no care for large numbers
#else
  return hn::NearestInt(v);
#endif
}

// 16 floats as int8; |result| <= 127 by construction.
template <class D8 = hn::FixedTag<int8_t, 16>>
HWY_INLINE hn::Vec<D8> Round16(const float* HWY_RESTRICT x, float inverse) {
  constexpr size_t kLanesX = HWY_MAX_LANES_D(DX);
  const hn::Repartition<int16_t, DX> d16;
  if constexpr (kLanesX == 16) {
    return hn::DemoteTo(D8(), Round(x, inverse));
  } else if constexpr (kLanesX == 8) {
    return hn::DemoteTo(D8(), hn::OrderedDemote2To(d16, Round(x, inverse), Round(x + 8, inverse)));
  } else {
    const auto low = hn::OrderedDemote2To(d16, Round(x, inverse), Round(x + 4, inverse));
    const auto high = hn::OrderedDemote2To(d16, Round(x + 8, inverse), Round(x + 12, inverse));
    return hn::OrderedDemote2To(D8(), low, high);
  }
}

// Sums of 16 int8 as two int16, in every 32-bit lane: over k % 4 in {0, 1} low, {2, 3} high.
template <class V8>
HWY_INLINE auto PairSums(V8 v) {
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<int32_t, 4> d32;
  const hn::FixedTag<uint8_t, 16> du8;
  auto s = hn::BitCast(d32, hn::SatWidenMulPairwiseAdd(d16, hn::Set(du8, 1), v));
  s = hn::BitCast(d32, hn::Add(hn::BitCast(d16, s), hn::BitCast(d16, hn::Shuffle2301(s))));
  return hn::Add(hn::BitCast(d16, s), hn::BitCast(d16, hn::Shuffle1032(s)));
}

HWY_INLINE float MaxAbs32(const float* HWY_RESTRICT x) {
  auto m = hn::Abs(hn::LoadU(DX(), x));
  SLUICE_UNROLL
  for (size_t i = HWY_MAX_LANES_D(DX); i < kActBlock; i += HWY_MAX_LANES_D(DX)) {
    m = hn::Max(m, hn::Abs(hn::LoadU(DX(), x + i)));
  }
  return hn::ReduceMax(DX(), m);
}

// kTiles: into tile_q and tile_scale too. From registers: reading back what was stored in smaller
// pieces waits for the stores (a block on a Xeon: AVX2 26 -> 10 ns, AVX-512 13.6 -> 9). Lost: two
// blocks side by side (the same); all but q in one struct of 32 bytes for a block (512 rows of
// 8192, column by column, 12.8 -> 10.6 ns, but minimums read only a part of it: 1B Q4_K_M 4 to 8 %
// slower).
template <bool kTiles>
void QuantiseBlocks(const float* HWY_RESTRICT x, const ActView& a, size_t row, size_t first,
                    size_t last) {
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<int32_t, 4> d32;
  const hn::FixedTag<int8_t, 16> d8;
  const hn::FixedTag<int32_t, 2> two;
  const hn::FixedTag<int16_t, 2> two16;
  const size_t blocks = a.k / kActBlock;
  int8_t* HWY_RESTRICT q = a.q + row * a.stride + first * kActBlock;
  const size_t tile = (row / 16 * blocks + first) * 16 + row % 16;
  int8_t* HWY_RESTRICT tile_q = kTiles ? a.tile_q + tile * kActBlock : nullptr;
  float* HWY_RESTRICT tile_scale = kTiles ? a.tile_scale + tile : nullptr;
  const size_t row_at = row * (a.stride / kActBlock);
  for (size_t at = row_at + first, end = row_at + last; at < end; ++at) {
    const float amax = MaxAbs32(x);
    const float inverse = amax > kSmallest ? 127.0f / amax : 0.0f;
    const float scale = amax > kSmallest ? amax / 127.0f : 0.0f;
    const auto low = Round16(x, inverse), high = Round16(x + 16, inverse);
    hn::StoreU(low, d8, q);
    hn::StoreU(high, d8, q + 16);
    if constexpr (kTiles) {
      hn::StoreU(low, d8, tile_q);
      hn::StoreU(high, d8, tile_q + 16);
      *tile_scale = scale;
      tile_q += 16 * kActBlock;
      tile_scale += 16;
    }
    // Of each half, in lanes 0 and 1: two int16; their sum.
    const auto pairs = hn::BitCast(d16, hn::InterleaveLower(hn::BitCast(d32, PairSums(low)),
                                                            hn::BitCast(d32, PairSums(high))));
    const auto halves = hn::WidenMulPairwiseAdd(d32, pairs, hn::Set(d16, 1));
    const int32_t sum = hn::GetLane(hn::Add(halves, hn::Shuffle2301(halves)));
    a.scale[at] = scale;
    a.scaled_sum[at] = scale * static_cast<float>(sum);
    a.neg_sum[at] = -sum;
    hn::StoreU(hn::LowerHalf(two, hn::BitCast(d32, hn::Neg(pairs))), two, a.neg_pair + 2 * at);
    hn::StoreU(hn::DemoteTo(two16, hn::LowerHalf(two, halves)), two16, a.sum16 + 2 * at);
    x += kActBlock;
    q += kActBlock;
  }
}

void Quantise(const float* HWY_RESTRICT x, const ActView& a, size_t row, size_t begin, size_t end) {
  const auto run = a.tile_q == nullptr ? QuantiseBlocks<false> : QuantiseBlocks<true>;
  run(x, a, row, begin / kActBlock, end / kActBlock);
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
  const size_t blocks = rows * (RowStride(k) / kActBlock);
  return RoundUp(rows * RowStride(k)) + 3 * RoundUp(4 * blocks) + RoundUp(8 * blocks) +
         RoundUp(4 * blocks) + RoundUp(TileRows(rows) * k) +
         RoundUp(TileRows(rows) * (k / kActBlock) * 4);
}

ActView MakeActView(void* storage, size_t rows, size_t k, size_t stride) {
  const size_t blocks = rows * (stride / kActBlock);
  uint8_t* p = static_cast<uint8_t*>(storage);
  const auto take = [&p](size_t bytes) {
    uint8_t* const start = p;
    p += RoundUp(bytes);
    return static_cast<void*>(start);
  };
  ActView a;
  a.rows = rows;
  a.k = k;
  a.stride = stride;
  a.q = static_cast<int8_t*>(take(rows * stride));
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
