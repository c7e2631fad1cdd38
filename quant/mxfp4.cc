// MXFP4: 32 e2m1 floats of 4 bits share one power of two. 4.25 bits per weight.
//
//   byte  0 | 1 ...... 16
//         e | q[16]                i[j] = low nibble of q[j], i[j + 16] = its high nibble
//
//   weight j = 2^(e - 128) * kE2M1Doubled[i[j]]
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"
#include "quant/planes.h"
#include "quant/values16.h"

namespace sluice {
namespace {

struct Block {
  uint8_t e;
  uint8_t q[16];
};
static_assert(sizeof(Block) == 17);

constexpr uint8_t kZero = 12;

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index];
  NibblesToCodes(b.q, out->u);
  for (uint8_t& u : out->u) u = static_cast<uint8_t>(kE2M1Doubled[u] + kZero);
  out->scale = F32FromE8M0Half(b.e);
  out->min = 0;
  NoSubScales(out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeCodes(blocks, n, out, kZero, Codes);
}

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  PackPanels<Block, PanelMXFP4>(rows, blocks, panel, [](const Block& b, size_t r, PanelMXFP4* p) {
    p->e[r] = b.e;
    PutNibbleBytes(b.q, r, p->q);
  });
}
void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelMXFP4>(panel, blocks, rows, [](const PanelMXFP4& p, size_t r, Block* b) {
    b->e = p.e[r];
    GetNibbleBytes(p.q, r, b->q);
  });
}

}  // namespace

extern const Format kMXFP4 = {
    .name = "MXFP4",
    .gguf_type = 39,
    .block_values = 32,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .zero = kZero,
    .decode = Decode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelMXFP4),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
};

}  // namespace sluice
