// Prefill on CPUs with AMX: one instruction multiplies 16 tokens x 32 k by 32 k x 16 rows. Included
// by byte_tiles.cc only. Sums are exact integers and the float chain is the recipe's
// (panel_kernel-inl.h), so the bytes are those of every other kernel.
//
// A unit of a byte panel already lies as the instruction wants its second operand: 8 rows of 4 k,
// each for 16 weight rows. The products are cheap (16 cycles); what costs is to bring 256 sums back
// through memory and to scale them, so both overlap with the next units' products:
//   step i: multiply unit i | load unit i + 2 | store the sums of unit i - 1 | scale those of i - 3
// Xeon with AMX at 3.3 GHz, ns per unit of 16 rows x 16 tokens, all in L1: this 17.5, of which tile
// instructions alone 6.7 and scaling alone 8; VNNI 32. Lost: products of bfloat16, whose sums are
// floats already (12.2, but tokens of twice the bytes, which no longer fit L2: 20 % slower over a
// layer); scaling the sums just stored (19.4); prefetching tokens to L1; formats with two scales
// per unit (Q6_K: 5 %, not worth a second kernel).
#if defined(SLUICE_SIMD_DOT_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_DOT_AMX_INL_H_
#undef SLUICE_SIMD_DOT_AMX_INL_H_
#else
#define SLUICE_SIMD_DOT_AMX_INL_H_
#endif

#include <algorithm>

#include "simd/amx_tiles-inl.h"
#include "simd/byte_panel.h"
#include "simd/panel_kernel-inl.h"

#if SLUICE_AMX_TILES
HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Sums in 0 to 3, tokens in 4 and 5, weights in 6 and 7.
inline AmxShape ByteShape() {
  AmxShape shape;
  for (size_t t = 0; t < 8; ++t) {
    shape.row_bytes[t] = t == 4 || t == 5 ? 32 : 64;
    shape.rows[t] = t < 6 ? 16 : 8;
  }
  return shape;
}

// Codes to signed bytes, in place, once for all tokens.
template <class C>
HWY_INLINE void SignedCodes(ByteUnit& unit) {
  if constexpr (C::kZero == 0) return;
  SLUICE_UNROLL
  for (size_t g = 0; g < 8; ++g) {
    hn::Store(hn::Sub(hn::Load(D8(), unit.u[g]), hn::Set(D8(), C::kZero)), D8(), unit.u[g]);
  }
}

// 16 rows x 16 tokens over `count` units of signed codes.
class AmxKernel {
 public:
  // tokens: [units][16][32], scales: [units][16], as ActView has them.
  AmxKernel(const ByteUnit* units, size_t count, const int8_t* tokens, const float* scales)
      : units_(units), count_(count), tokens_(tokens), scales_(scales) {}

  // Adds to f[token][16 rows].
  HWY_NOINLINE void Run(float* f, size_t stride) {
    VF sum[16];
    SLUICE_UNROLL
    for (size_t t = 0; t < 16; ++t) sum[t] = hn::LoadU(DF(), f + t * stride);
    Load<0>(0);
    Load<1>(1);
    for (size_t i = 0; i < count_ + 3; i += 4) {
      Step<0>(i, sum);
      Step<1>(i + 1, sum);
      Step<2>(i + 2, sum);
      Step<3>(i + 3, sum);
    }
    SLUICE_UNROLL
    for (size_t t = 0; t < 16; ++t) hn::StoreU(sum[t], DF(), f + t * stride);
  }

 private:
  template <int kStep>
  HWY_INLINE void Step(size_t i, VF (&sum)[16]) {
    if (i < count_) {
      ZeroTile<kStep>();
      MultiplyBytes<kStep, 4 + kStep % 2, 6 + kStep % 2>();
      Load<kStep>(i + 2);
    }
    const bool scale = i >= 3 && i - 3 < count_;
    if (scale) Scale<(kStep + 1) % 4, 0>(i - 3, sum);
    if (i >= 1 && i - 1 < count_) StoreTile<(kStep + 3) % 4>(sums_[(kStep + 3) % 4], 64);
    if (scale) Scale<(kStep + 1) % 4, 8>(i - 3, sum);
  }
  template <int kStep>
  HWY_INLINE void Load(size_t i) {
    const size_t unit = std::min(i, count_ - 1);
    LoadTile<4 + kStep % 2>(tokens_ + 16 * kActBlock * unit, kActBlock);
    LoadTile<6 + kStep % 2>(units_[unit].u, 64);
  }
  template <int kStep, size_t kFirst>
  HWY_INLINE void Scale(size_t i, VF (&sum)[16]) const {
    const VF scale = hn::Load(DF(), units_[i].scale);
    SLUICE_UNROLL
    for (size_t t = kFirst; t < kFirst + 8; ++t) {
      const VF x = hn::ConvertTo(DF(), hn::Load(D32(), sums_[kStep] + 16 * t));
      sum[t] = Fuse(x, hn::Mul(scale, hn::Set(DF(), scales_[16 * i + t])), sum[t]);
    }
  }

  const ByteUnit* const units_;
  const size_t count_;
  const int8_t* const tokens_;
  const float* const scales_;
  HWY_ALIGN int32_t sums_[4][256];
};

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_AMX_TILES
#endif
