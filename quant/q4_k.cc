// Q4_K: 256 weights of 4 bits in 8 units of 32, each with a scale and a minimum of 6 bits
// under two f16 factors. 4.5 bits per weight.
//
//   byte  0 1 | 2 3  | 4 .. 15    | 16 ...... 143
//         d   | dmin | scales[12] | q[128]
//
//   q[32 c + j], c = 0..3: low nibble  u[j] of unit 2 c
//                          high nibble u[j] of unit 2 c + 1      scales: k_scales.h
//   weight j of unit s = d * sc[s] * u[j] - dmin * mn[s]
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/k_scales.h"
#include "quant/panels.h"
#include "quant/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/q4_k.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/pack-inl.h"
#include "quant/row_unpack-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t dmin[2];
  uint8_t scales[12];
  uint8_t q[128];
};
static_assert(sizeof(Block) == 144);

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index / 8];
  const size_t s = index % 8;
  uint8_t sc[8], mn[8];
  UnpackKScales(b.scales, sc, mn);
  for (size_t j = 0; j < 32; ++j) out->u[j] = b.q[s / 2 * 32 + j] >> (s % 2 * 4) & 15;
  out->scale = LoadF16(b.d) * static_cast<float>(sc[s]);  // 11 + 6 bits: exact
  out->min = LoadF16(b.dmin) * static_cast<float>(mn[s]);
  NoSubScales(out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) { DecodeCodes(blocks, n, out, 0, Codes); }

// Units 2 c and 2 c + 1 share bytes in GGUF; in the panel each has its own.
void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelQ4_K>(panel, blocks, rows, [](const PanelQ4_K& p, size_t r, Block* b) {
    Store16(p.d[r], b->d);
    Store16(p.dmin[r], b->dmin);
    uint8_t sc[8], mn[8];
    for (size_t s = 0; s < 8; ++s) {
      sc[s] = p.sc[s][r];
      mn[s] = p.mn[s][r];
    }
    PackKScales(sc, mn, b->scales);
    for (size_t c = 0; c < 4; ++c) {
      uint32_t low[8], high[8];
      GetNibbles(p.q[2 * c], r, low);
      GetNibbles(p.q[2 * c + 1], r, high);
      for (size_t g = 0; g < 8; ++g) Store32(low[g] | high[g] << 4, b->q + 32 * c + 4 * g);
    }
  });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct Q4_KCodec {
  using Block = PanelQ4_K;
  static constexpr size_t kBlockBytes = 144;  // of a row
  static constexpr size_t kUnits = 8;
  static constexpr int kZero = 0, kMaxCode = 15;
  static constexpr bool kHasMin = true, kSub16 = false;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& b, size_t unit, size_t at) {
    return Nibbles<kGroup>(b.q[unit], at);
  }
  static HWY_INLINE VF Scale(const Block& b, size_t unit, size_t row) {
    return hn::Mul(WidenF16(b.d, row), WidenSmall(b.sc[unit], row));
  }
  static HWY_INLINE VF Min(const Block& b, size_t unit, size_t row) {
    return hn::Mul(WidenF16(b.dmin, row), WidenSmall(b.mn[unit], row));
  }

  template <size_t i>
  static HWY_INLINE VU8 RowCodes(const uint8_t* p) {
    const uint8_t* const block = p + i / kSuperVectors * kBlockBytes;
    constexpr size_t j = i % kSuperVectors;
    return RowNibblePairs<j>(block + 16);
  }
  using RowScale = float;
  static HWY_INLINE void RowScales(const uint8_t* p, float* scale, float* min) {
    RowKScales<Q4_KCodec>(p, scale, min);
  }
  static HWY_INLINE VF WidenRowScale(const float* p) { return LoadScales(p); }
  static HWY_INLINE VF WidenRowMin(const float* p) { return LoadScales(p); }

  static HWY_INLINE void Pack(BlockRows rows, Block* p) {
    PackHalves(rows, 0, p->d);
    PackHalves(rows, 2, p->dmin);
    PackSixBitScales(rows, 4, p->sc, p->mn);
    for (size_t s = 0; s < 8; s += 2) {
      HWY_ALIGN uint8_t groups[8][64];
      PackWords(rows, 16 + 16 * s, groups);
      PackWords(rows, 32 + 16 * s, groups + 4);
      PackNibbles<0>(groups, p->q[s]);
      PackNibbles<4>(groups, p->q[s + 1]);
    }
  }
};

void ToPanelQ4_K(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackBlocks<Q4_KCodec>(rows, blocks, panel);
}
void MatMulQ4_K(const MatMulArgs& args) { MatMulFormat<Q4_KCodec>(args, ToPanelQ4_K); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(ToPanelQ4_K);
HWY_EXPORT(MatMulQ4_K);

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelQ4_K)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulQ4_K)(args); }

}  // namespace

extern const Format kQ4_K = {
    .name = "Q4_K",
    .gguf_type = 12,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .has_min = true,
    .decode = Decode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelQ4_K),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
