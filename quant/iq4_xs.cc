// IQ4_XS: 256 weights of 4 bits, looked up as in IQ4_NL, in 8 units of 32, each with a 6-bit
// scale under one f16 factor. 4.25 bits per weight.
//
//   byte  0 1 | 2 3  | 4 .. 7 | 8 ...... 135
//         d   | high | low[4] | q[128]
//
//   unit s: ls = nibble s % 2 of low[s / 2] + 16 * (bits 2 s, 2 s + 1 of the word `high`) - 32
//           i[j] = low nibble of q[16 s + j], i[j + 16] = its high nibble
//   weight j of unit s = d * ls * kIQ4Values[i[j]]
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"
#include "quant/planes.h"
#include "quant/values16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/iq4_xs.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/pack-inl.h"
#include "quant/row_unpack-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t high[2];
  uint8_t low[4];
  uint8_t q[8][16];
};
static_assert(sizeof(Block) == 136);

constexpr uint8_t kZero = 128;

int Scale(const Block& b, size_t s) {
  const int low = b.low[s / 2] >> (s % 2 * 4) & 15;
  return (low | (Load16(b.high) >> (2 * s) & 3) << 4) - 32;
}

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index / 8];
  const size_t s = index % 8;
  NibblesToCodes(b.q[s], out->u);
  for (uint8_t& u : out->u) u = static_cast<uint8_t>(kIQ4Values[u] + kZero);
  out->scale = LoadF16(b.d) * static_cast<float>(Scale(b, s));
  out->min = 0;
  NoSubScales(out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeCodes(blocks, n, out, kZero, Codes);
}

void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  const auto unpack = [](const PanelIQ4_XS& p, size_t r, Block* b) {
    Store16(p.d[r], b->d);
    uint32_t low = 0, high = 0;
    for (size_t s = 0; s < 8; ++s) {
      const uint32_t scale = static_cast<uint32_t>(p.ls[s][r] + 32);
      low |= (scale & 15) << (4 * s);
      high |= scale >> 4 << (2 * s);
      GetNibbleBytes(p.q[s], r, b->q[s]);
    }
    Store32(low, b->low);
    Store16(static_cast<uint16_t>(high), b->high);
  };
  UnpackPanels<Block, PanelIQ4_XS>(panel, blocks, rows, unpack);
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct IQ4_XSCodec {
  using Block = PanelIQ4_XS;
  static constexpr size_t kBlockBytes = 136;  // of a row
  static constexpr size_t kUnits = 8;
  static constexpr int kZero = 128, kMaxCode = 255;
  static constexpr bool kHasMin = false, kSub16 = false;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& b, size_t unit, size_t at) {
    return NibbleValues<kGroup>(b.q[unit], at, kIQ4Values, kZero);
  }
  static HWY_INLINE VF Scale(const Block& b, size_t unit, size_t row) {
    return hn::Mul(WidenF16(b.d, row), WidenSmall(b.ls[unit], row));
  }

  template <size_t i>
  static HWY_INLINE VU8 RowCodes(const uint8_t* p) {
    const uint8_t* const block = p + i / kSuperVectors * kBlockBytes;
    constexpr size_t j = i % kSuperVectors;
    return RowValues(RowNibbles<j, 16>(block + 8), kIQ4Values, kZero);
  }
  using RowScale = float;
  static HWY_INLINE void RowScales(const uint8_t* p, float* scale, float*) {
    SLUICE_UNROLL
    for (size_t b = 0; b < kRowUnits / 8; ++b, p += kBlockBytes) {
      const uint64_t ls = SpreadNibbles(Load32(p + 4)) | SpreadPairs(Load16(p + 2)) << 4;
      ScaleEight(DupF16(p), ls, -32, scale + 8 * b);
    }
  }
  static HWY_INLINE VF WidenRowScale(const float* p) { return LoadScales(p); }

  static HWY_INLINE void Pack(BlockRows rows, Block* p) {
    PackHalves(rows, 0, p->d);
    for (size_t r = 0; r < kPanelRows; ++r) {
      const uint16_t high = Load16(rows[r] + 2);
      for (size_t s = 0; s < 8; ++s) {
        const int low = rows[r][4 + s / 2] >> (s % 2 * 4) & 15;
        p->ls[s][r] = static_cast<int8_t>((low | (high >> (2 * s) & 3) << 4) - 32);
      }
    }
    for (size_t s = 0; s < 8; ++s) PackWords(rows, 8 + 16 * s, p->q[s]);
  }
};

void ToPanelIQ4_XS(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackBlocks<IQ4_XSCodec>(rows, blocks, panel);
}
void MatMulIQ4_XS(const MatMulArgs& args) { MatMulFormat<IQ4_XSCodec>(args, ToPanelIQ4_XS); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(ToPanelIQ4_XS);
HWY_EXPORT(MatMulIQ4_XS);

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelIQ4_XS)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulIQ4_XS)(args); }

}  // namespace

extern const Format kIQ4_XS = {
    .name = "IQ4_XS",
    .gguf_type = 23,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .zero = kZero,
    .decode = Decode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelIQ4_XS),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
