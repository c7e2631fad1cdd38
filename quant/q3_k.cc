// Q3_K: 256 weights of 3 bits in 16 halves of 16, each with a 6-bit scale under one f16
// factor. 3.4375 bits per weight.
//
//   byte  0 .. 31  | 32 .. 95 | 96 .. 107  | 108 109
//         high[32] | q[64]    | scales[12] | d
//
//   unit s = 4 n + t (n = 0, 1; t = 0..3), weight j = 0..31:
//   u = (bits 2 t, 2 t + 1 of q[32 n + j]) + 4 * (bit s of high[j])
//   half i = 2 s + j / 16: sc = nibble i / 8 of scales[i % 8]
//                               + 16 * (bits 2 (i / 4), .. + 1 of scales[8 + i % 4]) - 32
//   weight = d * sc * (u - 4)
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"

namespace sluice {
namespace {

struct Block {
  uint8_t high[32];
  uint8_t q[64];
  uint8_t scales[12];
  uint8_t d[2];
};
static_assert(sizeof(Block) == 110);

constexpr uint8_t kZero = 4;

int Scale(const Block& b, size_t i) {
  const int low = b.scales[i % 8] >> (i / 8 * 4) & 15;
  const int high = b.scales[8 + i % 4] >> (i / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index / 8];
  const size_t s = index % 8;
  for (size_t j = 0; j < 32; ++j) {
    const int low = b.q[s / 4 * 32 + j] >> (s % 4 * 2) & 3;
    out->u[j] = static_cast<uint8_t>(low | (b.high[j] >> s & 1) << 2);
  }
  out->scale = LoadF16(b.d);
  out->min = 0;
  NoSubScales(out);
  for (size_t h = 0; h < 2; ++h) out->sub[h] = Scale(b, 2 * s + h);
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeCodes(blocks, n, out, kZero, Codes);
}

}  // namespace

extern const Format kQ3_K = {
    .name = "Q3_K",
    .gguf_type = 11,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .zero = kZero,
    .sub16 = true,
    .decode = Decode,
    .codes = Codes,
    .matmul = [](const MatMulArgs& args) { MatMulCodes(kQ3_K, args); },
};

}  // namespace sluice
