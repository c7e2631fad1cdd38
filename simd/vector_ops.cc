// Row-wise float kernels, compiled once per SIMD target.
#include "simd/vector_ops.h"

#include <math.h>
#include <stdint.h>

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/vector_ops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "simd/exp_series.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {
namespace {

using D = FloatTag;
using V = FloatVec;

// out[i] = f(a[i], b[i]) with b null meaning ones are passed; the tail goes through a partial
// vector.
template <class F>
HWY_INLINE void Map(const float* a, const float* b, size_t n, float* out, const F& f) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(f(hn::LoadU(d, a + i), b ? hn::LoadU(d, b + i) : one), d, out + i);
  }
  if (i < n) {
    const V last = f(hn::LoadN(d, a + i, n - i), b ? hn::LoadN(d, b + i, n - i) : one);
    hn::StoreN(last, d, out + i, n - i);
  }
}

// Sum of (x - shift)^2 over 16 lanes; padding lanes add nothing.
HWY_INLINE float SumSquares(const float* x, float shift, size_t n) {
  const D d;
  const V s = hn::Set(d, shift);
  V lanes[kSumVecs];
  HWY_UNROLL(64) for (size_t v = 0; v < kSumVecs; ++v) lanes[v] = hn::Zero(d);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    HWY_UNROLL(64) for (size_t v = 0; v < kSumVecs; ++v) {
      const V c = hn::Sub(hn::LoadU(d, x + i + v * kLanes), s);
      lanes[v] = hn::MulAdd(c, c, lanes[v]);
    }
  }
  HWY_UNROLL(64) for (size_t v = 0; v < kSumVecs; ++v) {
    if (const size_t at = i + v * kLanes; at < n) {
      const V c =
          hn::IfThenElseZero(hn::FirstN(d, n - at), hn::Sub(hn::LoadN(d, x + at, n - at), s));
      lanes[v] = hn::MulAdd(c, c, lanes[v]);
    }
  }
  return SumTree(lanes);
}

HWY_INLINE float Sum(const float* x, size_t n) {
  const D d;
  V lanes[kSumVecs];
  HWY_UNROLL(64) for (size_t v = 0; v < kSumVecs; ++v) lanes[v] = hn::Zero(d);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    HWY_UNROLL(64) for (size_t v = 0; v < kSumVecs; ++v) {
      lanes[v] = hn::Add(lanes[v], hn::LoadU(d, x + i + v * kLanes));
    }
  }
  HWY_UNROLL(64) for (size_t v = 0; v < kSumVecs; ++v) {
    if (const size_t at = i + v * kLanes; at < n) {
      lanes[v] = hn::Add(lanes[v], hn::LoadN(d, x + at, n - at));
    }
  }
  return SumTree(lanes);
}

float Largest(const float* x, size_t n) {
  const D d;
  V m = hn::Set(d, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = hn::LoadU(d, x + i);
    m = hn::IfThenElse(hn::Gt(v, m), v, m);  // Max would let a NaN in on some targets
  }
  if (i < n) {
    const V v = hn::LoadNOr(m, d, x + i, n - i);
    m = hn::IfThenElse(hn::Gt(v, m), v, m);
  }
  return hn::ReduceMax(d, m);
}

void RmsNorm(const float* x, const float* weight, float eps, size_t n, float* out) {
  const float mean = SumSquares(x, 0.0f, n) / static_cast<float>(n);
  const V r = hn::Set(D(), 1.0f / sqrtf(mean + eps));
  Map(x, weight, n, out, [r](V v, V w) HWY_ATTR { return hn::Mul(hn::Mul(v, r), w); });
}

void LayerNorm(const float* x, const float* weight, const float* bias, float eps, size_t n,
               float* out) {
  const float mean = Sum(x, n) / static_cast<float>(n);
  const float var = SumSquares(x, mean, n) / static_cast<float>(n);
  const V m = hn::Set(D(), mean), r = hn::Set(D(), 1.0f / sqrtf(var + eps));
  Map(x, weight, n, out, [=](V v, V w) HWY_ATTR { return hn::Mul(hn::Mul(hn::Sub(v, m), r), w); });
  if (bias) Map(out, bias, n, out, [](V v, V b) HWY_ATTR { return hn::Add(v, b); });
}

void SiluMul(const float* gate, const float* up, size_t n, float* out) {
  Map(gate, up, n, out, [](V g, V u) HWY_ATTR {
    const D d;
    return hn::Mul(hn::Div(g, hn::Add(hn::Set(d, 1.0f), Exp(d, hn::Neg(g)))), u);
  });
}

// (1 + tanh(z)) / 2 is the logistic of 2z: the same function without the cancellation at negative
// z.
void GeluTanhMul(const float* gate, const float* up, size_t n, float* out) {
  Map(gate, up, n, out, [](V g, V u) HWY_ATTR {
    const D d;
    const V one = hn::Set(d, 1.0f);
    const V cubic = hn::MulAdd(hn::Mul(g, g), hn::Set(d, 0.044715f), one);
    const V z2 = hn::Mul(hn::Mul(g, hn::Set(d, -1.5957691216f)), cubic);  // -2 sqrt(2 / pi)
    return hn::Mul(hn::Div(g, hn::Add(one, Exp(d, z2))), u);
  });
}

void GeluErfMul(const float* gate, const float* up, size_t n, float* out) {
  Map(gate, up, n, out,
      [](V g, V u) HWY_ATTR { return hn::Mul(hn::Mul(g, NormalCdf(D(), g)), u); });
}

void ReluMul(const float* gate, const float* up, size_t n, float* out) {
  Map(gate, up, n, out, [](V g, V u) HWY_ATTR { return hn::Mul(hn::Max(g, hn::Zero(D())), u); });
}

void ClampedSwiGlu(const float* gate, const float* up, float alpha, float limit, size_t n,
                   float* out) {
  const V top = hn::Set(D(), limit), bottom = hn::Set(D(), -limit), a = hn::Set(D(), -alpha);
  Map(gate, up, n, out, [=](V g, V u) HWY_ATTR {
    const D d;
    const V one = hn::Set(d, 1.0f);
    g = hn::Min(g, top);
    u = hn::Add(hn::Min(hn::Max(u, bottom), top), one);
    return hn::Mul(hn::Div(g, hn::Add(one, Exp(d, hn::Mul(g, a)))), u);
  });
}

void Add(const float* x, size_t n, float* y) {
  Map(x, y, n, y, [](V a, V b) HWY_ATTR { return hn::Add(b, a); });
}

void AddScaled(const float* x, float scale, size_t n, float* y) {
  const V s = hn::Set(D(), scale);
  Map(x, y, n, y, [s](V a, V b) HWY_ATTR { return hn::MulAdd(s, a, b); });
}

void Scale(float scale, size_t n, float* x) {
  const V s = hn::Set(D(), scale);
  Map(x, nullptr, n, x, [s](V a, V) HWY_ATTR { return hn::Mul(a, s); });
}

void SoftCap(float cap, size_t n, float* x) {
  const V c = hn::Set(D(), cap);
  Map(x, nullptr, n, x, [c](V a, V) HWY_ATTR { return hn::Mul(c, Tanh(D(), hn::Div(a, c))); });
}

// One rotation; the fused product is always the one with sin.
HWY_INLINE void Rotate(V c, V s, V& a, V& b) {
  const V x = a;
  a = hn::NegMulAdd(b, s, hn::Mul(x, c));
  b = hn::MulAdd(x, s, hn::Mul(b, c));
}

void RopeHalves(float* head, const float* cos, const float* sin, size_t pairs) {
  const D d;
  for (size_t i = 0; i < pairs; i += kLanes) {
    const size_t n = pairs - i;
    V a = hn::LoadN(d, head + i, n), b = hn::LoadN(d, head + pairs + i, n);
    Rotate(hn::LoadN(d, cos + i, n), hn::LoadN(d, sin + i, n), a, b);
    hn::StoreN(a, d, head + i, n);
    hn::StoreN(b, d, head + pairs + i, n);
  }
}

void RopeAdjacent(float* head, const float* cos, const float* sin, size_t pairs) {
  const D d;
  V a, b;
  size_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes) {
    hn::LoadInterleaved2(d, head + 2 * i, a, b);
    Rotate(hn::LoadU(d, cos + i), hn::LoadU(d, sin + i), a, b);
    hn::StoreInterleaved2(a, b, d, head + 2 * i);
  }
  if (const size_t n = pairs - i; n > 0) {
    HWY_ALIGN float tail[2 * kLanes] = {};
    for (size_t j = 0; j < 2 * n; ++j) tail[j] = head[2 * i + j];
    hn::LoadInterleaved2(d, tail, a, b);
    Rotate(hn::LoadN(d, cos + i, n), hn::LoadN(d, sin + i, n), a, b);
    hn::StoreInterleaved2(a, b, d, tail);
    for (size_t j = 0; j < 2 * n; ++j) head[2 * i + j] = tail[j];
  }
}

void SoftMax(float* x, size_t n) {
  const D d;
  const V top = hn::Set(d, Largest(x, n));
  Map(x, nullptr, n, x, [top](V a, V) HWY_ATTR { return ExpNonPositive(D(), hn::Sub(a, top)); });
  const V sum = hn::Set(d, Sum(x, n));
  Map(x, nullptr, n, x, [sum](V a, V) HWY_ATTR { return hn::Div(a, sum); });
}

float Sigmoid(float x) { return hn::GetLane(Logistic(D(), hn::Set(D(), x))); }

// exp in float, its sum in 16 lanes of double: a vocabulary's worth of terms loses nothing in the
// adding.
double LogSumExp(const float* x, size_t n) {
  const hn::CappedTag<double, 8> dd;
  constexpr size_t kWide = hn::MaxLanes(dd);
  const hn::Rebind<float, decltype(dd)> df;
  using VD = hn::Vec<decltype(dd)>;
  const float largest = Largest(x, n);
  const auto top = hn::Set(df, largest);
  VD lanes[16 / kWide];
  HWY_UNROLL(64) for (size_t v = 0; v < 16 / kWide; ++v) lanes[v] = hn::Zero(dd);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    HWY_UNROLL(64) for (size_t v = 0; v < 16 / kWide; ++v) {
      const auto e = ExpNonPositive(df, hn::Sub(hn::LoadU(df, x + i + v * kWide), top));
      lanes[v] = hn::Add(lanes[v], hn::PromoteTo(dd, e));
    }
  }
  HWY_ALIGN double sums[16];
  HWY_UNROLL(64) for (size_t v = 0; v < 16 / kWide; ++v) hn::Store(lanes[v], dd, sums + v * kWide);
  for (size_t j = 0; i < n; ++i, ++j) {
    sums[j] += hn::GetLane(ExpNonPositive(df, hn::Set(df, x[i] - largest)));
  }
  double sum = 0;
  for (double s : sums) sum += s;
  return largest + log(sum);
}

// The series of exp_series.h.
template <class DD, class VD>
HWY_INLINE VD ExpOfNegative(DD dd, VD x) {
  const hn::RebindToUnsigned<DD> du;
  const VD shift = hn::Set(dd, exp_series::kShift);
  const VD shifted = hn::Add(hn::Mul(x, hn::Set(dd, exp_series::kLog2E)), shift);
  const VD n = hn::Sub(shifted, shift);
  const VD r = hn::Sub(hn::Sub(x, hn::Mul(n, hn::Set(dd, exp_series::kLn2High))),
                       hn::Mul(n, hn::Set(dd, exp_series::kLn2Low)));
  VD sum = hn::Zero(dd);
  HWY_UNROLL(64) for (double factor : exp_series::kInverseFactorials) {
    sum = hn::Add(hn::Mul(sum, r), hn::Set(dd, factor));
  }
  const auto power =
      hn::Add(hn::ShiftLeft<52>(hn::BitCast(du, shifted)), hn::Set(du, uint64_t{1023} << 52));
  return hn::IfThenElseZero(hn::Gt(x, hn::Set(dd, exp_series::kLowest)),
                            hn::Mul(sum, hn::BitCast(dd, power)));
}

// 16 lanes a block and one fixed tree.
void ExpSumsOfBlocks(const float* x, size_t n, float divisor, float top, double* sums) {
  const hn::CappedTag<double, 8> dd;
  constexpr size_t kWide = hn::MaxLanes(dd), kSums = 16 / kWide;
  const hn::Rebind<float, decltype(dd)> df;
  const auto divide = hn::Set(df, divisor), most = hn::Set(df, top);
  const auto lowest = hn::Set(df, -std::numeric_limits<float>::max());
  const auto wide_top = hn::Set(dd, double{top});
  HWY_ALIGN double lanes[16];
  for (size_t begin = 0; begin < n; begin += 32) {
    const size_t left = n - begin;
    hn::Vec<decltype(dd)> sum[kSums];
    HWY_UNROLL(64) for (size_t v = 0; v < kSums; ++v) sum[v] = hn::Zero(dd);
    HWY_UNROLL(64) for (size_t v = 0; v < 2 * kSums; ++v) {
      const size_t at = v * kWide;
      if (at >= left) break;
      const auto raw = left - at >= kWide
                           ? hn::LoadU(df, x + begin + at)
                           : hn::LoadNOr(hn::Set(df, NAN), df, x + begin + at, left - at);
      const auto value = hn::Min(hn::Max(hn::Div(raw, divide), lowest), most);
      const auto e = ExpOfNegative(dd, hn::Sub(hn::PromoteTo(dd, value), wide_top));
      // NaN is not itself, and counts nothing.
      const auto known = hn::PromoteTo(dd, hn::IfThenElseZero(hn::Eq(raw, raw), hn::Set(df, 1.0f)));
      sum[v % kSums] = hn::Add(sum[v % kSums], hn::IfThenElseZero(hn::Gt(known, hn::Zero(dd)), e));
    }
    HWY_UNROLL(64) for (size_t v = 0; v < kSums; ++v) hn::Store(sum[v], dd, lanes + v * kWide);
    for (size_t step = 8; step > 0; step /= 2) {
      for (size_t i = 0; i < step; ++i) lanes[i] += lanes[i + step];
    }
    *sums++ = lanes[0];
  }
}

// Keeps the first block whose largest value beats all before it, then looks for that value inside.
size_t ArgMax(const float* x, size_t n) {
  constexpr size_t kBlock = 2048;
  float best = Largest(x, HWY_MIN(n, kBlock));
  size_t begin = 0;
  for (size_t i = kBlock; i < n; i += kBlock) {
    const float top = Largest(x + i, HWY_MIN(n - i, kBlock));
    if (top > best) best = top, begin = i;
  }
  // Only NaN so far, or nothing above -inf: the whole row decides.
  const size_t end =
      best == -std::numeric_limits<float>::infinity() ? n : HWY_MIN(n, begin + kBlock);
  for (size_t i = begin; i < end; ++i) {
    if (x[i] == best) return i;
  }
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(RmsNorm);
HWY_EXPORT(LayerNorm);
HWY_EXPORT(SiluMul);
HWY_EXPORT(GeluTanhMul);
HWY_EXPORT(GeluErfMul);
HWY_EXPORT(ReluMul);
HWY_EXPORT(ClampedSwiGlu);
HWY_EXPORT(Add);
HWY_EXPORT(AddScaled);
HWY_EXPORT(Scale);
HWY_EXPORT(SoftCap);
HWY_EXPORT(RopeHalves);
HWY_EXPORT(RopeAdjacent);
HWY_EXPORT(SoftMax);
HWY_EXPORT(Sigmoid);
HWY_EXPORT(LogSumExp);
HWY_EXPORT(ExpSumsOfBlocks);
HWY_EXPORT(ArgMax);

void RmsNorm(const float* x, const float* weight, float eps, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(x, weight, eps, n, out);
}
void LayerNorm(const float* x, const float* weight, const float* bias, float eps, size_t n,
               float* out) {
  HWY_DYNAMIC_DISPATCH(LayerNorm)(x, weight, bias, eps, n, out);
}
void SiluMul(const float* gate, const float* up, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(SiluMul)(gate, up, n, out);
}
void GeluTanhMul(const float* gate, const float* up, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(GeluTanhMul)(gate, up, n, out);
}
void GeluErfMul(const float* gate, const float* up, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(GeluErfMul)(gate, up, n, out);
}
void ReluMul(const float* gate, const float* up, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(ReluMul)(gate, up, n, out);
}
void ClampedSwiGlu(const float* gate, const float* up, float alpha, float limit, size_t n,
                   float* out) {
  HWY_DYNAMIC_DISPATCH(ClampedSwiGlu)(gate, up, alpha, limit, n, out);
}
void Add(const float* x, size_t n, float* y) { HWY_DYNAMIC_DISPATCH(Add)(x, n, y); }
void AddScaled(const float* x, float scale, size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(x, scale, n, y);
}
void Scale(float scale, size_t n, float* x) { HWY_DYNAMIC_DISPATCH(Scale)(scale, n, x); }
void SoftCap(float cap, size_t n, float* x) { HWY_DYNAMIC_DISPATCH(SoftCap)(cap, n, x); }
void RopeHalves(float* head, const float* cos, const float* sin, size_t pairs) {
  HWY_DYNAMIC_DISPATCH(RopeHalves)(head, cos, sin, pairs);
}
void RopeAdjacent(float* head, const float* cos, const float* sin, size_t pairs) {
  HWY_DYNAMIC_DISPATCH(RopeAdjacent)(head, cos, sin, pairs);
}
void SoftMax(float* x, size_t n) { HWY_DYNAMIC_DISPATCH(SoftMax)(x, n); }
float Sigmoid(float x) { return HWY_DYNAMIC_DISPATCH(Sigmoid)(x); }
double LogSumExp(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(LogSumExp)(x, n); }
void ExpSumsOfBlocks(const float* x, size_t n, float divisor, float top, double* sums) {
  HWY_DYNAMIC_DISPATCH(ExpSumsOfBlocks)(x, n, divisor, top, sums);
}
size_t ArgMax(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(ArgMax)(x, n); }

}  // namespace sluice
#endif  // HWY_ONCE
