// TQ1_0: 256 ternary weights, five to a byte, share one f16 scale. 1.6875 bits per weight.
//
//   byte  0 .. 47 | 48 .. 51 | 52 53
//         q[48]   | last[4]  | d
//
// A byte is the fraction 0.b of five base-3 digits, rounded up: times 3^t (dropping the whole
// part, hence the wrap of uint8) it begins with digit t; that digit is (x * 3) >> 8.
//
//   weights   0..159   32 t + j        = digit t of q[j],       t = 0..4, j = 0..31
//           160..239   160 + 16 t + j  = digit t of q[32 + j],  t = 0..4, j = 0..15
//           240..255   240 + 4 t + j   = digit t of last[j],    t = 0..3, j = 0..3
//   each d * (digit - 1)
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"

namespace sluice {
namespace {

struct Block {
  uint8_t q[48];
  uint8_t last[4];
  uint8_t d[2];
};
static_assert(sizeof(Block) == 54);

// Writes `digits` digits of each of `bytes` bytes, digit by digit; returns the end.
float* Digits(const uint8_t* q, size_t bytes, size_t digits, float d, float* out) {
  uint8_t power = 1;
  for (size_t t = 0; t < digits; ++t, power = static_cast<uint8_t>(power * 3)) {
    for (size_t j = 0; j < bytes; ++j) {
      const auto x = static_cast<uint8_t>(q[j] * power);
      *out++ = d * static_cast<float>((x * 3 >> 8) - 1);
    }
  }
  return out;
}

void DecodeBlock(const Block& b, float* out) {
  const float d = LoadF16(b.d);
  out = Digits(b.q, 32, 5, d, out);
  out = Digits(b.q + 32, 16, 5, d, out);
  Digits(b.last, 4, 4, d, out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 256>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kTQ1_0 = {
    .name = "TQ1_0",
    .gguf_type = 34,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kTQ1_0, args); },
};

}  // namespace sluice
