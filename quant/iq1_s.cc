// IQ1_S: 256 weights in 8 units of 32; 8 weights are one of 2048 ternary grid entries, shifted
// by an eighth up or down. 1.5625 bits per weight.
//
//   byte  0 1 | 2 .. 33 | 34 ...... 49
//         d   | low[32] | high[8], words: index 0..2 | 3..5 | 6..8 | 9..11 | scale 12..14 | down 15
//
//   index i of unit s = low[4 s + i] + 256 * (index bits i of high[s])
//   weight 8 i + j of unit s = d * (2 * scale + 1) * (grid[index i][j] +- 0.125)
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"
#include "quant/iq_grids.h"

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t low[32];
  uint8_t high[8][2];
};
static_assert(sizeof(Block) == 50);

void DecodeBlock(const Block& b, float* out) {
  const float d = LoadF16(b.d);
  for (size_t i = 0; i < 32; ++i, out += 8) {
    const uint32_t word = Load16(b.high[i / 4]);
    const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
    const float shift = word & 0x8000 ? -0.125f : 0.125f;
    const auto& entry = kGridIQ1[b.low[i] | (word >> (i % 4 * 3) & 7) << 8];
    for (size_t j = 0; j < 8; ++j) out[j] = scale * (static_cast<float>(entry[j]) + shift);
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 256>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kIQ1_S = {
    .name = "IQ1_S",
    .gguf_type = 19,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kIQ1_S, args); },
};

}  // namespace sluice
