// IQ2_XXS: 256 weights in 8 units of 32; 8 weights are one of 256 grid entries with signs.
// 2.0625 bits per weight.
//
//   byte  0 1 | 2 ............... 65
//         d   | unit[8]: index[4], then a word:  signs 0..6 | 7..13 | 14..20 | 21..27 |
//         scale 28..31
//
//   weight 8 i + j of a unit = d * (0.5 + scale) / 4 * grid[index[i]][j], signed by signs i
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"
#include "quant/iq_grids.h"

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  struct {
    uint8_t index[4];
    uint8_t word[4];
  } unit[8];
};
static_assert(sizeof(Block) == 66);

void DecodeBlock(const Block& b, float* out) {
  const float d = LoadF16(b.d);
  for (const auto& unit : b.unit) {
    const uint32_t word = Load32(unit.word);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (size_t i = 0; i < 4; ++i, out += 8) {
      SignedEntry(scale, kGridIQ2_XXS[unit.index[i]], EvenSigns(word >> (7 * i) & 127), out);
    }
  }
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeBlocks<Block, 256>(blocks, n, out, DecodeBlock);
}

}  // namespace

extern const Format kIQ2_XXS = {
    .name = "IQ2_XXS",
    .gguf_type = 16,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .matmul = [](const MatMulArgs& args) { MatMulDecoded(kIQ2_XXS, args); },
};

}  // namespace sluice
