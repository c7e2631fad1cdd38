// From the rows of a GGUF tensor to its panels (quant/panels.h): shapes, and the
// conversion of any range of panels, so that a caller can spread it over threads.
// Used by the panel file and by weights repacked in memory; any thread.
#ifndef SLUICE_SRC_FILE_PANEL_ROWS_H_
#define SLUICE_SRC_FILE_PANEL_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/file/gguf.h"

namespace sluice {

// Panels of a tensor [experts][rows][k], expert by expert: each expert begins with a panel of its
// own and its last panel is filled up with zero rows.
struct PanelShape {
  size_t rows = 0, k = 0, experts = 1;
  size_t panels_per_expert = 0;  // rows / 16, rounded up
  size_t panel_bytes = 0;        // 16 rows x k

  size_t panels() const { return experts * panels_per_expert; }
  size_t expert_bytes() const { return panels_per_expert * panel_bytes; }
  size_t bytes() const { return experts * expert_bytes(); }
};

// None: the tensor is empty, of an unknown format, or of one that is used as GGUF rows only.
std::optional<PanelShape> PanelShapeOf(const GgufTensor& tensor);

// Writes panels [first, first + count) of the tensor to `out`, count x panel_bytes at any
// alignment.
void MakePanels(const GgufTensor& tensor, const PanelShape& shape, size_t first, size_t count,
                uint8_t* out);

}  // namespace sluice
#endif  // SLUICE_SRC_FILE_PANEL_ROWS_H_
