// F32: one float per weight, little endian. 32 bits per weight.
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/float_rows-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t w[4];
};
static_assert(sizeof(Block) == 4);

void Decode(const uint8_t* blocks, size_t n, float* out) { memcpy(out, blocks, n * sizeof(float)); }
void Encode(const float* in, size_t n, uint8_t* blocks) { memcpy(blocks, in, n * sizeof(float)); }

void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelF32>(panel, blocks, rows, [](const PanelF32& p, size_t r, Block* b) {
    memcpy(b->w, &p.w[r], sizeof b->w);
  });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

void ToPanelF32(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackFloats<F32Codec>(rows, 0, blocks, panel);
}
void MatMulF32(const MatMulArgs& args) { MatMulFloat<F32Codec>(args); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

namespace {

HWY_EXPORT(ToPanelF32);
HWY_EXPORT(MatMulF32);
void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelF32)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulF32)(args); }

}  // namespace

extern const Format kF32 = {
    .name = "F32",
    .gguf_type = 0,
    .block_values = 1,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .encode = Encode,
    .panel_block_bytes = sizeof(PanelF32),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
