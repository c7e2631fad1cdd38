// TQ2_0: 256 ternary weights in 2 bits each share one f16 scale. 2.0625 bits per weight.
//
//   byte  0 .. 63 | 64 65
//         q[64]   | d
//
//   weight 128 n + 32 t + j = d * ((bits 2 t, 2 t + 1 of q[32 n + j]) - 1)
//   n = 0, 1; t = 0..3; j = 0..31. Code 3 should not occur; it means +2.
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"

namespace sluice {
namespace {

struct Block {
  uint8_t q[64];
  uint8_t d[2];
};
static_assert(sizeof(Block) == 66);

void DecodeBlock(const Block& b, float* out) {
  const float d = LoadF16(b.d);
  for (size_t i = 0; i < 256; ++i) {
    const int code = b.q[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
    out[i] = d * static_cast<float>(code - 1);
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 256>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kTQ2_0 = {
    .name = "TQ2_0",
    .gguf_type = 35,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kTQ2_0, args); },
};

}  // namespace sluice
