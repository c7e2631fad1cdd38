// IQ2_XS: 256 weights in 16 halves of 16; 8 weights are one of 512 grid entries with signs.
// 2.3125 bits per weight.
//
//   byte  0 1 | 2 ...... 65                              | 66 .. 73
//         d   | q[32], words: index 0..8 | signs 9..15   | scales[8], a nibble per half
//
//   weight 8 i + j = d * (0.5 + nibble i / 2) / 4 * grid[index of q[i]][j], signed by signs of q[i]
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"
#include "quant/iq_grids.h"

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t q[32][2];
  uint8_t scales[8];
};
static_assert(sizeof(Block) == 74);

void DecodeBlock(const Block& b, float* out) {
  const float d = LoadF16(b.d);
  for (size_t i = 0; i < 32; ++i, out += 8) {
    const uint32_t word = Load16(b.q[i]);
    const int nibble = b.scales[i / 4] >> (i / 2 % 2 * 4) & 15;
    const float scale = d * (0.5f + static_cast<float>(nibble)) * 0.25f;
    SignedEntry(scale, kGridIQ2_XS[word & 511], EvenSigns(word >> 9), out);
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 256>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kIQ2_XS = {
    .name = "IQ2_XS",
    .gguf_type = 17,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kIQ2_XS, args); },
};

}  // namespace sluice
