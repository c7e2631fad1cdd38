// IQ3_XXS: 256 weights in 8 units of 32; 4 weights are one of 256 grid entries with signs.
// 3.0625 bits per weight.
//
//   byte  0 1 | 2 ...... 65 | 66 ...... 97
//         d   | index[64]   | word[8]:  signs 0..6 | 7..13 | 14..20 | 21..27 | scale 28..31
//
//   weight 4 i + j of unit s = d * (0.5 + scale) / 2 * grid[index[8 s + i]][j]; each 7-bit sign
//   mask serves two entries
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"
#include "quant/iq_grids.h"

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t index[64];
  uint8_t word[8][4];
};
static_assert(sizeof(Block) == 98);

void DecodeBlock(const Block& b, float* out) {
  const float d = LoadF16(b.d);
  for (size_t s = 0; s < 8; ++s) {
    const uint32_t word = Load32(b.word[s]);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    for (size_t i = 0; i < 8; ++i, out += 4) {
      const uint32_t signs = EvenSigns(word >> (i / 2 * 7) & 127) >> (i % 2 * 4);
      SignedEntry(scale, kGridIQ3_XXS[b.index[8 * s + i]], signs, out);
    }
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 256>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kIQ3_XXS = {
    .name = "IQ3_XXS",
    .gguf_type = 18,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kIQ3_XXS, args); },
};

}  // namespace sluice
