// Float building blocks shared by the row-wise kernels and attention: one exp,
// one tanh, one normal tail, and sums over 16 fixed lanes with one fixed tree.
// Only simd/*.cc includes this. Every fused step is written as MulAdd, so all
// targets with FMA give the same bytes; SSE2 rounds twice and differs in the
// last places.
#if defined(SLUICE_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_MATH_INL_H_
#undef SLUICE_SIMD_MATH_INL_H_
#else
#define SLUICE_SIMD_MATH_INL_H_
#endif

#include <stddef.h>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVec = hn::Vec<FloatTag>;
constexpr size_t kLanes = hn::MaxLanes(FloatTag());
// Loops over arrays of vectors carry HWY_UNROLL, or GCC keeps the array in memory.
constexpr size_t kSumVecs = 16 / kLanes;  // vectors that make the 16 lanes of a sum

namespace math {
constexpr float kRoundMagic =
    12582912.0f;  // 1.5 * 2^23: adding it leaves the integer in the low bits

// r with x = n ln2 + r, |r| <= ln2 / 2, and t = n + kRoundMagic. ln2 is split so that n * hi is
// exact.
template <class D, class V>
HWY_INLINE V ReduceExp(D d, V x, V& t) {
  t = hn::MulAdd(x, hn::Set(d, 1.44269504f), hn::Set(d, kRoundMagic));
  const V n = hn::Sub(t, hn::Set(d, kRoundMagic));
  const V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  return hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
}

// e^r for |r| <= ln2 / 2: 1 + r + r^2 P(r), minimax on relative error (3e-9 before rounding; one
// more term changes nothing that a float can show).
template <class D, class V>
HWY_INLINE V ExpPolynomial(D d, V r) {
  V p = hn::MulAdd(hn::Set(d, 1.381422e-3f), r, hn::Set(d, 8.368899e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1668404e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.1666652f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994f));
  return hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
}
}  // namespace math

// e^x for x <= 0, exactly 1 at 0 and exactly 0 below -87: the hot one, for soft-max. No subnormals
// arise.
template <class D, class V>
HWY_INLINE V ExpNonPositive(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V low = hn::Set(d, -87.0f);
  V t;
  const V p = math::ExpPolynomial(d, math::ReduceExp(d, hn::Max(x, low), t));
  // n sits in the low bits of t; the shift drops the rest and leaves n where the exponent is.
  const V e = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, t))));
  return hn::IfThenElseZero(hn::Ge(x, low), e);
}

// e^x for any x; infinite above 88.7, subnormal and then 0 below -87.3.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  using VI = hn::Vec<decltype(di)>;
  x = hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 89.0f));
  V t;
  const V p = math::ExpPolynomial(d, math::ReduceExp(d, x, t));
  const VI magic = hn::BitCast(di, hn::Set(d, math::kRoundMagic));
  const VI bias = hn::Set(di, 127);
  // 2^n in two steps: one float holds neither 2^128 nor 2^-150.
  const VI n = hn::Sub(hn::BitCast(di, t), magic), half = hn::ShiftRight<1>(n);
  const V a = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V b = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(n, half), bias)));
  return hn::Mul(hn::Mul(p, a), b);
}

template <class D, class V>
HWY_INLINE V Logistic(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

// Odd polynomial near 0 (relative error 5e-9 before rounding), (1 - e^-2a) / (1 + e^-2a) elsewhere.
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const V a = hn::Abs(x), z = hn::Mul(x, x), one = hn::Set(d, 1.0f);
  V p = hn::MulAdd(hn::Set(d, -5.6669805e-3f), z, hn::Set(d, 2.060618e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, -5.3730007e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.13331331f));
  p = hn::MulAdd(p, z, hn::Set(d, -0.33333278f));
  const V small = hn::MulAdd(hn::Mul(p, z), a, a);
  const V e = ExpNonPositive(d, hn::Mul(a, hn::Set(d, -2.0f)));
  const V large = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), small, large), x);
}

// The normal distribution function. The upper tail at a = |x| is e^(-a^2/2) M(a); with
// t = 1 / (1 + 0.35 a), M = t P(t) to 3e-8. Small tails keep their relative precision.
template <class D, class V>
HWY_INLINE V NormalCdf(D d, V x) {
  const V one = hn::Set(d, 1.0f), half = hn::Set(d, 0.5f);
  const V a = hn::Min(hn::Abs(x), hn::Set(d, 14.5f));  // the tail there is below the smallest float
  const V t = hn::Div(one, hn::MulAdd(hn::Set(d, 0.35f), a, one));
  V p = hn::MulAdd(hn::Set(d, -2.9157339e-2f), t, hn::Set(d, 0.14402853f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.25583461f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.15931529f));
  p = hn::MulAdd(p, t, hn::Set(d, -2.3209723e-2f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.10555155f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.11982149f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.13986349f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.13962130f));
  // a^2 rounded would cost a^2 * 2^-24 of the exponential: its error goes back in as a factor.
  const V sq = hn::Mul(a, a), err = hn::MulSub(a, a, sq);
  const V e = Exp(d, hn::Mul(sq, hn::Set(d, -0.5f)));
  const V tail = hn::Mul(hn::Mul(p, t), hn::NegMulAdd(hn::Mul(err, half), e, e));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}

// Adds the upper half to the lower until four lanes are left.
template <class D, class V = hn::Vec<D>>
HWY_INLINE auto FoldTo4(D d, V v) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return FoldTo4(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// The fixed tree over 16 lanes: j with j + 8, then + 4, + 2, + 1.
HWY_INLINE float SumTree(const FloatVec (&lanes)[kSumVecs]) {
  FloatVec s[kSumVecs];
  HWY_UNROLL(64) for (size_t i = 0; i < kSumVecs; ++i) s[i] = lanes[i];
  HWY_UNROLL(64) for (size_t w = kSumVecs / 2; w > 0; w /= 2) {
    HWY_UNROLL(64) for (size_t i = 0; i < w; ++i) s[i] = hn::Add(s[i], s[i + w]);
  }
  auto q = FoldTo4(FloatTag(), s[0]);
  q = hn::Add(q, hn::Shuffle1032(q));
  return hn::GetLane(hn::Add(q, hn::Shuffle2301(q)));
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_SIMD_MATH_INL_H_
