// Q6_K: 256 weights of 6 bits in 16 halves of 16, each with an int8 scale under one f16
// factor. 6.5625 bits per weight.
//
//   byte  0 ..... 127 | 128 .. 191 | 192 .. 207 | 208 209
//         low[128]    | high[64]   | scales[16] | d
//
//   unit s = 4 n + t (n = 0, 1; t = 0..3), weight j = 0..31:
//   u = nibble t / 2 of low[64 n + 32 (t % 2) + j]  +  16 * (bits 2 t, 2 t + 1 of high[32 n + j])
//   weight = d * scales[2 s + j / 16] * (u - 32)
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"
#include "quant/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/q6_k.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/pack-inl.h"
#include "quant/row_unpack-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint8_t d[2];
};
static_assert(sizeof(Block) == 210);

constexpr uint8_t kZero = 32;

// Where unit s keeps its bits.
struct Place {
  size_t low, high;  // first byte of each array
  int low_shift, high_shift;
};
Place PlaceOf(size_t s) {
  const size_t n = s / 4, t = s % 4;
  return {64 * n + 32 * (t % 2), 32 * n, static_cast<int>(t / 2 * 4), static_cast<int>(2 * t)};
}

void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index / 8];
  const size_t s = index % 8;
  const Place at = PlaceOf(s);
  for (size_t j = 0; j < 32; ++j) {
    const int low = b.low[at.low + j] >> at.low_shift & 15;
    out->u[j] = static_cast<uint8_t>(low | (b.high[at.high + j] >> at.high_shift & 3) << 4);
  }
  out->scale = LoadF16(b.d);
  out->min = 0;
  NoSubScales(out);
  for (size_t h = 0; h < 2; ++h) out->sub[h] = b.scales[2 * s + h];
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeCodes(blocks, n, out, kZero, Codes);
}

void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelQ6_K>(panel, blocks, rows, [](const PanelQ6_K& p, size_t r, Block* b) {
    *b = {};
    Store16(p.d[r], b->d);
    for (size_t i = 0; i < 16; ++i) b->scales[i] = p.sc[i][r];
    for (size_t s = 0; s < 8; ++s) {
      const Place at = PlaceOf(s);
      uint32_t low[8], high[8];
      GetNibbles(p.unit[s].q, r, low);
      GetBits45(p.unit[s].h, r, high);
      for (size_t g = 0; g < 8; ++g) {
        uint8_t* to_low = b->low + at.low + 4 * g;
        uint8_t* to_high = b->high + at.high + 4 * g;
        Store32(Load32(to_low) | low[g] << at.low_shift, to_low);
        Store32(Load32(to_high) | high[g] << at.high_shift, to_high);
      }
    }
  });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct Q6_KCodec {
  using Block = PanelQ6_K;
  static constexpr size_t kBlockBytes = 210;  // of a row
  static constexpr size_t kUnits = 8;
  static constexpr int kZero = 32, kMaxCode = 63;
  static constexpr bool kHasMin = false, kSub16 = true;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& b, size_t unit, size_t at) {
    const auto& u = b.unit[unit];
    return hn::Or(Nibbles<kGroup>(u.q, at), Bits45<kGroup>(u.h, at));
  }
  static HWY_INLINE VF Scale(const Block& b, size_t, size_t row) { return WidenF16(b.d, row); }
  static HWY_INLINE VI16 Sub(const Block& b, size_t unit, size_t half, size_t row) {
    return WidenSub(b.sc[2 * unit + half], row);
  }

  // Bits kShift, kShift + 1 of eight groups, four groups to a plane.
  template <int kShift>
  static HWY_INLINE void PackBits45(const uint8_t (*groups)[64], uint8_t (*h)[64]) {
    for (size_t i = 0; i < 2; ++i, groups += 4) {
      for (size_t at = 0; at < 64; at += 4 * kLanes) {
        const VU8 a = hn::Load(D8(), groups[0] + at), b = hn::Load(D8(), groups[1] + at);
        const VU8 c = hn::Load(D8(), groups[2] + at), d = hn::Load(D8(), groups[3] + at);
        const VU8 ab = hn::Or(hn::And(ShiftBytesRight<kShift>(a), hn::Set(D8(), 0x03)),
                              hn::And(ShiftBytesRight<kShift - 2>(b), hn::Set(D8(), 0x0c)));
        const VU8 cd = hn::Or(hn::And(ShiftBytesRight<kShift - 4>(c), hn::Set(D8(), 0x30)),
                              hn::And(ShiftBytesRight<kShift - 6>(d), hn::Set(D8(), 0xc0)));
        hn::StoreU(hn::Or(ab, cd), D8(), h[i] + at);
      }
    }
  }

  template <size_t i>
  static HWY_INLINE VU8 RowCodes(const uint8_t* p) {
    const uint8_t* const block = p + i / kSuperVectors * kBlockBytes;
    constexpr size_t j = i % kSuperVectors;
    constexpr size_t n = UnitOf(j) / 4, t = UnitOf(j) % 4;  // and t + 1 with kWide
    const uint8_t* const q = block + 64 * n + 32 * (t % 2) + 16 * HalfOf(j);
    const VU8 low = ShiftBytesRight<static_cast<int>(t / 2 * 4)>(hn::LoadU(D8(), q));
    const VU8 high = DupThirtyTwo<HalfOf(j)>(block + 128 + 32 * n);
    constexpr int kLeft = 4 - 2 * static_cast<int>(t);
    const VU8 bits = ShiftHalvesLeft<kLeft, kLeft - 2>(high);
    return hn::Or(hn::And(low, hn::Set(D8(), 0x0f)), hn::And(bits, hn::Set(D8(), 0x30)));
  }
  using RowScale = float;
  static HWY_INLINE void RowScales(const uint8_t* p, float* scale, float*) {
    SLUICE_UNROLL
    for (size_t b = 0; b < kRowUnits / 8; ++b, p += kBlockBytes) {
      const auto d = DupF16(p + 208);
      SLUICE_UNROLL
      for (size_t i = 0; i < 8; i += HWY_MAX_LANES_D(DF8)) hn::StoreU(d, DF8(), scale + 8 * b + i);
    }
  }
  static HWY_INLINE VF WidenRowScale(const float* p) { return LoadScales(p); }
  static HWY_INLINE const int8_t* RowSubs(const uint8_t* block) {
    return reinterpret_cast<const int8_t*>(block + 192);
  }

  static HWY_INLINE void Pack(BlockRows rows, Block* p) {
    PackHalves(rows, 208, p->d);
    HWY_ALIGN uint8_t groups[8][64];
    PackWords(rows, 192, groups);
    for (size_t i = 0; i < 4; ++i) {
      SplitBytes(groups[i], reinterpret_cast<uint8_t(*)[16]>(p->sc + 4 * i));
    }
    for (size_t n = 0; n < 2; ++n) {
      for (size_t t = 0; t < 2; ++t) {
        PackWords(rows, 64 * n + 32 * t, groups);
        PackWords(rows, 64 * n + 32 * t + 16, groups + 4);
        PackNibbles<0>(groups, p->unit[4 * n + t].q);
        PackNibbles<4>(groups, p->unit[4 * n + t + 2].q);
      }
      PackWords(rows, 128 + 32 * n, groups);
      PackWords(rows, 128 + 32 * n + 16, groups + 4);
      PackBits45<0>(groups, p->unit[4 * n].h);
      PackBits45<2>(groups, p->unit[4 * n + 1].h);
      PackBits45<4>(groups, p->unit[4 * n + 2].h);
      PackBits45<6>(groups, p->unit[4 * n + 3].h);
    }
  }
};

void ToPanelQ6_K(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackBlocks<Q6_KCodec>(rows, blocks, panel);
}
void MatMulQ6_K(const MatMulArgs& args) { MatMulFormat<Q6_KCodec>(args, ToPanelQ6_K); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(ToPanelQ6_K);
HWY_EXPORT(MatMulQ6_K);

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelQ6_K)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulQ6_K)(args); }

}  // namespace

extern const Format kQ6_K = {
    .name = "Q6_K",
    .gguf_type = 14,
    .block_values = 256,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .zero = kZero,
    .sub16 = true,
    .decode = Decode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelQ6_K),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
