// Q2_K: 256 weights of 2 bits in 16 halves of 16, each with a scale and a minimum of 4 bits
// under two f16 factors. 2.625 bits per weight.
//
//   byte  0 .. 15    | 16 .. 79 | 80 81 | 82 83
//         scales[16] | q[64]    | d     | dmin
//
//   unit s = 4 n + t (n = 0, 1; t = 0..3), weight j = 0..31: u = bits 2 t, 2 t + 1 of q[32 n + j]
//   half i = 2 s + j / 16: sc = low nibble of scales[i], mn = high nibble
//   weight = d * sc * u - dmin * mn
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"

namespace sluice {
namespace {

struct Block {
  uint8_t scales[16];
  uint8_t q[64];
  uint8_t d[2];
  uint8_t dmin[2];
};
static_assert(sizeof(Block) == 84);

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index / 8];
  const size_t s = index % 8;
  for (size_t j = 0; j < 32; ++j) out->u[j] = b.q[s / 4 * 32 + j] >> (s % 4 * 2) & 3;
  out->scale = LoadF16(b.d);
  out->min = LoadF16(b.dmin);
  for (size_t h = 0; h < 2; ++h) {
    out->sub[h] = b.scales[2 * s + h] & 15;
    out->sub_min[h] = b.scales[2 * s + h] >> 4;
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) { DecodeCodes(blocks, n, out, 0, Codes); }

}  // namespace

extern const Format kQ2_K = {
    .name = "Q2_K",
    .gguf_type = 10,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .has_min = true,
    .sub16 = true,
    .decode = Decode,
    .codes = Codes,
    .matmul = [](const MatMulArgs& args) { MatMulCodes(kQ2_K, args); },
};

}  // namespace sluice
