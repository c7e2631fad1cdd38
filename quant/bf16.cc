// BF16: the upper half of a float32: 1 sign, 8 exponent, 7 fraction bits. 16 bits per weight.
#include "quant/blocks.h"
#include "quant/format.h"
#include "quant/half.h"
#include "quant/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/bf16.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quant/float_rows-inl.h"
#include "simd/bf16_dot-inl.h"
#include "simd/float_amx-inl.h"

#if HWY_ONCE

namespace sluice {
namespace {

struct Block {
  uint8_t w[2];
};
static_assert(sizeof(Block) == 2);

void Decode(const uint8_t* blocks, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = F32FromBF16(Load16(blocks + 2 * i));
}
void Encode(const float* in, size_t n, uint8_t* blocks) {
  for (size_t i = 0; i < n; ++i) Store16(BF16FromF32(in[i]), blocks + 2 * i);
}

void FromPanel(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows]) {
  const size_t even = blocks / 2 * 2;
  const uint16_t* const last = reinterpret_cast<const uint16_t*>(panel) + even * kPanelRows;
  for (size_t r = 0; r < kPanelRows; ++r) {
    for (size_t k = 0; k < even; ++k) {
      Store16(reinterpret_cast<const PanelBF16*>(panel)[k / 2].w[r][k % 2], rows[r] + 2 * k);
    }
    if (even < blocks) Store16(last[r], rows[r] + 2 * even);
  }
}

}  // namespace
}  // namespace sluice
#endif  // HWY_ONCE

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Pairs of k in 32 bits, the even one in the low half.
struct BF16Pairs {
  using Block = PanelBF16;
  static constexpr size_t kValues = 2;
  static HWY_INLINE VI32 Load(const Block& b, size_t row) {
    return hn::LoadU(D32(), reinterpret_cast<const int32_t*>(b.w[row]));
  }
  // A pair with a zero.
  static HWY_INLINE VI32 LoadLast(const Block& b, size_t row) {
    const auto* const values = reinterpret_cast<const uint16_t*>(&b);
    return hn::PromoteTo(D32(), hn::LoadU(hn::Rebind<uint16_t, DF>(), values + row));
  }
  static HWY_INLINE void PackLine(BlockRows rows, size_t at, uint8_t* panel) {
    PackLineOfWords(rows, at, panel);
  }
  static HWY_INLINE VF Even(VI32 pairs) { return hn::BitCast(DF(), hn::ShiftLeft<16>(pairs)); }
  static HWY_INLINE VF Odd(VI32 pairs) {
    return hn::BitCast(DF(), hn::And(pairs, hn::Set(D32(), static_cast<int32_t>(0xffff0000))));
  }
};

// One FMA after the other.
struct BF16Codec : BF16Pairs, FloatMath {
  static constexpr size_t kSteps = 2;
  // Loads the pair for each step: kept between, it would be one register too many on AVX2.
  static HWY_INLINE VF Weight(const Block& b, size_t row, size_t step) {
    const VI32 pairs = Load(b, row);
    return step == 0 ? Even(pairs) : Odd(pairs);
  }
  static HWY_INLINE VF LastWeight(const Block& b, size_t row) { return Even(LoadLast(b, row)); }
  static HWY_INLINE VF BroadcastLast(const float* x) { return Broadcast(x); }
};

// Pairs times pairs of bfloat16, as the CPU does it (it may round the sum of two products, and
// takes subnormal numbers for zeros); without the instruction two FMAs, for tests.
struct BF16Dot : BF16Pairs {
  using Input = uint16_t;
  static constexpr size_t kSteps = 1;
  static HWY_INLINE VF Weight(const Block& b, size_t row, size_t) {
    return hn::BitCast(DF(), Load(b, row));
  }
  static HWY_INLINE VF LastWeight(const Block& b, size_t row) {
    return hn::BitCast(DF(), LoadLast(b, row));
  }
  static HWY_INLINE VF Broadcast(const uint16_t* x) { return hn::BitCast(DF(), Broadcast4(x)); }
  static HWY_INLINE VF BroadcastLast(const uint16_t* x) {
    return hn::BitCast(DF(), hn::Set(D32(), *x));
  }
  static HWY_INLINE VF MulAdd(VF weight, VF x, VF sum) {
#if SLUICE_FAST_DOT_BF16
    const hn::Repartition<hwy::bfloat16_t, DF> pairs;
    VF none = hn::Zero(DF());
    return hn::ReorderWidenMulAccumulate(DF(), hn::BitCast(pairs, weight), hn::BitCast(pairs, x),
                                         sum, none);
#else
    const VI32 w = hn::BitCast(D32(), weight), a = hn::BitCast(D32(), x);
    return Fuse(Odd(w), Odd(a), Fuse(Even(w), Even(a), sum));
#endif
  }
};

bool AmxPays() {
#if SLUICE_AMX_TILES
  return HasAmx();
#else
  return false;
#endif
}
// With AMX, or where the instruction is fast.
bool BF16DotPays() { return AmxPays() || SLUICE_FAST_DOT_BF16; }

void ToPanelBF16(BlockRows rows, size_t blocks, uint8_t* panel) {
  PackFloats<BF16Codec>(rows, 0, blocks, panel);
}
void MatMulBF16(const MatMulArgs& args) {
  if (args.bf16 != nullptr) {
#if SLUICE_AMX_TILES
    if (HasAmx()) return AmxFloats<BF16Dot, 1>(args).Run();
#endif
    MatMulFloat<BF16Dot>(args);
  } else {
    MatMulFloat<BF16Codec>(args);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(BF16DotPays);
HWY_EXPORT(AmxPays);
bool MultipliesBf16(const Format& format) {
  return format.dots_bf16 ? HWY_DYNAMIC_DISPATCH(BF16DotPays)()
                          : format.halves_bf16 && HWY_DYNAMIC_DISPATCH(AmxPays)();
}

namespace {

HWY_EXPORT(ToPanelBF16);
HWY_EXPORT(MatMulBF16);
void ToPanel(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(ToPanelBF16)(rows, blocks, panel);
}
void MatMul(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(MatMulBF16)(args); }

}  // namespace

extern const Format kBF16 = {
    .name = "BF16",
    .gguf_type = 30,
    .block_values = 1,
    .block_bytes = sizeof(Block),
    .arithmetic = Arithmetic::kF32,
    .dots_bf16 = true,
    .decode = Decode,
    .encode = Encode,
    .panel_block_bytes = sizeof(PanelBF16) / 2,
    .to_panel = ToPanel,
    .from_panel = FromPanel,
    .matmul = MatMul,
};

}  // namespace sluice
#endif  // HWY_ONCE
