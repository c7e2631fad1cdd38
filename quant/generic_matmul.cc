#include "quant/generic_matmul.h"

#include <string.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/generic_matmul.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/float_rows-inl.h"
#include "simd/matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// One row of one unit, through the format's scalar codes.
template <class Unit, class Min>
void FillRow(const Format& format, const uint8_t* row, size_t index, size_t r, Unit* unit,
             Min* min) {
  Codes32 c;
  format.codes(row, index, &c);
  for (size_t g = 0; g < 8; ++g) memcpy(unit->u[g] + 4 * r, c.u + 4 * g, 4);
  unit->scale[r] = c.scale;
  if constexpr (sizeof(Unit) == sizeof(ByteUnitSub)) {
    for (size_t h = 0; h < 2; ++h) {
      unit->sub[h][r] = static_cast<int32_t>(static_cast<uint32_t>(c.sub[h]) * 0x10000u |
                                             (static_cast<uint32_t>(c.sub[h]) & 0xffffu));
    }
  }
  if (!format.has_min) return;
  min->min[r] = c.min;
  if constexpr (sizeof(Min) == sizeof(MinUnitSub)) {
    min->pair[r] = c.sub_min[1] * 65536 + c.sub_min[0];
  }
}

template <class Unit, class Min>
void MatMulUnits(const Format& format, const MatMulArgs& args) {
  const MatMulScratch scratch = LayOut(args.scratch);
  Unit* const units = reinterpret_cast<Unit*>(scratch.units);
  Min* const mins = reinterpret_cast<Min*>(scratch.mins);
  const size_t all = args.k / kActBlock;
  const size_t row_bytes = format.RowBytes(args.k);
  ByteTileArgs tile{.args = &args,
                    .zero = format.zero,
                    .max_code = 31,
                    .sub16 = format.sub16,
                    .has_min = format.has_min,
                    .units = units,
                    .chunk_units = kChunkUnits,
                    .mins = mins};
  for (tile.row = args.row_begin; tile.row < args.row_end; tile.row += kTileRows) {
    for (tile.unit_begin = 0; tile.unit_begin < all; tile.unit_begin += kChunkUnits) {
      tile.unit_count = std::min(kChunkUnits, all - tile.unit_begin);
      for (size_t r = 0; r < kTileRows; ++r) {
        const size_t row = std::min(tile.row + r, args.rows - 1);  // copies of it are dropped
        const size_t v = r / kPanelRows;
        for (size_t i = 0; i < tile.unit_count; ++i) {
          FillRow(format, args.weights + row * row_bytes, tile.unit_begin + i, r % kPanelRows,
                  &units[v * kChunkUnits + i], &mins[v * all + tile.unit_begin + i]);
        }
      }
      RunByteTiles(tile);
    }
  }
}

void MatMulCodesTarget(const Format& format, const MatMulArgs& args) {
  if (!format.sub16) {
    MatMulUnits<ByteUnit, MinUnit>(format, args);
  } else {
    MatMulUnits<ByteUnitSub, MinUnitSub>(format, args);
  }
}

void MatMulDecodedTarget(const Format& format, const MatMulArgs& args) {
  constexpr size_t kColumns = kFloatV * kPanelRows;
  uint8_t* const scratch = LayOut(args.scratch).floats;
  PanelF32* const panels = reinterpret_cast<PanelF32*>(scratch);
  const size_t row_bytes = format.RowBytes(args.k);
  HWY_ALIGN float values[kChunk];
  for (size_t row = args.row_begin; row < args.row_end; row += kColumns) {
    const size_t valid = std::min(kColumns, args.row_end - row);
    for (size_t k = 0; k < args.k; k += kChunk) {
      const FloatTileArgs tile{
          &args, row, valid, k, std::min(kChunk, args.k - k), PanelBytes<F32Codec>(kChunk)};
      for (size_t r = 0; r < valid; ++r) {
        format.decode(args.weights + (row + r) * row_bytes + format.RowBytes(k), tile.count,
                      values);
        PanelF32* const panel = panels + r / kPanelRows * kChunk;
        for (size_t i = 0; i < tile.count; ++i) panel[i].w[r % kPanelRows] = values[i];
      }
      RunFloatTile<F32Codec>(tile, scratch);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(MatMulCodesTarget);
HWY_EXPORT(MatMulDecodedTarget);

}  // namespace

void MatMulCodes(const Format& format, const MatMulArgs& args) {
  HWY_DYNAMIC_DISPATCH(MatMulCodesTarget)(format, args);
}
void MatMulDecoded(const Format& format, const MatMulArgs& args) {
  HWY_DYNAMIC_DISPATCH(MatMulDecodedTarget)(format, args);
}

}  // namespace sluice
#endif  // HWY_ONCE
