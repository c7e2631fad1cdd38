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

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  PackPanels<Block, PanelF32>(rows, blocks, panel, [](const Block& b, size_t r, PanelF32* p) {
    memcpy(&p->w[r], b.w, sizeof b.w);
  });
}
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

struct F32Rows {
  static constexpr size_t kBytes = 4;
  static HWY_INLINE hn::Vec<Float4> Load4(const uint8_t* bytes) {
    return hn::LoadU(Float4(), reinterpret_cast<const float*>(bytes));
  }
};

void MatMulF32(const MatMulArgs& args) {
  if (args.panels) {
    MatMulFloatPanels<F32PanelCodec>(args);
  } else {
    MatMulFloatRows<F32Rows>(args);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

namespace {

HWY_EXPORT(MatMulF32);
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
