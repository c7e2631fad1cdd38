// Q4_1: 32 weights of 4 bits share one f16 scale and one f16 offset. 5 bits per weight.
//
//   byte  0 1 | 2 3 | 4 ...... 19
//         d   | m   | q[16]        u[j] = low nibble of q[j], u[j + 16] = its high nibble
//
//   weight j = d * u[j] + m
#include <algorithm>

#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"
#include "quant/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/q4_1.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/pack-inl.h"
#include "quant/row_unpack-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t m[2];
  uint8_t q[16];
};
static_assert(sizeof(Block) == 20);

// The recipe subtracts its minimum, the format adds m.
void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index];
  NibblesToCodes(b.q, out->u);
  out->scale = LoadF16(b.d);
  out->min = -LoadF16(b.m);
  NoSubScales(out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) { DecodeCodes(blocks, n, out, 0, Codes); }

void Encode(const float* in, size_t n, uint8_t* blocks) {
  Block* b = AsBlocks<Block>(blocks);
  for (size_t i = 0; i < n; i += 32, ++b) {
    const auto [min, max] = std::minmax_element(in + i, in + i + 32);
    const float d = (*max - *min) / 15;
    const float inverse = InverseOrZero(d);
    uint8_t u[32];
    for (size_t j = 0; j < 32; ++j) u[j] = CutToCode((in[i + j] - *min) * inverse + 0.5f, 15);
    StoreF16(d, b->d);
    StoreF16(*min, b->m);
    CodesToNibbles(u, b->q);
  }
}

void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelQ4_1>(panel, blocks, rows, [](const PanelQ4_1& p, size_t r, Block* b) {
    Store16(p.d[r], b->d);
    Store16(p.m[r], b->m);
    GetNibbleBytes(p.q, r, b->q);
  });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct Q4_1Codec {
  using Block = PanelQ4_1;
  static constexpr size_t kBlockBytes = 20;  // of a row
  static constexpr size_t kUnits = 1;
  static constexpr int kZero = 0, kMaxCode = 15;
  static constexpr bool kHasMin = true, kSub16 = false;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& b, size_t, size_t at) {
    return Nibbles<kGroup>(b.q, at);
  }
  static HWY_INLINE VF Scale(const Block& b, size_t, size_t row) { return WidenF16(b.d, row); }
  static HWY_INLINE VF Min(const Block& b, size_t, size_t row) {
    return hn::Neg(WidenF16(b.m, row));
  }

  template <size_t i>
  static HWY_INLINE VU8 RowCodes(const uint8_t* p) {
    return RowNibbles<i, kBlockBytes>(p + 4);
  }
  using RowScale = uint16_t;
  static HWY_INLINE void RowScales(const uint8_t* p, uint16_t* scale, uint16_t* min) {
    RowHalves<Q4_1Codec>(p, 0, scale);
    RowHalves<Q4_1Codec>(p, 2, min);
  }
  static HWY_INLINE VF WidenRowScale(const uint16_t* p) { return WidenHalves(p); }
  static HWY_INLINE VF WidenRowMin(const uint16_t* p) { return hn::Neg(WidenHalves(p)); }

  static HWY_INLINE void Pack(BlockRows rows, Block* p) {
    PackHalves(rows, 0, p->d);
    PackHalves(rows, 2, p->m);
    PackWords(rows, 4, p->q);
  }
};

void ToPanelQ4_1(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackBlocks<Q4_1Codec>(rows, blocks, panel);
}
void MatMulQ4_1(const MatMulArgs& args) { MatMulFormat<Q4_1Codec>(args, ToPanelQ4_1); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(ToPanelQ4_1);
HWY_EXPORT(MatMulQ4_1);

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelQ4_1)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulQ4_1)(args); }

}  // namespace

extern const Format kQ4_1 = {
    .name = "Q4_1",
    .gguf_type = 3,
    .block_values = 32,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .has_min = true,
    .decode = Decode,
    .encode = Encode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelQ4_1),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
