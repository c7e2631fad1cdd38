// F32: one float per weight, little endian. 32 bits per weight.
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/panels.h"

namespace sluice {
namespace {

struct Block {
  uint8_t w[4];
};
static_assert(sizeof(Block) == 4);

void Decode(const uint8_t* blocks, size_t n, float* out) { memcpy(out, blocks, n * sizeof(float)); }
void Encode(const float* in, size_t n, uint8_t* blocks) { memcpy(blocks, in, n * sizeof(float)); }

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  PackPanels<Block, PanelF32>(rows, blocks, panel, [](const Block& b, size_t r, PanelF32* p) {
    memcpy(&p->w[r], b.w, sizeof b.w);
  });
}
void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelF32>(panel, blocks, rows, [](const PanelF32& p, size_t r, Block* b) {
    memcpy(b->w, &p.w[r], sizeof b->w);
  });
}

}  // namespace

extern const Format kF32 = {
    .name = "F32",
    .gguf_type = 0,
    .block_values = 1,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .encode = Encode,
    .panel_block_bytes = sizeof(PanelF32),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
};

}  // namespace sluice
