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
#include "simd/float_amx-inl.h"

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

struct F16Codec : FloatMath {
  using Block = PanelF16;
  static constexpr size_t kValues = 1, kSteps = 1;
  static HWY_INLINE VF Weight(const Block& b, size_t row, size_t) { return WidenF16(b.w, row); }
  static HWY_INLINE void PackLine(BlockRows rows, size_t at, uint8_t* panel) {
    PackLineOfHalves(rows, at, panel);
  }
};

void ToPanelF16(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackFloats<F16Codec>(rows, 0, blocks, panel);
}
void MatMulF16(const MatMulArgs& args) {
#if SLUICE_AMX_TILES
  if (args.bf16 != nullptr && HasAmx()) {
    if (args.panels && args.tokens == 1) return OneTokenOfHalves(args);
    return AmxFloats<F16Codec, 2>(args).Run();
  }
#endif
  MatMulFloat<F16Codec>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

namespace {

HWY_EXPORT(ToPanelF16);
HWY_EXPORT(MatMulF16);
void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelF16)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulF16)(args); }

}  // namespace

extern const Format kF16 = {
    .name = "F16",
    .gguf_type = 1,
    .block_values = 1,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .halves_bf16 = true,
    .decode = Decode,
    .encode = Encode,
    .panel_block_bytes = sizeof(PanelF16),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
