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

// A key's dimensions go in pairs to rows of 64 slots; a value's go into one half of its pair of
// slots. Rounded in integers: the CPU's own conversion flushes subnormals on x86 and keeps them on
// ARM.
void StoreBf16(const KvShape& shape, uint8_t* page, size_t slot, const float* key,
               const float* value) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  constexpr float kMost = 3.38953139e38f;  // the largest bfloat16
  const auto halves = [&](const float* x, size_t n) HWY_ATTR {
    const auto bits = hn::BitCast(du, Finite(d, hn::LoadN(d, x, n), kMost));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    return hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff))));
  };
  uint32_t* keys = reinterpret_cast<uint32_t*>(page) + slot;
  for (size_t i = 0; i < shape.key_dim; i += kLanes) {
    HWY_ALIGN uint32_t lanes[kLanes];
    hn::Store(halves(key + i, shape.key_dim - i), du, lanes);
    for (size_t j = 0; j < HWY_MIN(kLanes, shape.key_dim - i); j += 2) {
      keys[(i + j) / 2 * kSpan] = lanes[j] | lanes[j + 1] << 16;
    }
  }
  // Half words, not the pair at once: another thread may store the other position of the pair.
  uint16_t* values = reinterpret_cast<uint16_t*>(page + KvLayout(shape).values) +
                     slot / 2 * 2 * shape.value_dim + slot % 2;
  for (size_t i = 0; i < shape.value_dim; i += kLanes) {
    const size_t n = HWY_MIN(kLanes, shape.value_dim - i);
    HWY_ALIGN uint32_t lanes[kLanes];
    hn::Store(halves(value + i, n), du, lanes);
    for (size_t j = 0; j < n; ++j) values[2 * (i + j)] = static_cast<uint16_t>(lanes[j]);
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
      return StoreBf16(shape, page, slot, key, value);
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
float Read(KvType type, const uint8_t* data, size_t index) {
  switch (type) {
    case KvType::kF32:
      return reinterpret_cast<const float*>(data)[index];
    case KvType::kF16:
      return hwy::F32FromF16(reinterpret_cast<const hwy::float16_t*>(data)[index]);
    case KvType::kBF16:
      return hwy::F32FromBF16(reinterpret_cast<const hwy::bfloat16_t*>(data)[index]);
    case KvType::kQ8:
      return static_cast<float>(reinterpret_cast<const int8_t*>(data)[index]);
  }
  return 0;
}
}  // namespace

// For tests: plain scalar code.
void KvLoad(const KvShape& shape, const uint8_t* page, size_t slot, float* key, float* value) {
  const KvLayout at(shape);
  const bool pairs = shape.type == KvType::kBF16, q8 = shape.type == KvType::kQ8;
  const auto scale = [&](size_t scales, size_t i) {
    return q8 ? Read(KvType::kF16, page + scales, i / kKvGroup * kSpan + slot) : 1.0f;
  };
  for (size_t i = 0; i < shape.key_dim; ++i) {
    const size_t index = pairs ? (i / 2 * kSpan + slot) * 2 + i % 2 : i * kSpan + slot;
    key[i] = Read(shape.type, page, index) * scale(at.key_scales, i);
  }
  for (size_t i = 0; i < shape.value_dim; ++i) {
    const size_t index =
        pairs ? (slot / 2 * shape.value_dim + i) * 2 + slot % 2 : slot * shape.value_dim + i;
    value[i] = Read(shape.type, page + at.values, index) * scale(at.value_scales, i);
  }
}

}  // namespace sluice
#endif  // HWY_ONCE
