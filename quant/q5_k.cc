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
#include "quant/pack-inl.h"
#include "quant/row_unpack-inl.h"

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
  static constexpr size_t kBlockBytes = 176;  // of a row
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

  // Bit s of byte j of the block's 32 is the fifth bit of weight j of unit s: bits and groups
  // change places.
  static HWY_INLINE void PackFifthBits(const uint8_t (*groups)[64], Block* p) {
    for (size_t at = 0; at < 64; at += 4 * kLanes) {
      for (int s = 0; s < 8; ++s) {
        VU8 h = hn::Zero(D8());
        for (int g = 0; g < 8; ++g) {
          const VU8 bit = hn::Set(D8(), static_cast<uint8_t>(1 << s));
          const VU8 set = hn::VecFromMask(D8(), hn::TestBit(hn::Load(D8(), groups[g] + at), bit));
          h = hn::Or(h, hn::And(set, hn::Set(D8(), static_cast<uint8_t>(1 << g))));
        }
        hn::StoreU(h, D8(), p->unit[s].h + at);
      }
    }
  }

  template <size_t i>
  static HWY_INLINE VU8 RowCodes(const uint8_t* p) {
    const uint8_t* const block = p + i / kSuperVectors * kBlockBytes;
    constexpr size_t j = i % kSuperVectors;
    const VU8 high = DupThirtyTwo<HalfOf(j)>(block + 16);
    constexpr int s = UnitOf(j);  // and s + 1 with kWide
    const VU8 fifth = ShiftHalvesLeft<4 - s, 3 - s>(high);
    return hn::Or(RowNibblePairs<j>(block + 48), hn::And(fifth, hn::Set(D8(), 0x10)));
  }
  using RowScale = float;
  static HWY_INLINE void RowScales(const uint8_t* p, float* scale, float* min) {
    RowKScales<Q5_KCodec>(p, scale, min);
  }
  static HWY_INLINE VF WidenRowScale(const float* p) { return LoadScales(p); }
  static HWY_INLINE VF WidenRowMin(const float* p) { return LoadScales(p); }

  static HWY_INLINE void Pack(BlockRows rows, Block* p) {
    PackHalves(rows, 0, p->d);
    PackHalves(rows, 2, p->dmin);
    PackSixBitScales(rows, 4, p->sc, p->mn);
    HWY_ALIGN uint8_t groups[8][64];
    PackWords(rows, 16, groups);
    PackWords(rows, 32, groups + 4);
    PackFifthBits(groups, p);
    for (size_t s = 0; s < 8; s += 2) {
      PackWords(rows, 48 + 16 * s, groups);
      PackWords(rows, 64 + 16 * s, groups + 4);
      PackNibbles<0>(groups, p->unit[s].q);
      PackNibbles<4>(groups, p->unit[s + 1].q);
    }
  }
};

void ToPanelQ5_K(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackBlocks<Q5_KCodec>(rows, blocks, panel);
}
void MatMulQ5_K(const MatMulArgs& args) { MatMulFormat<Q5_KCodec>(args, ToPanelQ5_K); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(ToPanelQ5_K);
HWY_EXPORT(MatMulQ5_K);

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelQ5_K)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulQ5_K)(args); }

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
