// Prefill on ARM CPUs with the matrix extension I8MM (Graviton3, Neoverse N2, Apple M2 and later):
// smmla multiplies 2 rows x 8 k by 2 tokens x 8 k into 2 x 2 sums, twice the products of sdot.
// Included by byte_tiles.cc only, which asks HasI8mm. Sums are exact integers and the float chain
// is the recipe's (panel_kernel-inl.h), so the bytes are those of every other kernel.
//
// The instruction is written in assembly: Highway enables it for none of its Linux targets, and so
// even what GCC 12 compiles for plain ARMv8 has it where the CPU does.
#if defined(SLUICE_SIMD_DOT_I8MM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_DOT_I8MM_INL_H_
#undef SLUICE_SIMD_DOT_I8MM_INL_H_
#else
#define SLUICE_SIMD_DOT_I8MM_INL_H_
#endif

#undef SLUICE_HAVE_I8MM
#if HWY_ARCH_ARM_A64 && defined(__linux__)
#define SLUICE_HAVE_I8MM 1
#include <sys/auxv.h>
#else
#define SLUICE_HAVE_I8MM 0
#endif

#include <algorithm>

#include "simd/byte_panel.h"
#include "simd/panel_kernel-inl.h"

#if SLUICE_HAVE_I8MM
HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

inline bool HasI8mm() {
  constexpr unsigned long kI8mm = 1ul << 13;  // HWCAP2_I8MM, absent from older headers
  static const bool has = (getauxval(AT_HWCAP2) & kI8mm) != 0;
  return has;
}

// x += {w0 a0, w0 a1, w1 a0, w1 a1}: rows w0, w1 and tokens a0, a1 of 8 bytes each.
HWY_INLINE void Smmla(VI32& x, VI8 w, VI8 a) {
  // GNU as has it from ARMv8.2 on only: the extension alone does not name it on plain ARMv8.
  asm(".arch armv8.2-a+i8mm\n\tsmmla %0.4s, %1.16b, %2.16b" : "+w"(x.raw) : "w"(w.raw), "w"(a.raw));
}

// {a0, a0, a1, a1} or, upper, {a2, a2, a3, a3}: rows of a pair, each for both tokens.
template <bool kUpper, class D, class V = hn::Vec<D>>
HWY_INLINE V Twice(D d, V v) {
  return kUpper ? hn::InterleaveUpper(d, v, v) : hn::InterleaveLower(d, v, v);
}

// Turns the codes of a unit, in place, into signed bytes of row pairs: vector 8 s + p is rows 2 p
// and 2 p + 1 at k = 8 s .. 8 s + 7. Once for all tokens.
template <class C>
HWY_INLINE void PairRows(typename C::Block& unit) {
  const D32 d;
  uint8_t* HWY_RESTRICT u = unit.u[0];
  for (size_t s = 0; s < 4; ++s, u += 128) {
    VI32 pair[8];
    SLUICE_UNROLL
    for (size_t i = 0; i < 4; ++i) {
      const VU8 zero = hn::Set(D8(), C::kZero);
      const VI32 first = hn::BitCast(d, hn::Sub(hn::Load(D8(), u + 16 * i), zero));
      const VI32 second = hn::BitCast(d, hn::Sub(hn::Load(D8(), u + 64 + 16 * i), zero));
      pair[2 * i] = hn::InterleaveLower(d, first, second);
      pair[2 * i + 1] = hn::InterleaveUpper(d, first, second);
    }
    SLUICE_UNROLL
    for (size_t i = 0; i < 8; ++i) hn::Store(hn::BitCast(D8(), pair[i]), D8(), u + 16 * i);
  }
}

// 8 rows from `row` by T tokens: sums of one unit, exact. An odd last token is its own partner.
template <class C, size_t T>
struct PairSums {
  static constexpr size_t kN = (T + 1) / 2;
  static constexpr size_t Second(size_t j) { return std::min(2 * j + 1, T - 1); }

  VI32 x[4][kN], sum[4][kN];

  HWY_INLINE PairSums() {}
  template <size_t kHalf>
  HWY_INLINE void Half(const typename C::Block& unit, size_t row, const TokenRows<T>& a, size_t b) {
    const hn::Repartition<int64_t, D8> d64;
    VI8 token[2][kN];
    SLUICE_UNROLL
    for (size_t j = 0; j < kN; ++j) {
      const size_t at = kActBlock * b + 16 * kHalf;
      const auto first = hn::BitCast(d64, hn::LoadU(DI8(), a.q[2 * j] + at));
      const auto second = hn::BitCast(d64, hn::LoadU(DI8(), a.q[Second(j)] + at));
      token[0][j] = hn::BitCast(DI8(), hn::InterleaveLower(d64, first, second));
      token[1][j] = hn::BitCast(DI8(), hn::InterleaveUpper(d64, first, second));
    }
    if constexpr (kHalf == 0 || C::kSub16) {
      SLUICE_UNROLL
      for (size_t p = 0; p < 4; ++p) {
        SLUICE_UNROLL
        for (size_t j = 0; j < kN; ++j) x[p][j] = hn::Zero(D32());
      }
    }
    SLUICE_UNROLL
    for (size_t s = 0; s < 2; ++s) {
      const uint8_t* HWY_RESTRICT w = unit.u[4 * kHalf] + 128 * s + 8 * row;
      SLUICE_UNROLL
      for (size_t p = 0; p < 4; ++p) {
        const VI8 pair = hn::BitCast(DI8(), hn::Load(D8(), w + 16 * p));
        SLUICE_UNROLL
        for (size_t j = 0; j < kN; ++j) Smmla(x[p][j], pair, token[s][j]);
      }
    }
    if constexpr (C::kSub16) {
      Scale<kHalf, false>(unit, row);
      Scale<kHalf, true>(unit, row);
    }
  }

 private:
  template <size_t kHalf, bool kUpper>
  HWY_INLINE void Scale(const typename C::Block& unit, size_t row) {
    SLUICE_UNROLL
    for (size_t i = 0; i < 2; ++i) {
      const size_t p = 2 * i + kUpper;
      const VI32 sub = Twice<kUpper>(D32(), Wide(C::Sub(unit, 0, kHalf, row + 4 * i)));
      SLUICE_UNROLL
      for (size_t j = 0; j < kN; ++j) {
        const VI32 part = hn::Mul(x[p][j], sub);
        sum[p][j] = kHalf == 0 ? part : hn::Add(sum[p][j], part);
      }
    }
  }
};

// As PanelKernel with one panel, over units that PairRows has turned.
template <class C, size_t T>
HWY_NOINLINE void PairKernel(const typename C::Block* HWY_RESTRICT units, size_t count,
                             const TokenRows<T>& rows, size_t first_block, float* f) {
  using Sums = PairSums<C, T>;
  constexpr size_t kN = Sums::kN;
  const TokenRows<T> a = rows;
  const DF d;
  for (size_t row = 0; row < kPanelRows; row += 8) {
    VF total[4][kN];
    SLUICE_UNROLL
    for (size_t i = 0; i < 2; ++i) {
      SLUICE_UNROLL
      for (size_t j = 0; j < kN; ++j) {
        const VF first = hn::LoadU(d, f + 2 * j * kPanelRows + row + 4 * i);
        const VF second = hn::LoadU(d, f + Sums::Second(j) * kPanelRows + row + 4 * i);
        total[2 * i][j] = hn::InterleaveLower(d, first, second);
        total[2 * i + 1][j] = hn::InterleaveUpper(d, first, second);
      }
    }
    for (size_t u = 0; u < count; ++u) {
      const size_t b = first_block + u;
      Sums sums;
      sums.template Half<0>(units[u], row, a, b);
      sums.template Half<1>(units[u], row, a, b);
      VF token[kN];
      SLUICE_UNROLL
      for (size_t j = 0; j < kN; ++j) {
        const float first = a.scale[a.off[2 * j] + b], second = a.scale[a.off[Sums::Second(j)] + b];
        token[j] = hn::Dup128VecFromValues(d, first, second, first, second);
      }
      SLUICE_UNROLL
      for (size_t p = 0; p < 4; ++p) {
        const VF four = C::Scale(units[u], 0, row + 4 * (p / 2));
        const VF scale = p % 2 ? Twice<true>(d, four) : Twice<false>(d, four);
        SLUICE_UNROLL
        for (size_t j = 0; j < kN; ++j) {
          const VI32 x = C::kSub16 ? sums.sum[p][j] : sums.x[p][j];
          total[p][j] = Fuse(hn::ConvertTo(d, x), hn::Mul(scale, token[j]), total[p][j]);
        }
      }
    }
    SLUICE_UNROLL
    for (size_t i = 0; i < 2; ++i) {
      SLUICE_UNROLL
      for (size_t j = 0; j < kN; ++j) {
        const VF low = total[2 * i][j], high = total[2 * i + 1][j];
        hn::StoreU(hn::ConcatEven(d, high, low), d, f + 2 * j * kPanelRows + row + 4 * i);
        if (2 * j + 1 < T) {
          hn::StoreU(hn::ConcatOdd(d, high, low), d, f + (2 * j + 1) * kPanelRows + row + 4 * i);
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_HAVE_I8MM
#endif
