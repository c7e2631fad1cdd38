// From GGUF rows to panels (pictures in panels.h), 16 rows at a time: 4-byte words
// are transposed, then bits move in vectors of 16 rows. At load this decides how
// soon a model starts; for rows in place it is part of every product.
#if defined(SLUICE_QUANT_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_QUANT_PACK_INL_H_
#undef SLUICE_QUANT_PACK_INL_H_
#else
#define SLUICE_QUANT_PACK_INL_H_
#endif

#include "quant/blocks.h"
#include "quant/unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// One block in each of 16 rows.
using BlockRows = const uint8_t* const*;  // [16]

// Four vectors of four words, transposed.
struct Words4 {
  using D = hn::FixedTag<uint32_t, 4>;
  using V = hn::Vec<D>;
  V v[4];
  HWY_INLINE Words4(V a, V b, V c, V d) {
    const D t;
    const V ab = hn::InterleaveLower(t, a, b), ab_high = hn::InterleaveUpper(t, a, b);
    const V cd = hn::InterleaveLower(t, c, d), cd_high = hn::InterleaveUpper(t, c, d);
    v[0] = hn::ConcatLowerLower(t, cd, ab);
    v[1] = hn::ConcatUpperUpper(t, cd, ab);
    v[2] = hn::ConcatLowerLower(t, cd_high, ab_high);
    v[3] = hn::ConcatUpperUpper(t, cd_high, ab_high);
  }
};

// Bytes [offset, offset + 16) of the rows as four groups: word r of group g is bytes 4 g .. of row
// r.
HWY_INLINE void PackWords(BlockRows rows, size_t offset, uint8_t (*groups)[64]) {
  const Words4::D d;
  const auto load = [&rows, offset, d](size_t r) HWY_ATTR {
    return hn::LoadU(d, reinterpret_cast<const uint32_t*>(rows[r] + offset));
  };
  for (size_t r = 0; r < kPanelRows; r += 4) {
    const Words4 w(load(r), load(r + 1), load(r + 2), load(r + 3));
    for (size_t g = 0; g < 4; ++g) {
      hn::StoreU(w.v[g], d, reinterpret_cast<uint32_t*>(groups[g] + 4 * r));
    }
  }
}

// Bytes of a group by their place in the word: planes[j][r] = byte j of word r.
HWY_INLINE void SplitBytes(const uint8_t group[64], uint8_t (*planes)[16]) {
  const Words4::D d;
  const hn::FixedTag<uint8_t, 16> d8;
  alignas(16) static constexpr uint8_t kOrder[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                     2, 6, 10, 14, 3, 7, 11, 15};
  const auto order = hn::Load(d8, kOrder);
  const auto load = [&](size_t i) HWY_ATTR {
    return hn::BitCast(d, hn::TableLookupBytes(hn::LoadU(d8, group + 16 * i), order));
  };
  const Words4 w(load(0), load(1), load(2), load(3));
  for (size_t j = 0; j < 4; ++j) hn::StoreU(hn::BitCast(d8, w.v[j]), d8, planes[j]);
}

HWY_INLINE void PackHalves(BlockRows rows, size_t offset, uint16_t* out) {
  for (size_t r = 0; r < kPanelRows; ++r) out[r] = Load16(rows[r] + offset);
}

// Eight groups of codes below 16 (in bits kShift .. kShift + 3) as nibbles.
template <int kShift>
HWY_INLINE void PackNibbles(const uint8_t (*groups)[64], uint8_t (*q)[64]) {
  for (size_t v = 0; v < 4; ++v) {
    for (size_t at = 0; at < 64; at += 4 * kLanes) {
      const VU8 low = ShiftBytesRight<kShift>(hn::LoadU(D8(), groups[v] + at));
      const VU8 high = ShiftBytesRight<kShift - 4>(hn::LoadU(D8(), groups[v + 4] + at));
      const VU8 both =
          hn::Or(hn::And(low, hn::Set(D8(), 0x0f)), hn::And(high, hn::Set(D8(), 0xf0)));
      hn::StoreU(both, D8(), q[v] + at);
    }
  }
}

// Exchanges the bits whose numbers differ by bits kHigh and kLow of the number.
template <int kHigh, int kLow>
HWY_INLINE VI32 SwapIndexBits(VI32 x) {
  constexpr int kDistance = (1 << kHigh) - (1 << kLow);
  uint32_t mask = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    if ((i >> kHigh & 1) == 0 && (i >> kLow & 1) != 0) mask |= uint32_t{1} << i;
  }
  const hn::Repartition<uint32_t, D8> d;
  const auto u = hn::BitCast(d, x);
  const auto t = hn::And(hn::Xor(u, hn::ShiftRight<kDistance>(u)), hn::Set(d, mask));
  return hn::BitCast(D32(), hn::Xor(u, hn::Xor(t, hn::ShiftLeft<kDistance>(t))));
}

// Fifth bits from a mask per row, bit k for weight k = 4 g + j: its place 4 g + j becomes 8 j + g.
HWY_INLINE void PackFifthBitMasks(BlockRows rows, size_t offset, uint8_t h[64]) {
  HWY_ALIGN uint32_t masks[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r) masks[r] = Load32(rows[r] + offset);
  for (size_t r = 0; r < kPanelRows; r += kLanes) {
    VI32 m = hn::BitCast(D32(), hn::Load(hn::Repartition<uint32_t, D8>(), masks + r));
    m = SwapIndexBits<4, 1>(m);
    m = SwapIndexBits<2, 1>(m);
    m = SwapIndexBits<3, 1>(m);
    m = SwapIndexBits<3, 0>(m);
    hn::StoreU(hn::BitCast(D8(), m), D8(), h + 4 * r);
  }
}

// The 12 bytes of k_scales.h at `offset`.
HWY_INLINE void PackSixBitScales(BlockRows rows, size_t offset, uint8_t (*sc)[16],
                                 uint8_t (*mn)[16]) {
  HWY_ALIGN uint8_t words[4][64], planes[4][64];
  PackWords(rows, offset, words);  // reads 4 bytes past the scales: weights follow
  const VU8 low2 = hn::Set(D8(), 0x03), low4 = hn::Set(D8(), 0x0f), low6 = hn::Set(D8(), 0x3f);
  for (size_t at = 0; at < 64; at += 4 * kLanes) {
    const VU8 a = hn::Load(D8(), words[0] + at), b = hn::Load(D8(), words[1] + at);
    const VU8 c = hn::Load(D8(), words[2] + at);
    const auto top = [&](VU8 v) HWY_ATTR {
      return ShiftBytesRight<-4>(hn::And(ShiftBytesRight<6>(v), low2));
    };
    hn::Store(hn::And(a, low6), D8(), planes[0] + at);
    hn::Store(hn::Or(hn::And(c, low4), top(a)), D8(), planes[1] + at);
    hn::Store(hn::And(b, low6), D8(), planes[2] + at);
    hn::Store(hn::Or(hn::And(ShiftBytesRight<4>(c), low4), top(b)), D8(), planes[3] + at);
  }
  SplitBytes(planes[0], sc);
  SplitBytes(planes[1], sc + 4);
  SplitBytes(planes[2], mn);
  SplitBytes(planes[3], mn + 4);
}

// Format::to_panel for a codec with Pack(rows, &block) and kBlockBytes.
template <class C>
void PackBlocks(BlockRows rows, size_t blocks, uint8_t* panel) {
  typename C::Block* p = reinterpret_cast<typename C::Block*>(panel);
  const uint8_t* at[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r) at[r] = rows[r];
  for (size_t b = 0; b < blocks; ++b, ++p) {
    C::Pack(at, p);
    for (size_t r = 0; r < kPanelRows; ++r) at[r] += C::kBlockBytes;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
