#include "src/file/panel_rows.h"

#include <vector>

#include "src/base/checked_math.h"

namespace sluice {

std::optional<PanelShape> PanelShapeOf(const GgufTensor& tensor) {
  const Format* format = tensor.format;
  if (format == nullptr || format->panel_block_bytes == 0 || tensor.Elements() == 0) {
    return std::nullopt;
  }
  PanelShape shape;
  shape.k = tensor.shape[0];
  shape.rows = tensor.shape[1];
  shape.experts = tensor.shape[2] * tensor.shape[3];
  shape.panels_per_expert = (shape.rows + kPanelRows - 1) / kPanelRows;
  // A file of many one-row experts grows up to sixteenfold: the product is checked once, here.
  const auto panel_bytes = CheckedMul(shape.k / format->block_values, format->panel_block_bytes);
  const auto bytes = panel_bytes ? CheckedMul(*panel_bytes, shape.panels()) : std::nullopt;
  if (!bytes) return std::nullopt;
  shape.panel_bytes = *panel_bytes;
  return shape;
}

void MakePanels(const GgufTensor& tensor, const PanelShape& shape, size_t first, size_t count,
                uint8_t* out) {
  const Format& format = *tensor.format;
  const size_t row_bytes = format.RowBytes(shape.k);
  // Blocks of zero bytes are zero weights in every format that has panels.
  const std::vector<uint8_t> zero_row(row_bytes, 0);
  for (size_t i = 0; i < count; ++i) {
    const size_t expert = (first + i) / shape.panels_per_expert;
    const size_t row_begin = (first + i) % shape.panels_per_expert * kPanelRows;
    const uint8_t* const matrix = tensor.data + expert * shape.rows * row_bytes;
    const uint8_t* rows[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) {
      const bool exists = row_begin + r < shape.rows;
      rows[r] = exists ? matrix + (row_begin + r) * row_bytes : zero_row.data();
    }
    format.to_panel(rows, shape.k / format.block_values, out + i * shape.panel_bytes);
  }
}

}  // namespace sluice
