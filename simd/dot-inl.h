// Exact dot products of unsigned codes with signed activations, one policy per
// instruction set behind one interface; used by the panel kernels only.
//
// A *unit* is 16 rows x 32 k: 8 groups of 4 k, each 64 bytes (row-major, 4 k per
// row), cut into kParts vectors. Per vector of rows and token a policy keeps an
// Acc and turns it into the int32 of the recipe (format.h, Codes32):
//   Start once per token and half (16 k), Begin, 4 x Dot, End and Finish per accumulator.
// Any order of integer adds is exact, so the policies need not agree on one.
//
//   x86 with VNNI     vpdpbusd, accumulator starts at -zero * sum(a); AVX2 has it on some CPUs
//                     (avx_vnni.h), for the codecs wrapped in WithVnni
//   x86 with maddubs  int16 lanes start at -zero * sum(own k), wrap-around is exact as the true
//   sums fit;
//                     8-bit codes: maddubs(|w|, sign(a, w)), which cannot saturate as |a| <= 127
//   others            signed w = u - zero, int8 x int8 (NEON: sdot)
// Structs of vectors have written constructors: implicit ones are not compiled for the target.
// Lost: int8 x int8 on VNNI (two dpbusd); SatWidenMulPairwiseAdd off x86 (8 instructions).
#if defined(SLUICE_SIMD_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_DOT_INL_H_
#undef SLUICE_SIMD_DOT_INL_H_
#else
#define SLUICE_SIMD_DOT_INL_H_
#endif

#include <math.h>
#include <string.h>

#include "hwy/highway.h"
#include "simd/activations.h"
#include "simd/avx_vnni.h"

// Full unrolling of a loop with constant bounds: accumulator arrays must become registers.
#undef SLUICE_UNROLL
#if HWY_COMPILER_CLANG
#define SLUICE_UNROLL HWY_PRAGMA(clang loop unroll(full))
#else
#define SLUICE_UNROLL HWY_PRAGMA(GCC unroll 64)
#endif

// Keeps compilers from re-ordering the adds of a tile until it spills (AVX2, GCC 12: 24 -> 36
// MAC/cycle; clang 19 spills 20 to 40 vectors a tile without).
#undef SLUICE_PIN
#if (HWY_COMPILER_GCC_ACTUAL || HWY_COMPILER_CLANG) && HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
#define SLUICE_PIN(v) asm("" : "+v"((v).raw))
#elif HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_ARM_A64
#define SLUICE_PIN(v) asm("" : "+w"((v).raw))
#else
#define SLUICE_PIN(v) ((void)0)
#endif

#undef SLUICE_AVX_VNNI
#define SLUICE_AVX_VNNI (HWY_ARCH_X86_64 && HWY_TARGET == HWY_AVX2)

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors of 64 bytes at most: 16 rows.
using D8 = hn::CappedTag<uint8_t, 64>;
using DI8 = hn::RebindToSigned<D8>;
using D16 = hn::Repartition<int16_t, D8>;
using D32 = hn::Repartition<int32_t, D8>;
using DF = hn::Repartition<float, D8>;
using VU8 = hn::Vec<D8>;
using VI8 = hn::Vec<DI8>;
using VI16 = hn::Vec<D16>;
using VI32 = hn::Vec<D32>;
using VF = hn::Vec<DF>;

constexpr size_t kLanes = HWY_MAX_LANES_D(DF);  // rows per vector
constexpr size_t kParts = 16 / kLanes;          // vectors per 16 rows
constexpr bool kWide = kParts == 1;             // AVX-512: 16 rows are one register
constexpr size_t kRegisters = kWide || HWY_ARCH_ARM_A64 ? 32 : 16;

// a * b + c rounded once, on every target: part of the recipe. Without the instruction, lane by
// lane.
HWY_INLINE VF Fuse(VF a, VF b, VF c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  const DF d;
  HWY_ALIGN float x[kLanes], y[kLanes], z[kLanes];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (size_t i = 0; i < kLanes; ++i) z[i] = fmaf(x[i], y[i], z[i]);
  return hn::Load(d, z);
#endif
}

// The same 4 bytes in every 32-bit lane.
HWY_INLINE VI32 Broadcast4(const void* p) {
  int32_t v;
  memcpy(&v, p, 4);
  return hn::Set(D32(), v);
}
HWY_INLINE VI16 BroadcastPair(const void* p) { return hn::BitCast(D16(), Broadcast4(p)); }

// T rows of an ActView. Block b of token t: its 32 values at q[t] + 32 b, everything else at off[t]
// + b.
template <size_t T>
struct TokenRows {
  const int8_t* q[T];
  size_t off[T];
  const float* scale;
  const float* scaled_sum;
  const int32_t* neg_sum;
  const int32_t* neg_pair;
  const int16_t* sum16;
};

// Powers of two by a shift: vpmulld costs two multiplies.
template <int kZero, class D, class V = hn::Vec<D>>
HWY_INLINE V TimesZero(D d, V v) {
  if constexpr (kZero == 0) {
    return hn::Zero(d);
  } else if constexpr ((kZero & (kZero - 1)) == 0) {
    return hn::ShiftLeft<__builtin_ctz(kZero)>(v);
  } else {
    return hn::Mul(v, hn::Set(d, kZero));
  }
}

// `dup`: an int16 sub-scale in both halves of each 32-bit lane.
HWY_INLINE VI32 Wide(VI16 dup) { return hn::ShiftRight<16>(hn::BitCast(D32(), dup)); }

// A codec whose products are those of AVX-VNNI.
template <class C>
struct WithVnni : C {};
template <class C>
constexpr bool kWithVnni = false;
template <class C>
constexpr bool kWithVnni<WithVnni<C>> = true;

#if HWY_ARCH_X86 && (HWY_TARGET <= HWY_AVX3_DL || SLUICE_AVX_VNNI)

template <class C>
struct VnniDot {
  using W = VU8;
  // Sub-scales multiply as floats, exact below 2^24 (Q6_K: 2 * 16 * 32 * 127 * 128); vpmulld lost
  // 15 %.
  using Sub = VF;
  struct Acc {
    HWY_INLINE Acc() {}
    VI32 x;
    VF sum;
  };

  static HWY_INLINE W Prepare(VU8 codes) { return codes; }
  static HWY_INLINE VF PrepareSub(VI16 dup) { return hn::ConvertTo(DF(), Wide(dup)); }
  template <size_t kHalf, size_t T>
  static HWY_INLINE VI32 Start(const TokenRows<T>& a, size_t t, size_t b) {
    const size_t at = a.off[t] + b;
    if constexpr (C::kZero == 0) {
      return hn::Zero(D32());
    } else if constexpr (C::kSub16) {
      const VI16 pair = BroadcastPair(a.neg_pair + 2 * at + kHalf);
      return hn::WidenMulPairwiseAdd(D32(), pair, hn::Set(D16(), C::kZero));
    } else if constexpr (kHalf == 0) {
      return TimesZero<C::kZero>(D32(), hn::Set(D32(), a.neg_sum[at]));
    } else {
      return hn::Zero(D32());
    }
  }
  template <size_t kHalf>
  static HWY_INLINE void Begin(Acc& acc, VI32 start) {
    if (kHalf == 0 || C::kSub16) acc.x = start;
  }
  static HWY_INLINE void Multiply(Acc& acc, W w, VI8 a) {
#if SLUICE_AVX_VNNI
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc.x.raw) : "x"(w.raw), "x"(a.raw));
#else
    acc.x = hn::SumOfMulQuadAccumulate(D32(), w, a, acc.x);
    SLUICE_PIN(acc.x);
#endif
  }
  template <size_t kHalf>
  static HWY_INLINE void End(Acc& acc, VF sub) {
    if constexpr (!C::kSub16) return;
    const VF x = hn::ConvertTo(DF(), acc.x);
    acc.sum = kHalf == 0 ? hn::Mul(x, sub) : hn::MulAdd(x, sub, acc.sum);
  }
  static HWY_INLINE VF Finish(const Acc& acc) {
    if constexpr (C::kSub16) return acc.sum;
    return hn::ConvertTo(DF(), acc.x);
  }
};

#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

template <class C>
using Dot = VnniDot<C>;

#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3

template <class C>
struct MaddubsDot {
  // A 16-bit lane sums 2 products per group: 8 groups if they cannot overflow, else 4 and a fold.
  static constexpr int kLargest =
      C::kMaxCode - C::kZero > C::kZero ? C::kMaxCode - C::kZero : C::kZero;
  static constexpr bool kSigned = C::kZero == 128;
  static constexpr bool kFold = C::kSub16 || 16 * kLargest * 127 > 32767;
  // Small zero points (8): the high lane of each pair starts at all of the correction, and both
  // true sums still fit: 16 * 8 * 127 of its own products and as much for its neighbour's.
  static constexpr bool kOneLane = !kFold && C::kZero != 0 && (C::kZero & (C::kZero - 1)) == 0 &&
                                   2 * 16 * C::kZero * 127 <= 32767 &&
                                   16 * C::kMaxCode * 127 <= 32767;

  struct Signed {
    HWY_INLINE Signed() {}
    HWY_INLINE Signed(VU8 m, VI8 s) : magnitude(m), sign(s) {}
    VU8 magnitude;
    VI8 sign;
  };
  using W = hwy::If<kSigned, Signed, VU8>;
  using Sub = VI16;
  struct Acc {
    HWY_INLINE Acc() {}
    VI16 x;
    VI32 sum;
  };

  static HWY_INLINE W Prepare(VU8 codes) {
    if constexpr (kSigned) {
      const VI8 w = hn::BitCast(DI8(), hn::Xor(codes, hn::Set(D8(), 0x80)));
      return Signed(hn::BitCast(D8(), hn::Abs(w)), w);
    } else {
      return codes;
    }
  }
  static HWY_INLINE VI16 PrepareSub(VI16 dup) { return dup; }
  template <size_t kHalf, size_t T>
  static HWY_INLINE VI16 Start(const TokenRows<T>& a, size_t t, size_t b) {
    if constexpr (kSigned || C::kZero == 0) {
      return hn::Zero(D16());
    } else if constexpr (kOneLane) {
      const VI32 sum = hn::Set(D32(), a.neg_sum[a.off[t] + b]);
      return hn::BitCast(D16(), hn::ShiftLeft<16 + __builtin_ctz(C::kZero)>(sum));
    } else {
      const int32_t* pair = a.neg_pair + 2 * (a.off[t] + b);
      VI16 sum = BroadcastPair(pair + (kFold ? kHalf : 0));
      if (!kFold) sum = hn::Add(sum, BroadcastPair(pair + 1));
      return TimesZero<C::kZero>(D16(), sum);
    }
  }
  template <size_t kHalf>
  static HWY_INLINE void Begin(Acc& acc, VI16 start) {
    if (kSigned && kHalf == 0) acc.sum = hn::Zero(D32());
    if (!kSigned && (kFold || kHalf == 0)) acc.x = start;
  }
  // Two products per int16 lane.
  static HWY_INLINE VI16 Products(const W& w, VI8 a) {
    if constexpr (kSigned) {
      return hn::SatWidenMulPairwiseAdd(D16(), w.magnitude, WithSign(a, w.sign));
    } else {
      return hn::SatWidenMulPairwiseAdd(D16(), w, a);
    }
  }
  static HWY_INLINE void Multiply(Acc& acc, const W& w, VI8 a) {
    if constexpr (kSigned) {
      acc.sum = hn::Add(acc.sum, hn::WidenMulPairwiseAdd(D32(), Products(w, a), hn::Set(D16(), 1)));
      SLUICE_PIN(acc.sum);
    } else {
      acc.x = hn::Add(acc.x, Products(w, a));
      SLUICE_PIN(acc.x);
    }
  }
  template <size_t kHalf>
  static HWY_INLINE void End(Acc& acc, VI16 sub) {
    if constexpr (kSigned) return;
    if constexpr (!kFold && kHalf == 0) return;
    const VI32 part = hn::WidenMulPairwiseAdd(D32(), acc.x, C::kSub16 ? sub : hn::Set(D16(), 1));
    acc.sum = kHalf == 0 || !kFold ? part : hn::Add(acc.sum, part);
  }
  static HWY_INLINE VF Finish(const Acc& acc) { return hn::ConvertTo(DF(), acc.sum); }

 private:
  // a with the sign of w, 0 where w is 0 (vpsignb; AVX-512 has none).
  static HWY_INLINE VI8 WithSign(VI8 a, VI8 w) {
#if HWY_TARGET <= HWY_AVX3
    return hn::MaskedSubOr(a, hn::IsNegative(w), hn::Zero(DI8()), a);
#elif HWY_TARGET <= HWY_AVX2
    return VI8{_mm256_sign_epi8(a.raw, w.raw)};
#else
    return VI8{_mm_sign_epi8(a.raw, w.raw)};
#endif
  }
};

#if SLUICE_AVX_VNNI
template <class C>
using Dot = hwy::If<kWithVnni<C>, VnniDot<C>, MaddubsDot<C>>;
#else
template <class C>
using Dot = MaddubsDot<C>;
#endif

#else

template <class C>
struct Dot {
  using W = VI8;
  using Sub = VI32;
  struct Acc {
    HWY_INLINE Acc() {}
    VI32 x, sum;
  };

  static HWY_INLINE W Prepare(VU8 codes) {
    if constexpr (C::kZero == 0) return hn::BitCast(DI8(), codes);
    return hn::BitCast(DI8(), hn::Sub(codes, hn::Set(D8(), C::kZero)));
  }
  static HWY_INLINE VI32 PrepareSub(VI16 dup) { return Wide(dup); }
  template <size_t kHalf, size_t T>
  static HWY_INLINE VI32 Start(const TokenRows<T>&, size_t, size_t) {
    return hn::Zero(D32());
  }
  template <size_t kHalf>
  static HWY_INLINE void Begin(Acc& acc, VI32 start) {
    if (kHalf == 0 || C::kSub16) acc.x = start;
  }
  static HWY_INLINE void Multiply(Acc& acc, W w, VI8 a) {
    acc.x = hn::SumOfMulQuadAccumulate(D32(), w, a, acc.x);
    SLUICE_PIN(acc.x);
  }
  template <size_t kHalf>
  static HWY_INLINE void End(Acc& acc, VI32 sub) {
    if constexpr (C::kSub16) {
      const VI32 part = hn::Mul(acc.x, sub);
      acc.sum = kHalf == 0 ? part : hn::Add(acc.sum, part);
    } else {
      acc.sum = acc.x;
    }
  }
  static HWY_INLINE VF Finish(const Acc& acc) { return hn::ConvertTo(DF(), acc.sum); }
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
