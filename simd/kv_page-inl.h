// How a vector of a page's keys or values becomes floats. Every conversion is
// exact, so the bytes of a result do not tell whether it happened on the fly
// or once per tile. Only simd/*.cc includes this.
#if defined(SLUICE_SIMD_KV_PAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_KV_PAGE_INL_H_
#undef SLUICE_SIMD_KV_PAGE_INL_H_
#else
#define SLUICE_SIMD_KV_PAGE_INL_H_
#endif

#include <stddef.h>
#include <stdint.h>

#include "simd/attention.h"
#include "simd/kv_page.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Keys and values stored as T. `value_stride` is in elements.
template <typename T>
struct PlainSource {
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

// int8 times a scale. The product of 8 and 11 bits is exact in a float. The scales are turned into
// floats once per page, in `table`, [key_dim/32 + value_dim/32][64]: one load each afterwards.
struct Q8Source {
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
      return f(PlainSource<hwy::bfloat16_t>(shape, page, table));
    case KvType::kQ8:
      return f(Q8Source(shape, page, table));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_SIMD_KV_PAGE_INL_H_
