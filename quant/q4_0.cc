// Q4_0: 32 weights of 4 bits share one f16 scale. 4.5 bits per weight.
//
//   byte  0 1 | 2 ...... 17
//         d   | q[16]              u[j] = low nibble of q[j], u[j + 16] = its high nibble
//
//   weight j = d * (u[j] - 8)
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"
#include "quant/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/q4_0.cc"
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

constexpr uint8_t kZero = 8;

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index];
  NibblesToCodes(b.q, out->u);
  out->scale = LoadF16(b.d);
  out->min = 0;
  NoSubScales(out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeCodes(blocks, n, out, kZero, Codes);
}

// The weight of the largest magnitude becomes code 0, whatever its sign: -8 is the widest value.
void Encode(const float* in, size_t n, uint8_t* blocks) {
  Block* b = AsBlocks<Block>(blocks);
  for (size_t i = 0; i < n; i += 32, ++b) {
    const float d = SignedMax(in + i, 32) / -8;
    const float inverse = InverseOrZero(d);
    uint8_t u[32];
    for (size_t j = 0; j < 32; ++j) u[j] = CutToCode(in[i + j] * inverse + 8.5f, 15);
    StoreF16(d, b->d);
    CodesToNibbles(u, b->q);
  }
}

void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelQ4_0>(panel, blocks, rows, [](const PanelQ4_0& p, size_t r, Block* b) {
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

struct Q4_0Codec {
  using Block = PanelQ4_0;
  static constexpr size_t kBlockBytes = 18;  // of a row
  static constexpr size_t kUnits = 1;
  static constexpr int kZero = 8, kMaxCode = 15;
  static constexpr bool kHasMin = false, kSub16 = false;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& b, size_t, size_t at) {
    return Nibbles<kGroup>(b.q, at);
  }
  static HWY_INLINE VF Scale(const Block& b, size_t, size_t row) { return WidenF16(b.d, row); }

  template <size_t i>
  static HWY_INLINE VU8 RowCodes(const uint8_t* p) {
    return RowNibbles<i, kBlockBytes>(p + 2);
  }
  using RowScale = uint16_t;
  static HWY_INLINE void RowScales(const uint8_t* p, uint16_t* scale, uint16_t*) {
    RowHalves<Q4_0Codec>(p, 0, scale);
  }
  static HWY_INLINE VF WidenRowScale(const uint16_t* p) { return WidenHalves(p); }

  static HWY_INLINE void Pack(BlockRows rows, Block* p) {
    PackHalves(rows, 0, p->d);
    PackWords(rows, 2, p->q);
  }
};

void ToPanelQ4_0(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackBlocks<Q4_0Codec>(rows, blocks, panel);
}
void MatMulQ4_0(const MatMulArgs& args) { MatMulFormat<Q4_0Codec>(args, ToPanelQ4_0); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(ToPanelQ4_0);
HWY_EXPORT(MatMulQ4_0);

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelQ4_0)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulQ4_0)(args); }

}  // namespace

extern const Format kQ4_0 = {
    .name = "Q4_0",
    .gguf_type = 2,
    .block_values = 32,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .zero = kZero,
    .decode = Decode,
    .encode = Encode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelQ4_0),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
