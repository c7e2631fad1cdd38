// Rows of float formats as panels (pictures in panels.h), a cache line of each of 16
// rows at a time, transposed in registers: at load, and for rows in place in every product.
// Also the codec of F32, to which other formats are decoded (generic_matmul.cc).
#if defined(SLUICE_QUANT_FLOAT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_QUANT_FLOAT_ROWS_INL_H_
#undef SLUICE_QUANT_FLOAT_ROWS_INL_H_
#else
#define SLUICE_QUANT_FLOAT_ROWS_INL_H_
#endif

#include "quant/pack-inl.h"
#include "simd/float_panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// In every 128-bit block: element j of v[i] becomes element i of v[j]. As many vectors as a block
// has elements.
template <class D, size_t kN = 16 / sizeof(hn::TFromD<D>)>
HWY_INLINE void TransposeBlocks(D d, hn::Vec<D> (&v)[kN]) {
  SLUICE_UNROLL
  for (size_t round = 1; round < kN; round *= 2) {
    hn::Vec<D> t[kN];
    SLUICE_UNROLL
    for (size_t i = 0; i < kN / 2; ++i) {
      t[2 * i] = hn::InterleaveLower(d, v[i], v[i + kN / 2]);
      t[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kN / 2]);
    }
    SLUICE_UNROLL
    for (size_t i = 0; i < kN; ++i) v[i] = t[i];
  }
}

// 64 bytes of each of 16 rows, from byte `at`, as [16 words][16 rows]. Eight rows are read to the
// end of their line before the next: 16 rows a power of two apart are more lines than their set of
// the L1 cache has places.
template <class D = hn::CappedTag<uint32_t, 8>>
HWY_INLINE void PackLineOfWords(BlockRows rows, size_t at, uint8_t* panel) {
  constexpr size_t kRows = HWY_MAX_LANES_D(D);
  const D d;
  const hn::FixedTag<uint32_t, 4> d4;
  uint32_t* const out = reinterpret_cast<uint32_t*>(panel);
  for (size_t r = 0; r < kPanelRows; r += kRows) {
    for (size_t k = 0; k < 16; k += 4) {
      const auto row = [&](size_t i) HWY_ATTR {
        return hn::LoadU(d4, reinterpret_cast<const uint32_t*>(rows[r + i] + at) + k);
      };
      const auto load = [&](size_t i) HWY_ATTR {
        if constexpr (kRows == 8) {
          return hn::Combine(d, row(i + 4), row(i));
        } else {
          return row(i);
        }
      };
      hn::Vec<D> v[4] = {load(0), load(1), load(2), load(3)};
      TransposeBlocks(d, v);
      SLUICE_UNROLL
      for (size_t j = 0; j < 4; ++j) hn::StoreU(v[j], d, out + (k + j) * kPanelRows + r);
    }
  }
}

// The same for [32 halves][16 rows].
template <class D = hn::CappedTag<uint16_t, 16>>
HWY_INLINE void PackLineOfHalves(BlockRows rows, size_t at, uint8_t* panel) {
  constexpr size_t kN = HWY_MAX_LANES_D(D);
  const D d;
  const hn::FixedTag<uint16_t, 8> d8;
  uint16_t* const out = reinterpret_cast<uint16_t*>(panel);
  for (size_t r = 0; r < kPanelRows; r += 8) {
    for (size_t k = 0; k < 32; k += kN) {
      const auto load = [&](size_t i) HWY_ATTR {
        return hn::LoadU(d, reinterpret_cast<const uint16_t*>(rows[r + i] + at) + k);
      };
      hn::Vec<D> v[8] = {load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)};
      TransposeBlocks(d, v);
      SLUICE_UNROLL
      for (size_t j = 0; j < 8; ++j) {
        uint16_t* const to = out + (k + j) * kPanelRows + r;
        if constexpr (kN == 16) {
          hn::StoreU(hn::LowerHalf(d8, v[j]), d8, to);
          hn::StoreU(hn::UpperHalf(d8, v[j]), d8, to + 8 * kPanelRows);
        } else {
          hn::StoreU(v[j], d, to);
        }
      }
    }
  }
}

// What the codecs of one f32 FMA chain share.
struct FloatMath {
  using Input = float;
  static HWY_INLINE VF Broadcast(const float* x) { return hn::Set(DF(), *x); }
  static HWY_INLINE VF MulAdd(VF weight, VF x, VF sum) { return Fuse(weight, x, sum); }
};

struct F32Codec : FloatMath {
  using Block = PanelF32;
  static constexpr size_t kValues = 1, kSteps = 1;
  static HWY_INLINE VF Weight(const Block& b, size_t row, size_t) {
    return hn::LoadU(DF(), b.w + row);
  }
  static HWY_INLINE void PackLine(BlockRows rows, size_t at, uint8_t* panel) {
    PackLineOfWords(rows, at, panel);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
