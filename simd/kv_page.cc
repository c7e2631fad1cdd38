// Writing one position into a KV page, and reading it back. What is stored is
// always finite: attention multiplies slots behind a query's position by 0, and
// pages pass from one sequence to the next.
#include "simd/kv_page.h"

#include <math.h>

#include <limits>

#include "simd/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/kv_page.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "simd/kv_page-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kChunk = 32;  // values converted at a time

// NaN becomes 0, what is out of range the largest value of the format.
template <class D, class V>
HWY_INLINE V Finite(D d, V v, float most) {
  v = hn::IfThenElseZero(hn::Eq(v, v), v);
  return hn::Min(hn::Max(v, hn::Set(d, -most)), hn::Set(d, most));
}

// `n` floats to the stored type, rounded to nearest even.
HWY_INLINE void Round(const float* x, size_t n, float* out) {
  const FloatTag d;
  for (size_t i = 0; i < n; i += kLanes) {
    const FloatVec v = hn::LoadN(d, x + i, n - i);
    hn::StoreN(Finite(d, v, std::numeric_limits<float>::max()), d, out + i, n - i);
  }
}

HWY_INLINE void Round(const float* x, size_t n, hwy::float16_t* out) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  for (size_t i = 0; i < n; i += kLanes) {
    const FloatVec v = hn::LoadN(d, x + i, n - i);
    HWY_ALIGN hwy::float16_t lanes[kLanes];
    hn::Store(hn::DemoteTo(d16, Finite(d, v, 65504.0f)), d16, lanes);
    hwy::CopyBytes(lanes, out + i, HWY_MIN(kLanes, n - i) * sizeof(lanes[0]));
  }
}

// In integers: the CPU's own conversion flushes subnormals on x86 and keeps them on ARM.
HWY_INLINE void Round(const float* x, size_t n, hwy::bfloat16_t* out) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Rebind<uint16_t, FloatTag> d16;
  constexpr float kMost = 3.38953139e38f;  // the largest bfloat16
  for (size_t i = 0; i < n; i += kLanes) {
    const FloatVec v = hn::LoadN(d, x + i, n - i);
    const auto bits = hn::BitCast(du, Finite(d, v, kMost));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto up = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
    HWY_ALIGN uint16_t lanes[kLanes];
    hn::Store(hn::DemoteTo(d16, hn::ShiftRight<16>(up)), d16, lanes);
    hwy::CopyBytes(lanes, out + i, HWY_MIN(kLanes, n - i) * sizeof(lanes[0]));
  }
}

// 32 floats to int8 and their scale: amax / 127 rounded to f16, then x / scale rounded to nearest
// even.
HWY_INLINE hwy::float16_t RoundQ8(const float* x, int8_t* out) {
  const FloatTag d;
  const hn::Rebind<int8_t, FloatTag> d8;
  HWY_ALIGN float some[kKvGroup];
  Round(x, kKvGroup, some);
  FloatVec most = hn::Zero(d);
  for (size_t i = 0; i < kKvGroup; i += kLanes)
    most = hn::Max(most, hn::Abs(hn::Load(d, some + i)));
  const float wanted = hn::ReduceMax(d, most) / 127.0f;
  hwy::float16_t scale[1];
  Round(&wanted, 1, scale);
  const float s = hwy::F32FromF16(scale[0]);
  const FloatVec limit = hn::Set(d, 127.0f), by = hn::Set(d, s);
  for (size_t i = 0; i < kKvGroup; i += kLanes) {
    const FloatVec q = s > 0 ? hn::Div(hn::Load(d, some + i), by) : hn::Zero(d);
    const auto whole = hn::NearestInt(hn::Max(hn::Neg(limit), hn::Min(q, limit)));
    hn::StoreU(hn::DemoteTo(d8, whole), d8, out + i);
  }
  return scale[0];
}

// Keys go one to a row of 64 slots, values side by side.
template <typename T>
void StorePlain(const KvShape& shape, uint8_t* page, size_t slot, const float* key,
                const float* value) {
  T* keys = reinterpret_cast<T*>(page) + slot;
  T* values = reinterpret_cast<T*>(page + KvLayout(shape).values) + slot * shape.value_dim;
  for (size_t i = 0; i < shape.key_dim; i += kChunk) {
    const size_t n = HWY_MIN(kChunk, shape.key_dim - i);
    HWY_ALIGN T chunk[kChunk];
    Round(key + i, n, chunk);
    for (size_t j = 0; j < n; ++j) keys[(i + j) * kSpan] = chunk[j];
  }
  for (size_t i = 0; i < shape.value_dim; i += kChunk) {
    Round(value + i, HWY_MIN(kChunk, shape.value_dim - i), values + i);
  }
}

void StoreQ8(const KvShape& shape, uint8_t* page, size_t slot, const float* key,
             const float* value) {
  const KvLayout at(shape);
  int8_t* keys = reinterpret_cast<int8_t*>(page) + slot;
  int8_t* values = reinterpret_cast<int8_t*>(page + at.values) + slot * shape.value_dim;
  hwy::float16_t* key_scales = reinterpret_cast<hwy::float16_t*>(page + at.key_scales) + slot;
  hwy::float16_t* value_scales = reinterpret_cast<hwy::float16_t*>(page + at.value_scales) + slot;
  for (size_t i = 0; i < shape.key_dim; i += kKvGroup) {
    HWY_ALIGN int8_t chunk[kKvGroup];
    key_scales[i / kKvGroup * kSpan] = RoundQ8(key + i, chunk);
    for (size_t j = 0; j < kKvGroup; ++j) keys[(i + j) * kSpan] = chunk[j];
  }
  for (size_t i = 0; i < shape.value_dim; i += kKvGroup) {
    value_scales[i / kKvGroup * kSpan] = RoundQ8(value + i, values + i);
  }
}

void KvStore(const KvShape& shape, uint8_t* page, size_t slot, const float* key,
             const float* value) {
  switch (shape.type) {
    case KvType::kF32:
      return StorePlain<float>(shape, page, slot, key, value);
    case KvType::kF16:
      return StorePlain<hwy::float16_t>(shape, page, slot, key, value);
    case KvType::kBF16:
      return StorePlain<hwy::bfloat16_t>(shape, page, slot, key, value);
    case KvType::kQ8:
      return StoreQ8(shape, page, slot, key, value);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(KvStore);

const char* KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kF16:
      return "f16";
    case KvType::kBF16:
      return "bf16";
    case KvType::kQ8:
      return "q8";
  }
  return "?";
}

size_t KvPageBytes(const KvShape& shape) { return KvLayout(shape).bytes; }

void KvStore(const KvShape& shape, uint8_t* page, size_t slot, const float* key,
             const float* value) {
  HWY_DYNAMIC_DISPATCH(KvStore)(shape, page, slot, key, value);
}

namespace {
float Read(const KvShape& shape, const uint8_t* data, const uint8_t* scales, size_t index,
           size_t scale_index) {
  switch (shape.type) {
    case KvType::kF32:
      return reinterpret_cast<const float*>(data)[index];
    case KvType::kF16:
      return hwy::F32FromF16(reinterpret_cast<const hwy::float16_t*>(data)[index]);
    case KvType::kBF16:
      return hwy::F32FromBF16(reinterpret_cast<const hwy::bfloat16_t*>(data)[index]);
    case KvType::kQ8:
      return static_cast<float>(reinterpret_cast<const int8_t*>(data)[index]) *
             hwy::F32FromF16(reinterpret_cast<const hwy::float16_t*>(scales)[scale_index]);
  }
  return 0;
}
}  // namespace

// Once per position of a context shift and in tests: plain scalar code.
void KvLoad(const KvShape& shape, const uint8_t* page, size_t slot, float* key, float* value) {
  const KvLayout at(shape);
  for (size_t i = 0; i < shape.key_dim; ++i) {
    key[i] = Read(shape, page, page + at.key_scales, i * kSpan + slot, i / kKvGroup * kSpan + slot);
  }
  for (size_t i = 0; i < shape.value_dim; ++i) {
    value[i] = Read(shape, page + at.values, page + at.value_scales, slot * shape.value_dim + i,
                    i / kKvGroup * kSpan + slot);
  }
}

}  // namespace sluice
#endif  // HWY_ONCE
