// The inner loops of attention: N queries against one page of 64 positions.
// What one query's numbers are depends on no other query: N, the register
// tiles and the skipped positions change only which work is done together.
// Only simd/attention.cc includes this.
#if defined(SLUICE_SIMD_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_ATTENTION_INL_H_
#undef SLUICE_SIMD_ATTENTION_INL_H_
#else
#define SLUICE_SIMD_ATTENTION_INL_H_
#endif

#include <stddef.h>
#include <stdint.h>

#include "simd/amx_tiles-inl.h"
#include "simd/kv_page-inl.h"
#include "simd/math-inl.h"

#undef SLUICE_PAIR_WEIGHTS
#define SLUICE_PAIR_WEIGHTS (SLUICE_FAST_DOT_BF16 || SLUICE_AMX_TILES)

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

constexpr float kLowest = -1e30f;  // start maximum: finite, so that differences of two are not NaN
#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)
constexpr size_t kAccumulators = 24;  // of 32 vector registers
#else
constexpr size_t kAccumulators = 12;  // of 16
#endif

// How many vectors go beside N queries in registers: a power of two, at most 8 and at most `most`.
constexpr size_t VectorsBeside(size_t n, size_t most) {
  size_t v = 1;
  while (2 * v * n <= kAccumulators && 2 * v <= most && v < 8) v *= 2;
  return v;
}

// Behind the output sums of a query's state: its largest score so far and the sum of its weights.
struct Softmax {
  float max, sum;
};

// scores[t][slot] = q[t] . key[slot], one chain over the dimensions, for whole register tiles of
// slots around [begin, end). q: [steps][N].
template <size_t N, class Source>
HWY_INLINE void Scores(const Source& source, size_t steps, const float* HWY_RESTRICT q,
                       size_t begin, size_t end, float* HWY_RESTRICT scores) {
  constexpr size_t kVecs = VectorsBeside(N, kSpan / kLanes), kStep = kVecs * kLanes;
  const FloatTag d;
  for (size_t slot = begin / kStep * kStep; slot < end; slot += kStep) {
    FloatVec acc[N][kVecs], key[kVecs];
    HWY_UNROLL(64) for (size_t t = 0; t < N; ++t) {
      HWY_UNROLL(64) for (size_t v = 0; v < kVecs; ++v) acc[t][v] = hn::Zero(d);
    }
    for (size_t i = 0; i < steps; ++i) {
      HWY_UNROLL(64) for (size_t v = 0; v < kVecs; ++v) {
        key[v] = source.Key(d, i, slot + v * kLanes);
      }
      HWY_UNROLL(64) for (size_t t = 0; t < N; ++t) {
        const FloatVec query = hn::Set(d, q[i * N + t]);
        HWY_UNROLL(64) for (size_t v = 0; v < kVecs; ++v) {
          acc[t][v] = Source::Math::MulAdd(d, key[v], query, acc[t][v]);
        }
      }
    }
    HWY_UNROLL(64) for (size_t t = 0; t < N; ++t) {
      HWY_UNROLL(64) for (size_t v = 0; v < kVecs; ++v) {
        hn::Store(acc[t][v], d, scores + t * kSpan + slot + v * kLanes);
      }
    }
  }
}

// kVecs vectors of the output from `dim` on, for N queries: o = o * c, then one chain over the
// slots, in steps [begin, end).
template <size_t N, size_t kVecs, class D, class Source>
HWY_INLINE void Accumulate(D d, const Source& source, size_t dim, const float* HWY_RESTRICT p,
                           size_t begin, size_t end, const float* HWY_RESTRICT c,
                           float* HWY_RESTRICT o, size_t o_stride) {
  using V = hn::Vec<D>;
  constexpr size_t kWidth = hn::MaxLanes(d);
  V acc[N][kVecs], value[kVecs];
  HWY_UNROLL(64) for (size_t t = 0; t < N; ++t) {
    HWY_UNROLL(64) for (size_t v = 0; v < kVecs; ++v) {
      acc[t][v] = hn::Mul(hn::LoadU(d, o + t * o_stride + dim + v * kWidth), hn::Set(d, c[t]));
    }
  }
  for (size_t i = begin; i < end; ++i) {
    HWY_UNROLL(64) for (size_t v = 0; v < kVecs; ++v) {
      value[v] = source.Value(d, i, dim + v * kWidth);
    }
    HWY_UNROLL(64) for (size_t t = 0; t < N; ++t) {
      const V weight = hn::Set(d, p[t * kSpan + i]);
      HWY_UNROLL(64) for (size_t v = 0; v < kVecs; ++v) {
        acc[t][v] = Source::Math::MulAdd(d, value[v], weight, acc[t][v]);
      }
    }
  }
  HWY_UNROLL(64) for (size_t t = 0; t < N; ++t) {
    HWY_UNROLL(64) for (size_t v = 0; v < kVecs; ++v) {
      hn::StoreU(acc[t][v], d, o + t * o_stride + dim + v * kWidth);
    }
  }
}

// All of value_dim, from `dim` on: as many full tiles as fit, then half as wide, and eight floats
// at the end.
template <size_t N, size_t kVecs, class Source>
HWY_INLINE void AccumulateRow(const Source& source, size_t dim, size_t value_dim, const float* p,
                              size_t begin, size_t end, const float* c, float* o, size_t o_stride) {
  const FloatTag d;
  for (; dim + kVecs * kLanes <= value_dim; dim += kVecs * kLanes) {
    Accumulate<N, kVecs>(d, source, dim, p, begin, end, c, o, o_stride);
  }
  if (dim == value_dim) return;
  if constexpr (kVecs > 1) {
    AccumulateRow<N, kVecs / 2>(source, dim, value_dim, p, begin, end, c, o, o_stride);
  } else if constexpr (kLanes > 8) {
    Accumulate<N, 1>(hn::CappedTag<float, 8>(), source, dim, p, begin, end, c, o, o_stride);
  }
}

// Which slots of a span a query sees: [begin, end), empty when begin >= end.
struct Slots {
  int64_t begin, end;
  bool Empty() const { return begin >= end; }
  bool All() const { return begin == 0 && end == static_cast<int64_t>(kSpan); }
};

constexpr size_t kSpanVecs = kSpan / kLanes;

// Which slots the vector `v` of a span shows.
HWY_INLINE hn::Mask<FloatTag> SeenMask(Slots seen, size_t v) {
  const hn::RebindToSigned<FloatTag> di;
  const auto slot = hn::Iota(di, static_cast<int32_t>(v * kLanes));
  const auto begin = hn::Set(di, static_cast<int32_t>(seen.begin));
  const auto end = hn::Set(di, static_cast<int32_t>(seen.end));
  return hn::RebindMask(FloatTag(), hn::AndNot(hn::Lt(slot, begin), hn::Lt(slot, end)));
}

// cap * tanh(score / cap), in place.
HWY_INLINE void CapScores(const AttentionArgs& a, FloatVec (&s)[kSpanVecs]) {
  const FloatTag d;
  const FloatVec cap = hn::Set(d, a.soft_cap);
  HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) {
    s[v] = hn::Mul(cap, Tanh(d, hn::Div(s[v], cap)));
  }
}

// The largest of the scores that are seen; `s` is left with the others at the lowest.
HWY_INLINE float LargestSeen(Slots seen, FloatVec (&s)[kSpanVecs]) {
  const FloatTag d;
  if (!seen.All()) {
    HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) {
      s[v] = hn::IfThenElse(SeenMask(seen, v), s[v], hn::Set(d, kLowest));
    }
  }
  FloatVec top = s[0];
  HWY_UNROLL(64) for (size_t v = 1; v < kSpanVecs; ++v) top = hn::Max(top, s[v]);
  return hn::ReduceMax(d, top);
}

// The soft-max of one query over one span, for products of floats.
struct FloatSoftMax {
  // Raw scores to final ones in place: scale, cap, mask. Returns the largest.
  static HWY_INLINE float Finish(const AttentionArgs& a, Slots seen, float* HWY_RESTRICT scores) {
    const FloatTag d;
    const FloatVec scale = hn::Set(d, a.scale);
    FloatVec s[kSpanVecs];
    HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) {
      s[v] = hn::Mul(hn::Load(d, scores + v * kLanes), scale);
    }
    if (a.soft_cap > 0) CapScores(a, s);
    const float top = LargestSeen(seen, s);
    HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) hn::Store(s[v], d, scores + v * kLanes);
    return top;
  }

  // Scores to weights in place, 0 where nothing is seen. Returns the sum of the span's weights.
  static HWY_INLINE float Weigh(const AttentionArgs&, float max, Slots seen,
                                float* HWY_RESTRICT scores) {
    const FloatTag d;
    const FloatVec maxes = hn::Set(d, max);
    FloatVec w[kSpanVecs], lanes[kSumVecs];
    HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) {
      w[v] = ExpNonPositive(d, hn::Sub(hn::Load(d, scores + v * kLanes), maxes));
    }
    if (!seen.All()) {  // again, for scores as low as the mask's own
      HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) {
        w[v] = hn::IfThenElseZero(SeenMask(seen, v), w[v]);
      }
    }
    HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) hn::Store(w[v], d, scores + v * kLanes);
    HWY_UNROLL(64) for (size_t v = 0; v < kSumVecs; ++v) {
      lanes[v] = hn::Add(hn::Add(w[v], w[v + kSumVecs]),
                         hn::Add(w[v + 2 * kSumVecs], w[v + 3 * kSumVecs]));
    }
    return SumTree(lanes);
  }
};

#if SLUICE_PAIR_WEIGHTS
// The same for products of bfloat16 pairs. Weights keep 8 bits, so the exponential needs no more
// than 14, and the scale goes into its first step.
struct PairSoftMax {
  // Raw scores stay raw unless there is a cap. Returns the largest final one.
  static HWY_INLINE float Finish(const AttentionArgs& a, Slots seen, float* HWY_RESTRICT scores) {
    const FloatTag d;
    FloatVec s[kSpanVecs];
    HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) s[v] = hn::Load(d, scores + v * kLanes);
    if (a.soft_cap <= 0) return LargestSeen(seen, s) * a.scale;
    const FloatVec scale = hn::Set(d, a.scale);
    HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) s[v] = hn::Mul(s[v], scale);
    CapScores(a, s);
    HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) hn::Store(s[v], d, scores + v * kLanes);
    return LargestSeen(seen, s);
  }

  // 2^x for x <= 0, relative error 7.5e-5; 2^-125 for all x below.
  static HWY_INLINE FloatVec Exp2(FloatVec x) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec magic = hn::Set(d, math::kRoundMagic);
    x = hn::Max(x, hn::Set(d, -125.0f));
    const FloatVec t = hn::Add(x, magic), r = hn::Sub(x, hn::Sub(t, magic));
    FloatVec p = hn::MulAdd(hn::Set(d, 5.517167e-2f), r, hn::Set(d, 0.24261112f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.693261f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.99992807f));
    return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, t))));
  }

  // Scores to weights in place: [32] pairs of slots. What is summed are the rounded weights: the
  // result is a true mean of values, and where one weight outgrows the others its rounding cancels.
  static HWY_INLINE float Weigh(const AttentionArgs& a, float max, Slots seen,
                                float* HWY_RESTRICT scores) {
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> du;
    const hn::Repartition<hwy::bfloat16_t, FloatTag> d16;
    constexpr size_t kPairVecs = kSpanVecs / 2;
    constexpr float kLog2E = 1.44269504f;
    const FloatVec scale = hn::Set(d, a.soft_cap > 0 ? kLog2E : a.scale * kLog2E);
    const FloatVec shift = hn::Set(d, max * -kLog2E);
    FloatVec w[kSpanVecs], sums[kPairVecs], lanes[kSumVecs];
    HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) {
      w[v] = Exp2(hn::MulAdd(hn::Load(d, scores + v * kLanes), scale, shift));
    }
    if (!seen.All()) {
      HWY_UNROLL(64) for (size_t v = 0; v < kSpanVecs; ++v) {
        w[v] = hn::IfThenElseZero(SeenMask(seen, v), w[v]);
      }
    }
    HWY_UNROLL(64) for (size_t v = 0; v < kPairVecs; ++v) {
      const auto pairs = hn::BitCast(du, hn::OrderedDemote2To(d16, w[2 * v], w[2 * v + 1]));
      hn::Store(hn::BitCast(d, pairs), d, scores + v * kLanes);
      sums[v] = hn::Add(hn::BitCast(d, hn::ShiftLeft<16>(pairs)),
                        hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xffff0000u))));
    }
    HWY_UNROLL(64) for (size_t v = 0; v < kSumVecs; ++v) {
      lanes[v] = hn::Add(sums[v], sums[v + kSumVecs]);
    }
    return SumTree(lanes);
  }
};
#endif  // SLUICE_PAIR_WEIGHTS

// A query's state: `width` output sums, a multiple of 16, and a Softmax.
HWY_INLINE Softmax LoadSoftmax(const float* state, size_t width) {
  return {state[width], state[width + 1]};
}
HWY_INLINE void StoreSoftmax(Softmax s, float* state, size_t width) {
  state[width] = s.max;
  state[width + 1] = s.sum;
}
HWY_INLINE void ClearState(float* state, size_t width) {
  for (size_t i = 0; i < width; i += kLanes)
    hn::StoreU(hn::Zero(FloatTag()), FloatTag(), state + i);
  StoreSoftmax({kLowest, 0.0f}, state, width);
}

HWY_INLINE float Exp1(float x) {
  return hn::GetLane(ExpNonPositive(FloatTag(), hn::Set(FloatTag(), x)));
}
// The fused product of three floats, also where the compiler has no scalar FMA.
HWY_INLINE float Fma1(float a, float b, float c) {
  const hn::CappedTag<float, 4> d;
  return hn::GetLane(hn::MulAdd(hn::Set(d, a), hn::Set(d, b), hn::Set(d, c)));
}

// The soft-max of one span for N queries: raw scores to weights, maxima and sums moved on in the
// states, and the factors for what had been summed before. A query that sees nothing keeps its
// state. The steps of all queries alternate, so that one's latencies hide behind another's work.
template <class SoftMax, size_t N>
HWY_INLINE void SoftMaxSpan(const AttentionArgs& a, const Slots (&seen)[N],
                            float* HWY_RESTRICT scores, float* HWY_RESTRICT states, size_t stride,
                            size_t width, float* HWY_RESTRICT factor) {
  constexpr size_t kPadded = (N + kLanes - 1) / kLanes * kLanes;
  const FloatTag d;
  HWY_ALIGN float drop[kPadded] = {}, sum[kPadded] = {}, old_sum[kPadded] = {};
  for (size_t t = 0; t < N; ++t) {
    Softmax s = LoadSoftmax(states + t * stride, width);
    if (!seen[t].Empty()) {
      const float top = SoftMax::Finish(a, seen[t], scores + t * kSpan);
      const float max = HWY_MAX(s.max, top);
      drop[t] = s.max - max;
      s.max = max;
    }
    old_sum[t] = s.sum;
    StoreSoftmax(s, states + t * stride, width);
  }
  for (size_t t = 0; t < N; ++t) {
    if (seen[t].Empty()) {
      hwy::ZeroBytes(scores + t * kSpan, kSpan * sizeof(float));
    } else {
      sum[t] = SoftMax::Weigh(a, states[t * stride + width], seen[t], scores + t * kSpan);
    }
  }
  for (size_t i = 0; i < kPadded; i += kLanes) {
    const FloatVec f = ExpNonPositive(d, hn::Load(d, drop + i));
    hn::Store(f, d, factor + i);
    hn::Store(hn::MulAdd(hn::Load(d, old_sum + i), f, hn::Load(d, sum + i)), d, sum + i);
  }
  for (size_t t = 0; t < N; ++t) states[t * stride + width + 1] = sum[t];
}

// state = state (earlier units) + next. An empty side has a factor of 0 or sums of 0: it changes
// nothing.
HWY_INLINE void MergeState(const float* HWY_RESTRICT next, size_t width,
                           float* HWY_RESTRICT state) {
  const FloatTag d;
  const Softmax a = LoadSoftmax(state, width), b = LoadSoftmax(next, width);
  const float max = HWY_MAX(a.max, b.max), ca = Exp1(a.max - max), cb = Exp1(b.max - max);
  const FloatVec va = hn::Set(d, ca), vb = hn::Set(d, cb);
  for (size_t i = 0; i < width; i += kLanes) {
    const FloatVec old = hn::Mul(hn::LoadU(d, state + i), va);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, next + i), vb, old), d, state + i);
  }
  StoreSoftmax({max, Fma1(b.sum, cb, a.sum * ca)}, state, width);
}

// out = sums / sum of weights. A sink joins the maximum and the denominator here, after the last
// unit. Adding 0 turns -0 into 0: skipped work can change the sign of a zero and nothing else.
HWY_INLINE void FinishState(const float* HWY_RESTRICT state, size_t width, const float* sink,
                            size_t value_dim, float* HWY_RESTRICT out) {
  const FloatTag d;
  const Softmax s = LoadSoftmax(state, width);
  float factor = s.sum > 0 ? 1.0f / s.sum : 0.0f;
  if (sink) {
    const float max = HWY_MAX(s.max, *sink), c = Exp1(s.max - max);
    factor = c / Fma1(s.sum, c, Exp1(*sink - max));
  }
  const FloatVec f = hn::Set(d, factor), zero = hn::Zero(d);
  for (size_t i = 0; i < value_dim; i += kLanes) {
    const FloatVec v = hn::Add(hn::Mul(hn::LoadU(d, state + i), f), zero);
    hn::StoreN(v, d, out + i, value_dim - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_SIMD_ATTENTION_INL_H_
