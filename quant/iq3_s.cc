// IQ3_S: 256 weights in 8 units of 32; 4 weights are one of 512 grid entries with signs.
// 3.4375 bits per weight.
//
//   byte  0 1 | 2 .. 65 | 66 .. 73 | 74 .. 105 | 106 .. 109
//         d   | low[64] | high[8]  | signs[32] | scales[4], a nibble per unit
//
//   index i = low[i] + 256 * (bit i % 8 of high[i / 8])
//   weight 4 i + j = d * (1 + 2 * nibble i / 8) * grid[index i][j], signed by bit 4 i + j of signs
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"
#include "quant/iq_grids.h"

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t low[64];
  uint8_t high[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
static_assert(sizeof(Block) == 110);

void DecodeBlock(const Block& b, float* out) {
  const float d = LoadF16(b.d);
  for (size_t i = 0; i < 64; ++i, out += 4) {
    const size_t index = b.low[i] | (b.high[i / 8] >> (i % 8) & 1) << 8;
    const int nibble = b.scales[i / 16] >> (i / 8 % 2 * 4) & 15;
    const float scale = d * static_cast<float>(1 + 2 * nibble);
    SignedEntry(scale, kGridIQ3_S[index], b.signs[i / 2] >> (i % 2 * 4), out);
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 256>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kIQ3_S = {
    .name = "IQ3_S",
    .gguf_type = 21,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kIQ3_S, args); },
};

}  // namespace sluice
