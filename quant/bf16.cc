// BF16: the upper half of a float32: 1 sign, 8 exponent, 7 fraction bits. 16 bits per weight.
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/generic_matmul.h"
#include "quant/half.h"
#include "quant/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/bf16.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/unpack-inl.h"
#include "simd/float_panel-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t w[2];
};
static_assert(sizeof(Block) == 2);

void Decode(const uint8_t* blocks, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = F32FromBF16(Load16(blocks + 2 * i));
}
void Encode(const float* in, size_t n, uint8_t* blocks) {
  for (size_t i = 0; i < n; ++i) Store16(BF16FromF32(in[i]), blocks + 2 * i);
}

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  PackPanels<Block, PanelBF16>(
      rows, blocks, panel, [](const Block& b, size_t r, PanelBF16* p) { p->w[r] = Load16(b.w); });
}
void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelBF16>(
      panel, blocks, rows, [](const PanelBF16& p, size_t r, Block* b) { Store16(p.w[r], b->w); });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct BF16Codec {
  using Block = PanelBF16;
  static HWY_INLINE VF Load(const Block& b, size_t row) { return WidenBF16(b.w, row); }
};

void MatMulBF16(const MatMulArgs& args) { MatMulFloatPanels<BF16Codec>(args); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

extern const Format kBF16;

namespace {

HWY_EXPORT(MatMulBF16);
void MatMul(const MatMulArgs& args) {
  if (!args.panels) return MatMulDecoded(kBF16, args);
  HWY_DYNAMIC_DISPATCH(MatMulBF16)(args);
}

}  // namespace

extern const Format kBF16 = {
    .name = "BF16",
    .gguf_type = 30,
    .block_values = 1,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .encode = Encode,
    .panel_block_bytes = sizeof(PanelBF16),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
