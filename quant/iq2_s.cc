// IQ2_S: 256 weights in 16 halves of 16; 8 weights are one of 1024 grid entries with signs.
// 2.5625 bits per weight.
//
//   byte  0 1 | 2 .. 33 | 34 .. 65  | 66 .. 73 | 74 .. 81
//         d   | low[32] | signs[32] | high[8]  | scales[8], a nibble per half
//
//   index i = low[i] + 256 * (bits 2 (i % 4), .. + 1 of high[i / 4])
//   weight 8 i + j = d * (0.5 + nibble i / 2) / 4 * grid[index i][j], signed by bit j of signs[i]
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
  uint8_t signs[32];
  uint8_t high[8];
  uint8_t scales[8];
};
static_assert(sizeof(Block) == 82);

void DecodeBlock(const Block& b, float* out) {
  const float d = LoadF16(b.d);
  for (size_t i = 0; i < 32; ++i, out += 8) {
    const size_t index = b.low[i] | (b.high[i / 4] >> (i % 4 * 2) & 3) << 8;
    const int nibble = b.scales[i / 4] >> (i / 2 % 2 * 4) & 15;
    const float scale = d * (0.5f + static_cast<float>(nibble)) * 0.25f;
    SignedEntry(scale, kGridIQ2_S[index], b.signs[i], out);
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 256>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kIQ2_S = {
    .name = "IQ2_S",
    .gguf_type = 22,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kIQ2_S, args); },
};

}  // namespace sluice
