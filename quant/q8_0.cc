// Q8_0: 32 int8 weights share one f16 scale. 8.5 bits per weight.
//
//   byte  0 1 | 2 ...... 33
//         d   | q[32]              weight j = d * q[j]
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/q8_0.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/pack-inl.h"
#include "quant/row_unpack-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t d[2];
  uint8_t q[32];
};
static_assert(sizeof(Block) == 34);

constexpr uint8_t kZero = 128;

// Flipping the sign bit turns int8 into an unsigned code with zero point 128.
void Codes(const uint8_t* row, size_t index, Codes32* out) {
  const Block& b = AsBlocks<Block>(row)[index];
  for (size_t j = 0; j < 32; ++j) out->u[j] = b.q[j] ^ 0x80;
  out->scale = LoadF16(b.d);
  out->min = 0;
  NoSubScales(out);
}

void Decode(const uint8_t* blocks, size_t n, float* out) {
  DecodeCodes(blocks, n, out, kZero, Codes);
}

void Encode(const float* in, size_t n, uint8_t* blocks) {
  Block* b = AsBlocks<Block>(blocks);
  for (size_t i = 0; i < n; i += 32, ++b) {
    const float d = std::fabs(SignedMax(in + i, 32)) / 127;
    const float inverse = InverseOrZero(d);
    StoreF16(d, b->d);
    for (size_t j = 0; j < 32; ++j) {
      // Halves round away from zero, as ggml's plain quantiser does.
      const float v = in[i + j] * inverse;
      const uint8_t size = CutToCode(std::fabs(v) + 0.5f, 127);
      b->q[j] = static_cast<uint8_t>(v < 0 ? -size : size);
    }
  }
}

void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  UnpackPanels<Block, PanelQ8_0>(panel, blocks, rows, [](const PanelQ8_0& p, size_t r, Block* b) {
    Store16(p.d[r], b->d);
    for (size_t g = 0; g < 8; ++g) memcpy(b->q + 4 * g, p.q[g] + 4 * r, 4);
  });
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

struct Q8_0Codec {
  using Block = PanelQ8_0;
  static constexpr size_t kBlockBytes = 34;  // of a row
  static constexpr size_t kUnits = 1;
  static constexpr int kZero = 128, kMaxCode = 255;
  static constexpr bool kHasMin = false, kSub16 = false;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& b, size_t, size_t at) {
    return hn::BitCast(D8(),
                       hn::Xor(hn::LoadU(DI8(), b.q[kGroup] + at), hn::Set(DI8(), int8_t{-128})));
  }
  static HWY_INLINE VF Scale(const Block& b, size_t, size_t row) { return WidenF16(b.d, row); }

  template <size_t i>
  static HWY_INLINE VU8 RowCodes(const uint8_t* p) {
    const uint8_t* const q = p + 2 + UnitOf(i) * kBlockBytes + 16 * HalfOf(i);
    return hn::Xor(LoadTwoHalves(q, q + kBlockBytes), hn::Set(D8(), 0x80));
  }
  using RowScale = uint16_t;
  static HWY_INLINE void RowScales(const uint8_t* p, uint16_t* scale, uint16_t*) {
    RowHalves<Q8_0Codec>(p, 0, scale);
  }
  static HWY_INLINE VF WidenRowScale(const uint16_t* p) { return WidenHalves(p); }

  static HWY_INLINE void Pack(BlockRows rows, Block* p) {
    PackHalves(rows, 0, p->d);
    uint8_t(*const q)[64] = reinterpret_cast<uint8_t(*)[64]>(p->q);
    PackWords(rows, 2, q);
    PackWords(rows, 18, q + 4);
  }
};

void ToPanelQ8_0(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackBlocks<Q8_0Codec>(rows, blocks, panel);
}
void MatMulQ8_0(const MatMulArgs& args) { MatMulFormat<Q8_0Codec>(args, ToPanelQ8_0); }

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(ToPanelQ8_0);
HWY_EXPORT(MatMulQ8_0);

void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelQ8_0)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulQ8_0)(args); }

}  // namespace

extern const Format kQ8_0 = {
    .name = "Q8_0",
    .gguf_type = 8,
    .block_values = 32,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kInt8,
    .zero = kZero,
    .decode = Decode,
    .encode = Encode,
    .codes = Codes,
    .panel_block_bytes = sizeof(PanelQ8_0),
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
