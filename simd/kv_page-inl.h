// How a vector of a page's keys or values is read, and multiplied: as floats, or,
// where the CPU multiplies pairs of bfloat16, as such pairs. Every conversion to
// floats is exact, so the bytes of a result do not tell whether it happened on
// the fly or once per tile. Only simd/*.cc includes this.
#if defined(SLUICE_SIMD_KV_PAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_KV_PAGE_INL_H_
#undef SLUICE_SIMD_KV_PAGE_INL_H_
#else
#define SLUICE_SIMD_KV_PAGE_INL_H_
#endif

#include <stddef.h>
#include <stdint.h>

#include "simd/attention.h"
#include "simd/bf16_dot-inl.h"
#include "simd/kv_page.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Products of floats: one dimension, or one slot, a step.
struct FloatMath {
  static constexpr size_t kPerStep = 1;
  template <class D>
  static HWY_INLINE hn::Vec<D> MulAdd(D, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> sum) {
    return hn::MulAdd(a, b, sum);
  }
};

// Keys and values stored as T. `value_stride` is in elements.
template <typename T>
struct PlainSource {
  using Math = FloatMath;
  const T* keys;    // [key_dim][64]
  const T* values;  // [64][value_stride]
  size_t value_stride;

  PlainSource(const T* k, const T* v, size_t stride) : keys(k), values(v), value_stride(stride) {}
  PlainSource(const KvShape& shape, const uint8_t* page, float*)
      : PlainSource(reinterpret_cast<const T*>(page),
                    reinterpret_cast<const T*>(page + KvLayout(shape).values), shape.value_dim) {}

  template <class D>
  static HWY_INLINE hn::Vec<D> Floats(D d, const T* p) {
    if constexpr (hwy::IsSame<T, float>()) {
      return hn::LoadU(d, p);
    } else {
      return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), p));
    }
  }
  // Dimension `dim` of the positions from `slot` on.
  template <class D>
  HWY_INLINE hn::Vec<D> Key(D d, size_t dim, size_t slot) const {
    return Floats(d, keys + dim * kSpan + slot);
  }
  // Dimensions from `dim` on of one position.
  template <class D>
  HWY_INLINE hn::Vec<D> Value(D d, size_t slot, size_t dim) const {
    return Floats(d, values + slot * value_stride + dim);
  }
};

// Pairs of bfloat16 in 32 bits, the even one in the low half, read as floats.
struct Bf16Source {
  using Math = FloatMath;
  const uint32_t* keys;    // [key_dim / 2][64]
  const uint32_t* values;  // [32][value_dim]
  size_t value_dim;

  Bf16Source(const KvShape& shape, const uint8_t* page, float*)
      : keys(reinterpret_cast<const uint32_t*>(page)),
        values(reinterpret_cast<const uint32_t*>(page + KvLayout(shape).values)),
        value_dim(shape.value_dim) {}

  template <class D>
  static HWY_INLINE hn::Vec<D> Half(D d, const uint32_t* p, bool odd) {
    const hn::RebindToUnsigned<D> du;
    const auto pairs = hn::LoadU(du, p);
    return hn::BitCast(d,
                       odd ? hn::And(pairs, hn::Set(du, 0xffff0000u)) : hn::ShiftLeft<16>(pairs));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> Key(D d, size_t dim, size_t slot) const {
    return Half(d, keys + dim / 2 * kSpan + slot, dim % 2 != 0);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> Value(D d, size_t slot, size_t dim) const {
    return Half(d, values + slot / 2 * value_dim + dim, slot % 2 != 0);
  }
};

#if SLUICE_FAST_DOT_BF16
// Products of pairs of bfloat16: sum + a.even * b.even + a.odd * b.odd, rounded as the CPU does.
struct PairMath {
  static constexpr size_t kPerStep = 2;
  template <class D>
  static HWY_INLINE hn::Vec<D> MulAdd(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> sum) {
    const hn::Repartition<hwy::bfloat16_t, D> pairs;
    hn::Vec<D> none = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, hn::BitCast(pairs, a), hn::BitCast(pairs, b), sum,
                                         none);
  }
};

// The same pages as pairs: a "float" of it is a pair of dimensions of a key, or a pair of slots of
// a value. kAhead: each load asks for the same line of the next page too. Pages lie scattered and
// are shorter than what hardware prefetchers need to see. One thread, KV beyond the caches (Zen 4):
// 48 % faster with heads of 64, 13 % with 128; in the caches 0 and 5 % slower.
template <bool kAhead>
struct PairSource {
  using Math = PairMath;
  const float *keys, *values;
  ptrdiff_t next;  // bytes from this page to the next
  size_t value_dim;

  PairSource(const KvShape& shape, const uint8_t* page, const uint8_t* next_page)
      : keys(reinterpret_cast<const float*>(page)),
        values(reinterpret_cast<const float*>(page + KvLayout(shape).values)),
        next(next_page - page),
        value_dim(shape.value_dim) {}
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const float* p) const {
    if constexpr (kAhead) {  // into L2: both pages do not fit in L1
      __builtin_prefetch(reinterpret_cast<const uint8_t*>(p) + next, 0, 2);
    }
    return hn::LoadU(d, p);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> Key(D d, size_t pair, size_t slot) const {
    return Load(d, keys + pair * kSpan + slot);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> Value(D d, size_t pair, size_t dim) const {
    return Load(d, values + pair * value_dim + dim);
  }
};
#endif  // SLUICE_FAST_DOT_BF16

// int8 times a scale. The product of 8 and 11 bits is exact in a float. The scales are turned into
// floats once per page, in `table`, [key_dim/32 + value_dim/32][64]: one load each afterwards.
struct Q8Source {
  using Math = FloatMath;
  const int8_t *keys, *values;
  const float *key_scales, *value_scales;
  size_t value_dim;

  Q8Source(const KvShape& shape, const uint8_t* page, float* table)
      : keys(reinterpret_cast<const int8_t*>(page)),
        values(reinterpret_cast<const int8_t*>(page + KvLayout(shape).values)),
        key_scales(table),
        value_scales(table + shape.key_dim / kKvGroup * kSpan),
        value_dim(shape.value_dim) {
    const KvLayout at(shape);
    Convert(page + at.key_scales, shape.key_dim / kKvGroup * kSpan, table);
    Convert(page + at.value_scales, shape.value_dim / kKvGroup * kSpan,
            table + shape.key_dim / kKvGroup * kSpan);
  }
  static void Convert(const uint8_t* from, size_t n, float* to) {
    const FloatTag d;
    const hn::Rebind<hwy::float16_t, FloatTag> d16;
    const hwy::float16_t* f = reinterpret_cast<const hwy::float16_t*>(from);
    for (size_t i = 0; i < n; i += kLanes) {
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(d16, f + i)), d, to + i);
    }
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> Floats(D d, const int8_t* p) {
    const hn::RebindToSigned<D> di;
    return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(hn::Rebind<int8_t, D>(), p)));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> Key(D d, size_t dim, size_t slot) const {
    return hn::Mul(Floats(d, keys + dim * kSpan + slot),
                   hn::LoadU(d, key_scales + dim / kKvGroup * kSpan + slot));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> Value(D d, size_t slot, size_t dim) const {
    return hn::Mul(Floats(d, values + slot * value_dim + dim),
                   hn::Set(d, value_scales[dim / kKvGroup * kSpan + slot]));
  }
};

// Calls f(source) with the source that reads this type of page.
template <class F>
HWY_INLINE void WithSource(const KvShape& shape, const uint8_t* page, float* table, const F& f) {
  switch (shape.type) {
    case KvType::kF32:
      return f(PlainSource<float>(shape, page, table));
    case KvType::kF16:
      return f(PlainSource<hwy::float16_t>(shape, page, table));
    case KvType::kBF16:
      return f(Bf16Source(shape, page, table));
    case KvType::kQ8:
      return f(Q8Source(shape, page, table));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_SIMD_KV_PAGE_INL_H_
