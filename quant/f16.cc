// F16: IEEE half precision: 1 sign, 5 exponent, 10 fraction bits. 16 bits per weight.
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/f16.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/float_rows-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t w[2];
};
static_assert(sizeof(Block) == 2);

void Decode(const uint8_t* blocks, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = F32FromF16(Load16(blocks + 2 * i));
}
void Encode(const float* in, size_t n, uint8_t* blocks) {
  for (size_t i = 0; i < n; ++i) Store16(F16FromF32(in[i]), blocks + 2 * i);
}

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  PackPanels<Block, PanelF16>(rows, blocks, panel,
                              [](const Block& b, size_t r, PanelF16* p) { p->w[r] = Load16(b.w); });
}
void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelF16>(
      panel, blocks, rows, [](const PanelF16& p, size_t r, Block* b) { Store16(p.w[r], b->w); });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct F16Codec {
  using Block = PanelF16;
  static HWY_INLINE VF Load(const Block& b, size_t row) { return WidenF16(b.w, row); }
};
struct F16Rows {
  static constexpr size_t kBytes = 2;
  static HWY_INLINE hn::Vec<Float4> Load4(const uint8_t* bytes) {
    const hn::FixedTag<hwy::float16_t, 4> d;
    return hn::PromoteTo(Float4(), hn::LoadU(d, reinterpret_cast<const hwy::float16_t*>(bytes)));
  }
};

void MatMulF16(const MatMulArgs& args) {
  if (args.panels) {
    MatMulFloatPanels<F16Codec>(args);
  } else {
    MatMulFloatRows<F16Rows>(args);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

namespace {

HWY_EXPORT(MatMulF16);
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulF16)(args); }

}  // namespace

extern const Format kF16 = {
    .name = "F16",
    .gguf_type = 1,
    .block_values = 1,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .decode = Decode,
    .encode = Encode,
    .panel_block_bytes = sizeof(PanelF16),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
