// Q5_K: 256 weights of 5 bits in 8 units of 32, scaled as in Q4_K. 5.5 bits per weight.
//
//   byte  0 1 | 2 3  | 4 .. 15    | 16 .. 47 | 48 ...... 175
//         d   | dmin | scales[12] | high[32] | q[128]
//
//   u[j] of unit s = nibble of q as in Q4_K + 16 * bit s of high[j]      scales: k_scales.h
//   weight j of unit s = d * sc[s] * u[j] - dmin * mn[s]
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/k_scales.h"
#include "quant/panels.h"
#include "quant/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/q5_k.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/unpack-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t dmin[2];
  uint8_t scales[12];
  uint8_t high[32];
  uint8_t q[128];
};
static_assert(sizeof(Block) == 176);

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index / 8];
  const size_t s = index % 8;
  uint8_t sc[8], mn[8];
  UnpackKScales(b.scales, sc, mn);
  for (size_t j = 0; j < 32; ++j) {
    const int nibble = b.q[s / 2 * 32 + j] >> (s % 2 * 4) & 15;
    out->u[j] = static_cast<uint8_t>(nibble | (b.high[j] >> s & 1) << 4);
  }
  out->scale = LoadF16(b.d) * static_cast<float>(sc[s]);
  out->min = LoadF16(b.dmin) * static_cast<float>(mn[s]);
  NoSubScales(out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) { DecodeCodes(blocks, n, out, 0, Codes); }

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  PackPanels<Block, PanelQ5_K>(rows, blocks, panel, [](const Block& b, size_t r, PanelQ5_K* p) {
    p->d[r] = Load16(b.d);
    p->dmin[r] = Load16(b.dmin);
    uint8_t sc[8], mn[8];
    UnpackKScales(b.scales, sc, mn);
    for (size_t s = 0; s < 8; ++s) {
      p->sc[s][r] = sc[s];
      p->mn[s][r] = mn[s];
      uint32_t nibbles[8], fifth[8];
      for (size_t g = 0; g < 8; ++g) {
        nibbles[g] = Load32(b.q + s / 2 * 32 + 4 * g) >> (s % 2 * 4) & kLow4;
        fifth[g] = Load32(b.high + 4 * g) >> s & kLow1;
      }
      PutNibbles(nibbles, r, p->unit[s].q);
      PutFifthBits(fifth, r, p->unit[s].h);
    }
  });
}
void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelQ5_K>(panel, blocks, rows, [](const PanelQ5_K& p, size_t r, Block* b) {
    Store16(p.d[r], b->d);
    Store16(p.dmin[r], b->dmin);
    uint8_t sc[8], mn[8];
    uint32_t high[8] = {}, q[4][8] = {};
    for (size_t s = 0; s < 8; ++s) {
      sc[s] = p.sc[s][r];
      mn[s] = p.mn[s][r];
      uint32_t nibbles[8], fifth[8];
      GetNibbles(p.unit[s].q, r, nibbles);
      GetFifthBits(p.unit[s].h, r, fifth);
      for (size_t g = 0; g < 8; ++g) {
        q[s / 2][g] |= nibbles[g] << (s % 2 * 4);
        high[g] |= fifth[g] << s;
      }
    }
    PackKScales(sc, mn, b->scales);
    memcpy(b->high, high, sizeof high);
    memcpy(b->q, q, sizeof q);
  });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct Q5_KCodec {
  using Block = PanelQ5_K;
  static constexpr size_t kUnits = 8;
  static constexpr int kZero = 0, kMaxCode = 31;
  static constexpr bool kHasMin = true, kSub16 = false;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& b, size_t unit, size_t at) {
    const auto& u = b.unit[unit];
    return hn::Or(Nibbles<kGroup>(u.q, at), FifthBit<kGroup>(u.h, at));
  }
  static HWY_INLINE VF Scale(const Block& b, size_t unit, size_t row) {
    return hn::Mul(WidenF16(b.d, row), WidenSmall(b.sc[unit], row));
  }
  static HWY_INLINE VF Min(const Block& b, size_t unit, size_t row) {
    return hn::Mul(WidenF16(b.dmin, row), WidenSmall(b.mn[unit], row));
  }
};

void MatMulQ5_K(const MatMulArgs& args, ToPanel to_panel, size_t block_bytes) {
  MatMulFormat<Q5_KCodec>(args, to_panel, block_bytes);
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(MatMulQ5_K);
void MatMul(const MatMulArgs& args) {
  HWY_DYNAMIC_DISPATCH(MatMulQ5_K)(args, ToPanel, sizeof(Block));
}

}  // namespace

extern const Format kQ5_K = {
    .name = "Q5_K",
    .gguf_type = 13,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .has_min = true,
    .decode = Decode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelQ5_K),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
