// MXFP4: 32 e2m1 floats of 4 bits share one power of two. 4.25 bits per weight.
//
//   byte  0 | 1 ...... 16
//         e | q[16]                i[j] = low nibble of q[j], i[j + 16] = its high nibble
//
//   weight j = 2^(e - 128) * kE2M1Doubled[i[j]]
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"
#include "quant/planes.h"
#include "quant/values16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/mxfp4.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/pack-inl.h"
#include "quant/row_unpack-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t e;
  uint8_t q[16];
};
static_assert(sizeof(Block) == 17);

constexpr uint8_t kZero = 12;

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index];
  NibblesToCodes(b.q, out->u);
  for (uint8_t& u : out->u) u = static_cast<uint8_t>(kE2M1Doubled[u] + kZero);
  out->scale = F32FromE8M0Half(b.e);
  out->min = 0;
  NoSubScales(out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeCodes(blocks, n, out, kZero, Codes);
}

void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelMXFP4>(panel, blocks, rows, [](const PanelMXFP4& p, size_t r, Block* b) {
    b->e = p.e[r];
    GetNibbleBytes(p.q, r, b->q);
  });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct MXFP4Codec {
  using Block = PanelMXFP4;
  static constexpr size_t kBlockBytes = 17;  // of a row
  static constexpr size_t kUnits = 1;
  static constexpr int kZero = 12, kMaxCode = 24;
  static constexpr bool kHasMin = false, kSub16 = false;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& b, size_t, size_t at) {
    return NibbleValues<kGroup>(b.q, at, kE2M1Doubled, kZero);
  }
  static HWY_INLINE VF Scale(const Block& b, size_t, size_t row) { return WidenE8M0Half(b.e, row); }

  template <size_t i>
  static HWY_INLINE VU8 RowCodes(const uint8_t* p) {
    return RowValues(RowNibbles<i, kBlockBytes>(p + 1), kE2M1Doubled, kZero);
  }
  using RowScale = uint8_t;
  static HWY_INLINE void RowScales(const uint8_t* p, uint8_t* scale, uint8_t*) {
    SLUICE_UNROLL
    for (size_t i = 0; i < kRowUnits; ++i) scale[i] = p[i * kBlockBytes];
  }
  static HWY_INLINE VF WidenRowScale(const uint8_t* p) { return WidenE8M0Half(p, 0); }

  static HWY_INLINE void Pack(BlockRows rows, Block* p) {
    for (size_t r = 0; r < kPanelRows; ++r) p->e[r] = rows[r][0];
    PackWords(rows, 1, p->q);
  }
};

void ToPanelMXFP4(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackBlocks<MXFP4Codec>(rows, blocks, panel);
}
void MatMulMXFP4(const MatMulArgs& args) { MatMulFormat<MXFP4Codec>(args, ToPanelMXFP4); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(ToPanelMXFP4);
HWY_EXPORT(MatMulMXFP4);

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelMXFP4)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulMXFP4)(args); }

}  // namespace

extern const Format kMXFP4 = {
    .name = "MXFP4",
    .gguf_type = 39,
    .block_values = 32,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .zero = kZero,
    .decode = Decode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelMXFP4),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
