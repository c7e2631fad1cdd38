// SIMD unpacking of GGUF rows in place, for the row codecs of quant/*.cc (the
// interface is in simd/row_kernel-inl.h). Vector i of a step holds k = 4 kLanes i ..
// of the row: two units on AVX-512, one on AVX2, half of one on 128 bits.
#if defined(SLUICE_QUANT_ROW_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_QUANT_ROW_UNPACK_INL_H_
#undef SLUICE_QUANT_ROW_UNPACK_INL_H_
#else
#define SLUICE_QUANT_ROW_UNPACK_INL_H_
#endif

#include "quant/blocks.h"
#include "quant/unpack-inl.h"
#include "simd/row_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Unit of vector i, and its half on 128 bits.
constexpr size_t UnitOf(size_t i) { return kWide ? 2 * i : kParts == 2 ? i : i / 2; }
constexpr size_t HalfOf(size_t i) { return kParts == 4 ? i % 2 : 0; }

// 16 bytes in every 128-bit block, or with kWide 16 of the first unit and 16 of the second.
template <size_t kStride>
HWY_INLINE VU8 DupSixteen(const uint8_t* p) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + kStride));
  return VU8{_mm512_mask_broadcast_i32x4(_mm512_broadcast_i32x4(a), 0xff00, b)};
#else
  return hn::LoadDup128(D8(), p);
#endif
}

// 32 bytes: twice with kWide, one of its halves on 128 bits.
template <size_t kHalf>
HWY_INLINE VU8 DupThirtyTwo(const uint8_t* p) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return VU8{_mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
#else
  return hn::LoadU(D8(), p + 16 * kHalf);
#endif
}

// v shifted right by kFirst in the first half of the vector and by kSecond in the second.
template <int kFirst, int kSecond>
HWY_INLINE VU8 ShiftHalvesRight(VU8 v) {
  using D64 = hn::Repartition<uint64_t, D8>;
  alignas(64) static constexpr uint64_t kBits[8] = {
      kFirst,  kFirst, kWide ? kFirst : kSecond, kWide ? kFirst : kSecond, kSecond, kSecond,
      kSecond, kSecond};
  return hn::BitCast(D8(), hn::Shr(hn::BitCast(D64(), v), hn::Load(D64(), kBits)));
}

// The same to the left; negative: to the right.
template <int kFirst, int kSecond>
HWY_INLINE VU8 ShiftHalvesLeft(VU8 v) {
  if constexpr (!kWide) {
    return ShiftBytesRight<-kFirst>(v);
  } else if constexpr (kSecond < 0) {
    static_assert(kFirst <= 0);
    return ShiftHalvesRight<-kFirst, -kSecond>(v);
  } else {
    using D64 = hn::Repartition<uint64_t, D8>;
    alignas(64) static constexpr uint64_t kBits[8] = {kFirst,  kFirst,  kFirst,  kFirst,
                                                      kSecond, kSecond, kSecond, kSecond};
    return hn::BitCast(D8(), hn::Shl(hn::BitCast(D64(), v), hn::Load(D64(), kBits)));
  }
}

// 32 bytes at a and 32 at b with kWide, else those at a.
HWY_INLINE VU8 LoadTwoHalves(const uint8_t* a, const uint8_t* b) {
#if HWY_MAX_BYTES >= 64
  const hn::Half<D8> half;
  return hn::Combine(D8(), hn::LoadU(half, b), hn::LoadU(half, a));
#else
  (void)b;
  return hn::LoadU(D8(), a);
#endif
}

// Codes of 32-weight blocks of 16 nibble bytes, kStride apart: low nibbles first.
template <size_t i, size_t kStride>
HWY_INLINE VU8 RowNibbles(const uint8_t* q) {
  const uint8_t* const p = q + UnitOf(i) * kStride;
  VU8 v;
  if constexpr (kWide) {
#if HWY_MAX_BYTES >= 64
    using D64 = hn::Repartition<uint64_t, D8>;
    alignas(64) static constexpr uint64_t kBits[8] = {0, 0, 4, 4, 0, 0, 4, 4};
    v = hn::BitCast(D8(),
                    hn::Shr(hn::BitCast(D64(), DupSixteen<kStride>(p)), hn::Load(D64(), kBits)));
#endif
  } else if constexpr (kParts == 2) {
    v = ShiftHalvesRight<0, 4>(DupSixteen<kStride>(p));
  } else {
    v = ShiftBytesRight<HalfOf(i) * 4>(hn::LoadU(D8(), p));
  }
  return hn::And(v, hn::Set(D8(), 0x0f));
}

// Codes of super-blocks whose units 2 c and 2 c + 1 are the low and high nibbles of 32 bytes at
// q + 32 c. i counts inside the block.
template <size_t i>
HWY_INLINE VU8 RowNibblePairs(const uint8_t* q) {
  const VU8 both = DupThirtyTwo<HalfOf(i)>(q + UnitOf(i) / 2 * 32);
  VU8 v;
  if constexpr (kWide) {
    v = ShiftHalvesRight<0, 4>(both);
  } else {
    v = ShiftBytesRight<UnitOf(i) % 2 * 4>(both);
  }
  return hn::And(v, hn::Set(D8(), 0x0f));
}

// table[nibble] + zero: `table` has 16 entries.
HWY_INLINE VU8 RowValues(VU8 nibbles, const int8_t* table, uint8_t zero) {
  const VU8 values = hn::BitCast(D8(), hn::LoadDup128(DI8(), table));
  return hn::TableLookupBytes(hn::Add(values, hn::Set(D8(), zero)), nibbles);
}

// 16 in each byte whose bit is set in the 32-bit words at `high`, kStride apart: bit k for weight
// k.
template <size_t i, size_t kStride>
HWY_INLINE VU8 RowFifthBits(const uint8_t* high) {
  const uint8_t* const p = high + UnitOf(i) * kStride;
  uint8_t bits[8] = {};
  memcpy(bits, p, kParts == 4 ? 2 : 4);
  if constexpr (kParts == 4) memcpy(bits, p + 2 * HalfOf(i), 2);
  if constexpr (kWide) memcpy(bits + 4, p + kStride, 4);
  return hn::IfThenElseZero(hn::LoadMaskBits(D8(), bits), hn::Set(D8(), 0x10));
}

// The f16 at `offset` of each block of a step.
template <class C>
HWY_INLINE void RowHalves(const uint8_t* p, size_t offset, uint16_t* out) {
  // Compilers would collect them in a register with shuffles, which are scarce here.
  volatile uint16_t* const each = out;
  SLUICE_UNROLL
  for (size_t i = 0; i < kRowUnits; ++i) each[i] = Load16(p + i * C::kBlockBytes + offset);
}
HWY_INLINE VF WidenHalves(const uint16_t* p) { return WidenF16(p, 0); }
HWY_INLINE VF LoadScales(const float* p) { return hn::LoadU(DF(), p); }

// Nibble s, or bits 2 s and 2 s + 1, to byte s.
HWY_INLINE uint64_t SpreadNibbles(uint64_t v) {
  v = (v | v << 16) & 0x0000ffff0000ffff;
  v = (v | v << 8) & 0x00ff00ff00ff00ff;
  return (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
}
HWY_INLINE uint64_t SpreadPairs(uint64_t v) {
  v = (v | v << 24) & 0x000000ff000000ff;
  v = (v | v << 12) & 0x000f000f000f000f;
  return (v | v << 6) & 0x0303030303030303;
}

using DF8 = hn::CappedTag<float, 8>;

HWY_INLINE hn::Vec<DF8> DupF16(const uint8_t* p) {
  const hn::Rebind<uint16_t, DF8> d16;
  const hn::Rebind<hwy::float16_t, DF8> df16;
  return hn::PromoteTo(DF8(), hn::BitCast(df16, hn::Set(d16, Load16(p))));
}

// out[i] = factor * (small[i] + bias) for 8 small integers.
HWY_INLINE void ScaleEight(hn::Vec<DF8> factor, uint64_t eight, int bias, float* out) {
  const hn::Rebind<uint8_t, DF8> d8;
  const hn::Rebind<int32_t, DF8> d32;
  uint8_t small[8];
  memcpy(small, &eight, 8);
  SLUICE_UNROLL
  for (size_t i = 0; i < 8; i += HWY_MAX_LANES_D(DF8)) {
    const auto v = hn::Add(hn::PromoteTo(d32, hn::LoadU(d8, small + i)), hn::Set(d32, bias));
    hn::StoreU(hn::Mul(factor, hn::ConvertTo(DF8(), v)), DF8(), out + i);
  }
}

// Q4_K and Q5_K: d * sc and dmin * mn of the 8 units of each block (bits: k_scales.h).
template <class C>
HWY_INLINE void RowKScales(const uint8_t* p, float* scale, float* min) {
  constexpr uint32_t kLow2s = 0x03030303, kLow4s = 0x0f0f0f0f, kLow6s = 0x3f3f3f3f;
  SLUICE_UNROLL
  for (size_t i = 0; i < kRowUnits / 8; ++i, p += C::kBlockBytes) {
    const uint32_t a = Load32(p + 4), b = Load32(p + 8), c = Load32(p + 12);
    const uint64_t sc = (a & kLow6s) | uint64_t{(c & kLow4s) | (a >> 6 & kLow2s) << 4} << 32;
    const uint64_t mn = (b & kLow6s) | uint64_t{(c >> 4 & kLow4s) | (b >> 6 & kLow2s) << 4} << 32;
    ScaleEight(DupF16(p), sc, 0, scale + 8 * i);
    ScaleEight(DupF16(p + 2), mn, 0, min + 8 * i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
