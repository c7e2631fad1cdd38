// SIMD unpacking of the bit planes of panels (pictures in panels.h), shared by
// the codecs of quant/*.cc. `at` is a byte of a group's 64, `row` = at / 4.
#if defined(SLUICE_QUANT_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_QUANT_UNPACK_INL_H_
#undef SLUICE_QUANT_UNPACK_INL_H_
#else
#define SLUICE_QUANT_UNPACK_INL_H_
#endif

#include "quant/panels.h"
#include "simd/matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Shifts of bytes: what crosses from the neighbour byte must be masked off by the caller.
template <int kBits>
HWY_INLINE VU8 ShiftBytesRight(VU8 v) {
  const hn::Repartition<uint16_t, D8> d16;
  if constexpr (kBits == 0) return v;
  if constexpr (kBits > 0) return hn::BitCast(D8(), hn::ShiftRight<kBits>(hn::BitCast(d16, v)));
  if constexpr (kBits < 0) return hn::BitCast(D8(), hn::ShiftLeft<-kBits>(hn::BitCast(d16, v)));
}

template <size_t kGroup>
HWY_INLINE VU8 Nibbles(const uint8_t (*q)[64], size_t at) {
  const VU8 both = hn::LoadU(D8(), q[kGroup % 4] + at);
  return hn::And(ShiftBytesRight<kGroup / 4 * 4>(both), hn::Set(D8(), 0x0f));
}

// The fifth bits of a unit, in bit 4.
template <size_t kGroup>
HWY_INLINE VU8 FifthBit(const uint8_t* h, size_t at) {
  const VU8 bits = hn::LoadU(D8(), h + at);
  return hn::And(ShiftBytesRight<static_cast<int>(kGroup) - 4>(bits), hn::Set(D8(), 0x10));
}

// Bits 4 and 5 of a unit, in place.
template <size_t kGroup>
HWY_INLINE VU8 Bits45(const uint8_t (*h)[64], size_t at) {
  const VU8 bits = hn::LoadU(D8(), h[kGroup / 4] + at);
  return hn::And(ShiftBytesRight<static_cast<int>(kGroup % 4 * 2) - 4>(bits), hn::Set(D8(), 0x30));
}

// table[nibble] + zero: `table` has 16 entries.
template <size_t kGroup>
HWY_INLINE VU8 NibbleValues(const uint8_t (*q)[64], size_t at, const int8_t* table, uint8_t zero) {
  const VU8 values = hn::BitCast(D8(), hn::LoadDup128(DI8(), table));
  return hn::TableLookupBytes(hn::Add(values, hn::Set(D8(), zero)), Nibbles<kGroup>(q, at));
}

HWY_INLINE VF WidenF16(const uint16_t* p, size_t row) {
  const hn::Rebind<uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> df16;
  return hn::PromoteTo(DF(), hn::BitCast(df16, hn::LoadU(d16, p + row)));
}
HWY_INLINE VF WidenBF16(const uint16_t* p, size_t row) {
  const hn::Rebind<uint16_t, DF> d16;
  return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(D32(), hn::LoadU(d16, p + row))));
}
// 2^(e - 128), as F32FromE8M0Half: exponents 0 and 1 are subnormal floats.
HWY_INLINE VF WidenE8M0Half(const uint8_t* p, size_t row) {
  const hn::Rebind<uint8_t, DF> d8;
  const VI32 e = hn::PromoteTo(D32(), hn::LoadU(d8, p + row));
  const VI32 normal = hn::ShiftLeft<23>(hn::Sub(e, hn::Set(D32(), 1)));
  const VI32 subnormal = hn::ShiftLeft<21>(hn::Add(e, hn::Set(D32(), 1)));
  return hn::BitCast(DF(), hn::IfThenElse(hn::Lt(e, hn::Set(D32(), 2)), subnormal, normal));
}
// Small integers as float.
template <class T>
HWY_INLINE VF WidenSmall(const T* p, size_t row) {
  const hn::Rebind<T, DF> d;
  return hn::ConvertTo(DF(), hn::PromoteTo(D32(), hn::LoadU(d, p + row)));
}
// Small integers as the sub-scales of dot-inl.h.
HWY_INLINE VI16 WidenSub(const int8_t* p, size_t row) {
  const hn::Rebind<int8_t, DF> d;
  const VI32 v = hn::PromoteTo(D32(), hn::LoadU(d, p + row));
  return hn::OddEven(hn::BitCast(D16(), hn::ShiftLeft<16>(v)), hn::BitCast(D16(), v));
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
