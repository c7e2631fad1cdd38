// IQ4_NL: 32 weights of 4 bits, looked up in 16 uneven values, share one f16 scale. 4.5 bits
// per weight.
//
//   byte  0 1 | 2 ...... 17
//         d   | q[16]              i[j] = low nibble of q[j], i[j + 16] = its high nibble
//
//   weight j = d * kIQ4Values[i[j]]
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"
#include "quant/planes.h"
#include "quant/values16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/iq4_nl.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/pack-inl.h"
#include "quant/row_unpack-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t q[16];
};
static_assert(sizeof(Block) == 18);

constexpr uint8_t kZero = 128;

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index];
  NibblesToCodes(b.q, out->u);
  for (uint8_t& u : out->u) u = static_cast<uint8_t>(kIQ4Values[u] + kZero);
  out->scale = LoadF16(b.d);
  out->min = 0;
  NoSubScales(out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeCodes(blocks, n, out, kZero, Codes);
}

void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelIQ4_NL>(panel, blocks, rows,
                                   [](const PanelIQ4_NL& p, size_t r, Block* b) {
                                     Store16(p.d[r], b->d);
                                     GetNibbleBytes(p.q, r, b->q);
                                   });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct IQ4_NLCodec {
  using Block = PanelIQ4_NL;
  static constexpr size_t kBlockBytes = 18;  // of a row
  static constexpr size_t kUnits = 1;
  static constexpr int kZero = 128, kMaxCode = 255;
  static constexpr bool kHasMin = false, kSub16 = false;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& b, size_t, size_t at) {
    return NibbleValues<kGroup>(b.q, at, kIQ4Values, kZero);
  }
  static HWY_INLINE VF Scale(const Block& b, size_t, size_t row) { return WidenF16(b.d, row); }

  template <size_t i>
  static HWY_INLINE VU8 RowCodes(const uint8_t* p) {
    return RowValues(RowNibbles<i, kBlockBytes>(p + 2), kIQ4Values, kZero);
  }
  using RowScale = uint16_t;
  static HWY_INLINE void RowScales(const uint8_t* p, uint16_t* scale, uint16_t*) {
    RowHalves<IQ4_NLCodec>(p, 0, scale);
  }
  static HWY_INLINE VF WidenRowScale(const uint16_t* p) { return WidenHalves(p); }

  static HWY_INLINE void Pack(BlockRows rows, Block* p) {
    PackHalves(rows, 0, p->d);
    PackWords(rows, 2, p->q);
  }
};

void ToPanelIQ4_NL(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackBlocks<IQ4_NLCodec>(rows, blocks, panel);
}
void MatMulIQ4_NL(const MatMulArgs& args) { MatMulFormat<IQ4_NLCodec>(args, ToPanelIQ4_NL); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(ToPanelIQ4_NL);
HWY_EXPORT(MatMulIQ4_NL);

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelIQ4_NL)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulIQ4_NL)(args); }

}  // namespace

extern const Format kIQ4_NL = {
    .name = "IQ4_NL",
    .gguf_type = 20,
    .block_values = 32,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .zero = kZero,
    .decode = Decode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelIQ4_NL),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
