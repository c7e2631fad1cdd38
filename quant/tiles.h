// How a pass of a model cuts its products into tiles of output columns, which workers compute one
// at a time: of src/model/ops.cc, and of the probes that measure what passes will reach.
#ifndef SLUICE_QUANT_TILES_H_
#define SLUICE_QUANT_TILES_H_

#include <algorithm>
#include <cstddef>

#include "quant/format.h"

namespace sluice {

// Rows that a kernel takes at once from the panels themselves: few.
inline constexpr size_t kFewRows = 8;
// Output columns that a worker computes, activates and writes at a time, where many rows share
// them; and the most, where few do.
inline constexpr size_t kTileColumns = 64, kLeastTileColumns = 32;
inline constexpr size_t kWideTileColumns = 1024;

// `most` of `columns`, or as many as make four tiles for each worker; whole kLeastTileColumns.
inline size_t ShareOfTiles(size_t columns, size_t most, size_t workers) {
  const size_t share = std::min(columns / (4 * workers), most);
  return std::max<size_t>(1, share / kLeastTileColumns) * kLeastTileColumns;
}

// Of `rows` rows multiplied with a matrix of `columns` x `k`. Many: 64, since what is written of a
// row then fills whole cache lines of its quantised form too (32, which kernels expand at a time:
// prefill 2 to 5 % slower on a Xeon). Few: a stretch of memory long enough to stream (64 KB is
// 3 us).
inline size_t TileColumns(const Format& format, size_t columns, size_t k, size_t rows,
                          size_t workers) {
  if (rows > kFewRows) return ShareOfTiles(columns, kTileColumns, workers);
  constexpr size_t kStreamBytes = size_t{64} << 10;
  const size_t stretch = std::min(kStreamBytes / format.RowBytes(k), kWideTileColumns);
  return ShareOfTiles(columns, stretch, workers);
}

}  // namespace sluice
#endif  // SLUICE_QUANT_TILES_H_
