// IQ1_M: 256 weights in 16 halves of 16; 8 weights are one of 2048 ternary grid entries, each
// shifted by an eighth up or down. 1.75 bits per weight.
//
//   byte  0 .. 31 | 32 .. 47                              | 48 ...... 55
//         low[32] | high[16], nibbles: index 0..2, down 3 | words[4]: scale 0..2 | 3..5 | 6..8 |
//                                                           9..11 | 12..15: a quarter of d
//   d: an f16, its lowest nibble in words[0], its highest in words[3]
//   index i = low[i] + 256 * (3 bits of nibble i of high)
//   weight 8 i + j = d * (2 * scale i / 2 + 1) * (grid[index i][j] +- 0.125)
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"
#include "quant/iq_grids.h"

namespace sluice {
namespace {

struct Block {
  uint8_t low[32];
  uint8_t high[16];
  uint8_t words[4][2];
};
static_assert(sizeof(Block) == 56);

float Scale(const Block& b) {
  uint32_t d = 0;
  for (size_t i = 0; i < 4; ++i) d |= static_cast<uint32_t>(Load16(b.words[i]) >> 12) << (4 * i);
  return F32FromF16(static_cast<uint16_t>(d));
}

void DecodeBlock(const Block& b, float* out) {
  const float d = Scale(b);
  for (size_t i = 0; i < 32; ++i, out += 8) {
    const size_t half = i / 2;
    const int sub = Load16(b.words[half / 4]) >> (half % 4 * 3) & 7;
    const float scale = d * static_cast<float>(2 * sub + 1);
    const uint32_t nibble = b.high[i / 2] >> (i % 2 * 4) & 15;
    const float shift = nibble & 8 ? -0.125f : 0.125f;
    const auto& entry = kGridIQ1[b.low[i] | (nibble & 7) << 8];
    for (size_t j = 0; j < 8; ++j) out[j] = scale * (static_cast<float>(entry[j]) + shift);
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 256>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kIQ1_M = {
    .name = "IQ1_M",
    .gguf_type = 29,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kIQ1_M, args); },
};

}  // namespace sluice
