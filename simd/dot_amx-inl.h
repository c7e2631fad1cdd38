// Prefill on CPUs with AMX: one instruction multiplies 16 tokens x 32 k by 32 k x 16 rows. Included
// by byte_tiles.cc only. Sums are exact integers and the float chain is the recipe's
// (panel_kernel-inl.h), so the bytes are those of every other kernel.
//
// A unit of a byte panel already lies as the instruction wants its second operand: 8 rows of 4 k,
// each for 16 weight rows. The products are cheap (16 cycles); what costs is to bring 256 sums back
// through memory and to scale them, so both overlap with the next units' products:
//   step i: multiply unit i | load unit i + 2 | store the sums of unit i - 1 | scale those of i - 3
// Formats with two scales per unit (Q6_K) would bring back twice the sums; their weights are split
// in two bytes instead, whose sums are added as integers: exact, and scaled once. With two products
// a step no register is free for two steps, so each is loaded for the next unit as soon as it was
// multiplied: 1B Q6_K, two threads of the Xeon, prefill with loads right before the products 362
// tok/s, so 410, with 32 units at a time instead of 16 427, and with a whole chunk of 64 456; VNNI
// 320. Xeon with AMX at 3.6 GHz, ns per unit of 16 rows x 16 tokens over 2048 k and 512 tokens: one
// part 16.5, of which tile instructions alone 8.5 and scaling alone 6.7. Lost in Q6_K: scaling
// three steps behind instead of two (0.93 of the speed), the first store before the scaling (0.97).
// Lost: products of bfloat16, whose sums are floats already, because tokens of twice the bytes no
// longer fit L2 (23; in two parts 26, 355 to 386 tok/s; with tokens converted as they are needed 24
// to 29); scaling the sums just stored; prefetching tokens to L1; loops without the checks for the
// first and the last steps (the same).
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

// Codes to signed bytes, in place, once for all tokens. Where none needs them as they are, Expand
// does so (1 % of prefill).
template <class C>
HWY_INLINE void SignedCodes(ByteUnit& unit) {
  if constexpr (C::kZero == 0) return;
  SLUICE_UNROLL
  for (size_t g = 0; g < 8; ++g) {
    hn::Store(hn::Sub(hn::Load(D8(), unit.u[g]), hn::Set(D8(), C::kZero)), D8(), unit.u[g]);
  }
}

template <class C>
HWY_INLINE void Split(const ByteUnitSub& from, SplitUnit* to) {
  const VI16 low = hn::Set(D16(), 255);
  const auto pack = [&](VI16 even, VI16 odd) HWY_ATTR {
    return hn::BitCast(D8(), hn::Or(hn::And(even, low), hn::ShiftLeft<8>(odd)));
  };
  const auto nearest256 = [](VI16 weight) HWY_ATTR {
    return hn::ShiftRight<8>(hn::Add(weight, hn::Set(D16(), 128)));
  };
  SLUICE_UNROLL
  for (size_t g = 0; g < 8; ++g) {
    const VI16 codes = hn::BitCast(D16(), hn::Load(D8(), from.u[g]));
    const VI16 sub = hn::BitCast(D16(), hn::Load(D32(), from.sub[g / 4]));
    const VI16 zero = hn::Set(D16(), C::kZero);
    const VI16 even = hn::Mul(hn::Sub(hn::And(codes, low), zero), sub);
    const VI16 odd = hn::Mul(hn::Sub(hn::And(hn::ShiftRight<8>(codes), low), zero), sub);
    hn::Store(pack(nearest256(even), nearest256(odd)), D8(), to->u[0][g]);
    hn::Store(pack(even, odd), D8(), to->u[1][g]);  // the low byte, signed, is the rest
  }
  hn::Store(hn::Load(DF(), from.scale), DF(), to->scale);
}

// 16 rows x 16 tokens over `count` units: ByteUnit of signed codes, or SplitUnit.
template <class Unit>
class AmxKernel {
 public:
  // tokens: [units][16][32], scales: [units][16], as ActView has them.
  AmxKernel(const Unit* units, size_t count, const int8_t* tokens, const float* scales)
      : units_(units), count_(count), tokens_(tokens), scales_(scales) {}

  // Adds to f[token][16 rows]; from_zero: writes it.
  HWY_NOINLINE void Run(float* f, size_t stride, bool from_zero) {
    VF sum[16];
    SLUICE_UNROLL
    for (size_t t = 0; t < 16; ++t) {
      sum[t] = from_zero ? hn::Zero(DF()) : hn::LoadU(DF(), f + t * stride);
    }
    if constexpr (kOfParts == 1) {
      Load<0>(0);
      Load<1>(1);
    } else {
      LoadTile<4>(tokens_, kActBlock);
      LoadTile<6>(units_[0].u[0], 64);
      LoadTile<7>(units_[0].u[1], 64);
    }
    for (size_t i = 0; i < count_ + kLag; i += 4) {
      Step<0>(i, sum);
      Step<1>(i + 1, sum);
      Step<2>(i + 2, sum);
      Step<3>(i + 3, sum);
    }
    SLUICE_UNROLL
    for (size_t t = 0; t < 16; ++t) hn::StoreU(sum[t], DF(), f + t * stride);
  }

 private:
  static constexpr size_t kOfParts = sizeof(Unit) == sizeof(SplitUnit) ? 2 : 1;
  static constexpr size_t kLag = kOfParts == 2 ? 2 : 3;  // steps from a product to its scaling
  // Four sums of one part, or two of both.
  template <int kStep, int kPart>
  static constexpr int kSum = kOfParts == 2 ? kStep % 2 * 2 + kPart : kStep;

  template <int kStep>
  HWY_INLINE void Step(size_t i, VF (&sum)[16]) {
    if (i < count_) Multiply<kStep>(i);
    const bool scale = i >= kLag && i - kLag < count_;
    constexpr size_t kScaled = (kStep + 4 - kLag) % 4;
    if (scale) Scale<kScaled, 0>(i - kLag, sum);
    if (i >= 1 && i - 1 < count_) {
      constexpr int kStored = (kStep + 3) % 4;
      StoreTile<kSum<kStored, 0>>(sums_[kStored][0], 64);
      if constexpr (kOfParts == 2) StoreTile<kSum<kStored, 1>>(sums_[kStored][1], 64);
    }
    if (scale) Scale<kScaled, 8>(i - kLag, sum);
  }
  template <int kStep>
  HWY_INLINE void Multiply(size_t i) {
    if constexpr (kOfParts == 1) {
      ZeroTile<kStep>();
      MultiplyBytes<kStep, 4 + kStep % 2, 6 + kStep % 2>();
      Load<kStep>(i + 2);
    } else {
      ZeroTile<kSum<kStep, 0>>();
      ZeroTile<kSum<kStep, 1>>();
      const size_t next = std::min(i + 1, count_ - 1);
      LoadTile<5 - kStep % 2>(tokens_ + 16 * kActBlock * next, kActBlock);
      MultiplyBytes<kSum<kStep, 0>, 4 + kStep % 2, 6>();
      LoadTile<6>(units_[next].u[0], 64);
      MultiplyBytes<kSum<kStep, 1>, 4 + kStep % 2, 7>();
      LoadTile<7>(units_[next].u[1], 64);
    }
  }
  template <int kStep>
  HWY_INLINE void Load(size_t i) {
    const size_t unit = std::min(i, count_ - 1);
    LoadTile<4 + kStep % 2>(tokens_ + 16 * kActBlock * unit, kActBlock);
    LoadTile<6 + kStep % 2>(units_[unit].u, 64);
  }
  template <size_t kBuffer, size_t kFirst>
  HWY_INLINE void Scale(size_t i, VF (&sum)[16]) const {
    const VF scale = hn::Load(DF(), units_[i].scale);
    SLUICE_UNROLL
    for (size_t t = kFirst; t < kFirst + 8; ++t) {
      VI32 x = hn::Load(D32(), sums_[kBuffer][0] + 16 * t);
      if constexpr (kOfParts == 2) {
        x = hn::Add(hn::ShiftLeft<8>(x), hn::Load(D32(), sums_[kBuffer][1] + 16 * t));
      }
      const VF both = hn::Mul(scale, hn::Set(DF(), scales_[16 * i + t]));
      sum[t] = Fuse(hn::ConvertTo(DF(), x), both, sum[t]);
    }
  }

  const Unit* const units_;
  const size_t count_;
  const int8_t* const tokens_;
  const float* const scales_;
  HWY_ALIGN int32_t sums_[4][kOfParts][256];
};

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_AMX_TILES
#endif
