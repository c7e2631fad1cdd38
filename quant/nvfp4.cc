// NVFP4: 64 e2m1 floats of 4 bits in 4 sub-blocks of 16, each with an unsigned e4m3 scale.
// 4.5 bits per weight.
//
//   byte  0 .. 3 | 4 ...... 35
//         d[4]   | q[4][8]         low nibble of q[s][j]: weight j of sub-block s;
//                                  high nibble: weight j + 8
//   weight = d[s] / 2 * kE2M1Doubled[nibble]
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"
#include "quant/values16.h"

namespace sluice {
namespace {

struct Block {
  uint8_t d[4];
  uint8_t q[4][8];
};
static_assert(sizeof(Block) == 36);

void DecodeBlock(const Block& b, float* out) {
  for (size_t s = 0; s < 4; ++s, out += 16) {
    const float d = F32FromE4M3Half(b.d[s]);
    for (size_t j = 0; j < 8; ++j) {
      out[j] = d * static_cast<float>(kE2M1Doubled[b.q[s][j] & 15]);
      out[j + 8] = d * static_cast<float>(kE2M1Doubled[b.q[s][j] >> 4]);
    }
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 64>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kNVFP4 = {
    .name = "NVFP4",
    .gguf_type = 40,
    .block_values = 64,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kNVFP4, args); },
};

}  // namespace sluice
