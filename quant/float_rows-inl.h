// The matrix product of float formats with GGUF rows in place: a chunk of 16 rows
// is widened and transposed into scratch, then multiplied like a panel of F32.
// The row codec says how bytes become floats:
//   kBytes   per weight          Load4(bytes)   four floats
#if defined(SLUICE_QUANT_FLOAT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_QUANT_FLOAT_ROWS_INL_H_
#undef SLUICE_QUANT_FLOAT_ROWS_INL_H_
#else
#define SLUICE_QUANT_FLOAT_ROWS_INL_H_
#endif

#include <string.h>

#include "quant/pack-inl.h"
#include "simd/float_panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

using Float4 = hn::FixedTag<float, 4>;

struct F32PanelCodec {
  using Block = PanelF32;
  static HWY_INLINE VF Load(const Block& b, size_t row) { return hn::LoadU(DF(), b.w + row); }
};

// panel[k].w[r] = weight k of row r, for k in [begin, end) and four rows.
template <class C>
HWY_INLINE void WidenFourRows(BlockRows rows, size_t begin, size_t end,
                              PanelF32* HWY_RESTRICT panel, size_t r) {
  const Words4::D d;
  for (size_t k = begin; k < end; k += 4) {
    const size_t valid = std::min<size_t>(4, end - k);
    const auto load = [&](size_t i) HWY_ATTR {
      const uint8_t* bytes = rows[r + i] + k * C::kBytes;
      uint8_t tail[4 * C::kBytes] = {};
      if (valid < 4) bytes = static_cast<uint8_t*>(memcpy(tail, bytes, valid * C::kBytes));
      return hn::BitCast(d, C::Load4(bytes));
    };
    const Words4 w(load(0), load(1), load(2), load(3));
    for (size_t i = 0; i < valid; ++i) {
      hn::StoreU(hn::BitCast(Float4(), w.v[i]), Float4(), panel[k + i].w + r);
    }
  }
}

// Few rows at a time: 16 rows a power of two apart fall into the same sets of the L1 cache.
template <class C>
void WidenRows(BlockRows rows, size_t count, PanelF32* HWY_RESTRICT panel) {
  constexpr size_t kStretch = 128;
  for (size_t k = 0; k < count; k += kStretch) {
    for (size_t r = 0; r < kPanelRows; r += 4) {
      WidenFourRows<C>(rows, k, std::min(count, k + kStretch), panel, r);
    }
  }
}

template <class C>
void MatMulFloatRows(const MatMulArgs& args) {
  constexpr size_t kColumns = kFloatV * kPanelRows;
  PanelF32* const panels = reinterpret_cast<PanelF32*>(LayOut(args.scratch).floats);
  for (size_t row = args.row_begin; row < args.row_end; row += kColumns) {
    const size_t valid = std::min(kColumns, args.row_end - row);
    for (size_t k = 0; k < args.k; k += kChunk) {
      const FloatTileArgs tile{&args, row, valid, k, std::min(kChunk, args.k - k), kChunk};
      for (size_t r = 0; r < valid; r += kPanelRows) {
        const uint8_t* rows[kPanelRows];
        for (size_t i = 0; i < kPanelRows; ++i) {
          const size_t real =
              std::min(row + r + i, args.rows - 1);  // results of copies are dropped
          rows[i] = args.weights + (real * args.k + k) * C::kBytes;
        }
        WidenRows<C>(rows, tile.count, panels + r / kPanelRows * kChunk);
      }
      RunFloatTile<F32PanelCodec>(tile, panels);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
