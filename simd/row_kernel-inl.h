// Few tokens times GGUF rows in place. Rows are read one after the other, each
// from its start to its end, so that memory sees one stream. The exact integer sums
// of a row's units go to a scratch in L1; after 16 rows they are transposed, and the
// recipe's float chain runs as in PanelKernel: same bytes.
//
// What a codec adds to the one of panel_kernel-inl.h (`p`: kRowUnits units of one row):
//   kBlockBytes                  bytes of a block of a row
//   RowCodes<i>(p)               VU8: vector i of the units' codes, k ascending
//   RowScale                     type of a scale as it is kept until 16 rows are done
//   RowScales(p, scale, min)     kRowUnits of each (min: with kHasMin)
//   WidenRowScale(scale)         VF; WidenRowMin with kHasMin
//   RowSubs(p)                   with kSub16: 16 int8 of each block, the first at p
// Lost on Zen 4: 16 rows side by side, repacked to a panel in L1 (3.5 times slower for one token).
#if defined(SLUICE_SIMD_ROW_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_ROW_KERNEL_INL_H_
#undef SLUICE_SIMD_ROW_KERNEL_INL_H_
#else
#define SLUICE_SIMD_ROW_KERNEL_INL_H_
#endif

#include <algorithm>
#include <utility>

#include "simd/byte_panel.h"
#include "simd/panel_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Units of a row at once: 8 vectors, or two super-blocks' halves on 128 bits (16 vectors).
constexpr size_t kRowUnits = kWide ? 16 : 8;
constexpr size_t kRowVectors = kRowUnits * kActBlock / (4 * kLanes);
constexpr size_t kRowSums = kRowUnits / kLanes > 1 ? kRowUnits / kLanes : 1;  // vectors of sums
// Vectors of a block of 256.
constexpr size_t kSuperVectors = 256 / (4 * kLanes);
// Most tokens taken this way. From L2 repacking wins from 4 tokens on, but from DRAM it never does:
// its 16 streams read 4 to 5 GB/s (Zen 4, Q4_0: 5.2 and 4.1 for 2 and 8 tokens against 12.9
// and 4.4).
constexpr size_t kRowTokens = 8;
// Bytes ahead in the one stream, to L2. Zen 4, Q4_0 from DRAM: into L1 13 GB/s (few misses may wait
// there), 4096 ahead 17, none 11, so 19. Sapphire Rapids, two cores: 4096 2 to 6 % faster than
// 8192.
constexpr size_t kRowPrefetch = HWY_TARGET == HWY_AVX3_SPR ? 4096 : 8192;

// ---- integer sums of 32-bit lanes ---------------------------------------------------------------

// Lane j of each 128-bit block: the four lanes of v[j] there, added.
HWY_INLINE VI32 AddFour(VI32 a, VI32 b, VI32 c, VI32 d) {
  const hn::Repartition<int64_t, D8> d64;
  const auto ab =
      hn::BitCast(d64, hn::Add(hn::InterleaveLower(D32(), a, b), hn::InterleaveUpper(D32(), a, b)));
  const auto cd =
      hn::BitCast(d64, hn::Add(hn::InterleaveLower(D32(), c, d), hn::InterleaveUpper(D32(), c, d)));
  return hn::Add(hn::BitCast(D32(), hn::InterleaveLower(d64, ab, cd)),
                 hn::BitCast(D32(), hn::InterleaveUpper(d64, ab, cd)));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

template <class C>
struct RowDot {
  using W = VU8;
  using Products = VI32;
  static constexpr bool kFromZero = C::kZero != 0;  // codes are unsigned: the zero point is to come
  // How often sums of 4 products still fit int16: packing two vectors and a vpmaddwd take one
  // shuffle where interleaving takes two, and shuffles are what this kernel waits for.
  static constexpr int kPacks = 8 * 127 * C::kMaxCode <= 32767   ? 2
                                : 4 * 127 * C::kMaxCode <= 32767 ? 1
                                                                 : 0;

  static HWY_INLINE W Prepare(VU8 codes) { return codes; }
  static HWY_INLINE VI32 Multiply(W w, VI8 a) {
    return hn::SumOfMulQuadAccumulate(D32(), w, a, hn::Zero(D32()));
  }
  static HWY_INLINE VI32 PackAndAdd(VI32 a, VI32 b) {
    const VI16 both = hn::ReorderDemote2To(D16(), a, b);  // in 128-bit blocks
    return hn::WidenMulPairwiseAdd(D32(), both, hn::Set(D16(), 1));
  }
  static HWY_INLINE VI32 Four(VI32 a, VI32 b, VI32 c, VI32 d) {
    if constexpr (kPacks == 0) return AddFour(a, b, c, d);
    const VI32 ab = PackAndAdd(a, b), cd = PackAndAdd(c, d);
    if constexpr (kPacks == 2) return PackAndAdd(ab, cd);
    const VF x = hn::BitCast(DF(), ab), y = hn::BitCast(DF(), cd);
    const VF even = VF{_mm512_shuffle_ps(x.raw, y.raw, 0x88)};
    const VF odd = VF{_mm512_shuffle_ps(x.raw, y.raw, 0xdd)};
    return hn::Add(hn::BitCast(D32(), even), hn::BitCast(D32(), odd));
  }
};

#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3

template <class C>
struct RowDot {
  using Base = Dot<C>;
  static constexpr bool kSigned = Base::kSigned;
  static constexpr bool kFromZero = C::kZero != 0 && !kSigned;
  using W = typename Base::W;
  using Products = VI16;
  // How often two int16 lanes of products can be added before they must widen.
  static constexpr int kLargestLane = 2 * 127 * (kSigned ? 128 : C::kMaxCode);
  static constexpr int kNarrow = 4 * kLargestLane <= 32767 ? 2 : 2 * kLargestLane <= 32767 ? 1 : 0;

  static HWY_INLINE W Prepare(VU8 codes) { return Base::Prepare(codes); }
  static HWY_INLINE VI16 Multiply(const W& w, VI8 a) { return Base::Products(w, a); }
  static HWY_INLINE VI32 Widen(VI16 v) {
    return hn::WidenMulPairwiseAdd(D32(), v, hn::Set(D16(), 1));
  }
  // Two int16 lanes move as one 32-bit lane.
  static HWY_INLINE VI16 AddTwo(VI16 a, VI16 b) {
    const VI32 x = hn::BitCast(D32(), a), y = hn::BitCast(D32(), b);
    return hn::Add(hn::BitCast(D16(), hn::InterleaveLower(D32(), x, y)),
                   hn::BitCast(D16(), hn::InterleaveUpper(D32(), x, y)));
  }
  static HWY_INLINE VI32 Four(VI16 a, VI16 b, VI16 c, VI16 d) {
    if constexpr (kNarrow == 0) return AddFour(Widen(a), Widen(b), Widen(c), Widen(d));
    const hn::Repartition<int64_t, D8> d64;
    if constexpr (kNarrow == 1) {
      const auto ab = hn::BitCast(d64, Widen(AddTwo(a, b)));
      const auto cd = hn::BitCast(d64, Widen(AddTwo(c, d)));
      return hn::Add(hn::BitCast(D32(), hn::InterleaveLower(d64, ab, cd)),
                     hn::BitCast(D32(), hn::InterleaveUpper(d64, ab, cd)));
    }
    const auto ab = hn::BitCast(d64, AddTwo(a, b)), cd = hn::BitCast(d64, AddTwo(c, d));
    return Widen(hn::Add(hn::BitCast(D16(), hn::InterleaveLower(d64, ab, cd)),
                         hn::BitCast(D16(), hn::InterleaveUpper(d64, ab, cd))));
  }
};

#else

template <class C>
struct RowDot {
  using W = VI8;
  using Products = VI32;
  static constexpr bool kFromZero = false;
  static HWY_INLINE W Prepare(VU8 codes) { return Dot<C>::Prepare(codes); }
  static HWY_INLINE VI32 Multiply(W w, VI8 a) {
    return hn::SumOfMulQuadAccumulate(D32(), w, a, hn::Zero(D32()));
  }
  static HWY_INLINE VI32 Four(VI32 a, VI32 b, VI32 c, VI32 d) { return AddFour(a, b, c, d); }
};

#endif

// Sums of 16 k come out of RowDot::Four in this order of (2 unit + half), per 16 sub-scales.
alignas(16) constexpr uint8_t kSubOrder[16] = {0,
                                               kWide ? 4 : 2,
                                               kWide ? 8 : 4,
                                               kWide ? 12 : 6,
                                               1,
                                               kWide ? 5 : 3,
                                               kWide ? 9 : 5,
                                               kWide ? 13 : 7,
                                               kWide ? 2 : 8,
                                               kWide ? 6 : 10,
                                               kWide ? 10 : 12,
                                               kWide ? 14 : 14,
                                               kWide ? 3 : 9,
                                               kWide ? 7 : 11,
                                               kWide ? 11 : 13,
                                               kWide ? 15 : 15};

// Sums over halves of units, as RowDot::Four leaves them, to sums of units in order.
HWY_INLINE VI32 JoinHalves(VI32 z0, VI32 z1) {
  if constexpr (kParts == 4) {
    return hn::Add(z0, z1);
  } else {
#if HWY_MAX_BYTES >= 32
    const VI32 sums =
        hn::Add(hn::OddEvenBlocks(z1, z0), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(z0, z1)));
    if constexpr (!kWide) return sums;
    alignas(64) static constexpr int32_t kOrder[16] = {0, 8,  1, 9,  2, 10, 3, 11,
                                                       4, 12, 5, 13, 6, 14, 7, 15};
    return hn::TableLookupLanes(sums, hn::SetTableIndices(D32(), kOrder));
#else
    return z0;
#endif
  }
}

// ---- transposing --------------------------------------------------------------------------------

// v[i] lane j becomes v[j] lane i; kLanes vectors.
HWY_INLINE void Transpose(VI32* v) {
  const hn::Repartition<int64_t, D8> d64;
  VI32 t[kLanes];
  SLUICE_UNROLL
  for (size_t i = 0; i < kLanes; i += 2) {
    t[i] = hn::InterleaveLower(D32(), v[i], v[i + 1]);
    t[i + 1] = hn::InterleaveUpper(D32(), v[i], v[i + 1]);
  }
  SLUICE_UNROLL
  for (size_t i = 0; i < kLanes; i += 4) {
    SLUICE_UNROLL
    for (size_t j = 0; j < 2; ++j) {
      const auto a = hn::BitCast(d64, t[i + j]), b = hn::BitCast(d64, t[i + j + 2]);
      v[i + 2 * j] = hn::BitCast(D32(), hn::InterleaveLower(d64, a, b));
      v[i + 2 * j + 1] = hn::BitCast(D32(), hn::InterleaveUpper(d64, a, b));
    }
  }
#if HWY_MAX_BYTES >= 32
  if constexpr (kParts < 4) {
    SLUICE_UNROLL
    for (size_t i = 0; i < kLanes; i += 8) {
      SLUICE_UNROLL
      for (size_t j = i; j < i + 4; ++j) {
        t[j] = hn::InterleaveEvenBlocks(D32(), v[j], v[j + 4]);
        t[j + 4] = hn::InterleaveOddBlocks(D32(), v[j], v[j + 4]);
      }
    }
    SLUICE_UNROLL
    for (size_t j = 0; j < 8; ++j) {
      if constexpr (kWide) {
        v[j] = hn::ConcatLowerLower(D32(), t[j + kLanes / 2], t[j]);
        v[j + kLanes / 2] = hn::ConcatUpperUpper(D32(), t[j + kLanes / 2], t[j]);
      } else {
        v[j] = t[j];
      }
    }
  }
#endif
}

// ---- the scratch of 16 rows ---------------------------------------------------------------------

// Units of a row between float passes. Whole rows up to k = 4096: no gaps in the stream.
constexpr size_t kRowChunk = 128;
// Columns before the first: a row's last step overlaps the one before it, wherever a chunk starts.
constexpr size_t kRowMargin = kRowUnits;
constexpr size_t kRowColumns = kRowChunk + 16;  // 9 cache lines: rows fall into different sets

template <class C>
struct alignas(64) RowScratch {
  int32_t sums[kRowTokens][kPanelRows][kRowColumns];
  typename C::RowScale scale[kPanelRows][kRowColumns];
  typename C::RowScale min[C::kHasMin ? kPanelRows : 1][kRowColumns];
  alignas(64) float panel_scale[kRowChunk][kPanelRows];  // transposed
  alignas(64) float panel_min[C::kHasMin ? kRowChunk : 1][kPanelRows];
  // With kSub16: -zero * sum(a) over 16 k, in the order of kSubOrder.
  int32_t from_zero[C::kSub16 ? kRowTokens : 1][2 * kRowColumns];
};

// The tokens of one product.
struct RowInput {
  size_t tokens;
  const int8_t* q[kRowTokens];
  size_t off[kRowTokens];  // of a token's first block in the other arrays of `act`
  const ActView* act;
};

template <class C, size_t... i>
HWY_INLINE void LoadRowCodes(const uint8_t* p, typename RowDot<C>::W* w,
                             std::index_sequence<i...>) {
  ((w[i] = RowDot<C>::Prepare(C::template RowCodes<i>(p))), ...);
}

// The sums of kRowUnits units, times sub-scales where the format has them.
template <class C>
HWY_INLINE void StoreUnitSums(const typename RowDot<C>::Products* p, const VI32* sub,
                              const int32_t* from_zero, int32_t* out) {
  using Dot = RowDot<C>;
  SLUICE_UNROLL
  for (size_t i = 0; i < kRowSums; ++i, p += 8) {
    VI32 z0, z1;
    if constexpr (kParts < 4) {
      z0 = Dot::Four(p[0], p[1], p[2], p[3]);
      z1 = Dot::Four(p[4], p[5], p[6], p[7]);
    } else {
      z0 = Dot::Four(p[0], p[2], p[4], p[6]);
      z1 = Dot::Four(p[1], p[3], p[5], p[7]);
    }
    if constexpr (C::kSub16) {
      if constexpr (Dot::kFromZero) {
        z0 = hn::Add(z0, hn::LoadU(D32(), from_zero + 2 * i * kLanes));
        z1 = hn::Add(z1, hn::LoadU(D32(), from_zero + (2 * i + 1) * kLanes));
      }
      z0 = hn::Mul(z0, sub[2 * i]);
      z1 = hn::Mul(z1, sub[2 * i + 1]);
    }
    hn::StoreU(JoinHalves(z0, z1), D32(), out + i * kLanes);
  }
}

// The sub-scales of kRowUnits units as RowDot::Four orders its sums.
template <class C>
HWY_INLINE void LoadSubs(const uint8_t* p, VI32* sub) {
  const hn::FixedTag<int8_t, 16> d;
  const hn::Rebind<int8_t, D32> part;
  const auto order = hn::BitCast(d, hn::Load(hn::FixedTag<uint8_t, 16>(), kSubOrder));
  HWY_ALIGN int8_t ordered[2 * kRowUnits];
  SLUICE_UNROLL
  for (size_t i = 0; i < kRowUnits / 8; ++i) {
    const auto subs = hn::LoadU(d, C::RowSubs(p + i * C::kBlockBytes));
    hn::Store(hn::TableLookupBytes(subs, order), d, ordered + 16 * i);
  }
  SLUICE_UNROLL
  for (size_t i = 0; i < 2 * kRowSums; ++i) {
    sub[i] = hn::PromoteTo(D32(), hn::LoadU(part, ordered + i * kLanes));
  }
}

// Units [first, end) of one row into row r of the scratch. kOne: one token, codes stay in
// registers.
template <class C, bool kOne>
HWY_NOINLINE void RowSums(const uint8_t* HWY_RESTRICT row, size_t first, size_t end,
                          const RowInput& in, size_t r, RowScratch<C>& s) {
  using Dot = RowDot<C>;
  constexpr size_t kStep = kRowUnits / C::kUnits * C::kBlockBytes;
  const size_t tokens = kOne ? 1 : in.tokens;
  for (size_t u = first; u < end; u += kRowUnits) {
    const size_t at = std::min(u, end - kRowUnits);
    const size_t column = at + kRowMargin - first;
    const uint8_t* const p = row + at / C::kUnits * C::kBlockBytes;
    SLUICE_UNROLL
    for (size_t i = 0; i < kStep; i += 64) __builtin_prefetch(p + kRowPrefetch + i, 0, 2);
    C::RowScales(p, s.scale[r] + column, C::kHasMin ? s.min[C::kHasMin ? r : 0] + column : nullptr);
    VI32 sub[2 * kRowSums];
    if constexpr (C::kSub16) LoadSubs<C>(p, sub);
    typename Dot::W w[kRowVectors];
    LoadRowCodes<C>(p, w, std::make_index_sequence<kRowVectors>());
    for (size_t t = 0; t < tokens; ++t) {
      const int8_t* const q = in.q[t] + kActBlock * at;
      typename Dot::Products products[kRowVectors];
      SLUICE_UNROLL
      for (size_t i = 0; i < kRowVectors; ++i) {
        products[i] = Dot::Multiply(w[i], hn::LoadU(DI8(), q + 4 * kLanes * i));
      }
      StoreUnitSums<C>(products, sub, s.from_zero[C::kSub16 ? t : 0] + 2 * column,
                       s.sums[t][r] + column);
    }
  }
}

// ---- the float pass -----------------------------------------------------------------------------

// 16 rows of scales, kRowColumns apart, to [unit][16].
template <class RowScale, class F>
HWY_INLINE void TransposeScales(const RowScale (*rows)[kRowColumns], size_t units, F widen,
                                float (*panel)[kPanelRows]) {
  for (size_t b = 0; b < units; b += kLanes) {
    for (size_t row = 0; row < kPanelRows; row += kLanes) {
      VI32 v[kLanes];
      SLUICE_UNROLL
      for (size_t i = 0; i < kLanes; ++i) {
        v[i] = hn::BitCast(D32(), widen(rows[row + i] + kRowMargin + b));
      }
      Transpose(v);
      SLUICE_UNROLL
      for (size_t i = 0; i < kLanes; ++i) {
        hn::Store(hn::BitCast(DF(), v[i]), DF(), panel[b + i] + row);
      }
    }
  }
}

// The recipe's chain over `units` units from block b of the activations, for one token.
template <class C>
HWY_NOINLINE void RowChain(const RowScratch<C>& s, const RowInput& in, size_t t, size_t b,
                           size_t units, float* f, float* m) {
  const ActView& act = *in.act;
  const float* HWY_RESTRICT scale = act.scale + in.off[t] + b;
  const float* HWY_RESTRICT scaled_sum = act.scaled_sum + in.off[t] + b;
  const int32_t* HWY_RESTRICT neg_sum = act.neg_sum + in.off[t] + b;
  for (size_t row = 0; row < kPanelRows; row += kLanes) {
    VF sum_f = hn::LoadU(DF(), f + row), sum_m = hn::LoadU(DF(), m + row);
    for (size_t first = 0; first < units; first += kLanes) {
      VI32 v[kLanes];
      SLUICE_UNROLL
      for (size_t i = 0; i < kLanes; ++i) {
        v[i] = hn::LoadU(D32(), s.sums[t][row + i] + kRowMargin + first);
      }
      Transpose(v);
      SLUICE_UNROLL
      for (size_t i = 0; i < kLanes; ++i) {
        const size_t u = first + i;
        if (u >= units) continue;
        if constexpr (RowDot<C>::kFromZero && !C::kSub16) {
          v[i] = hn::Add(v[i], hn::Set(D32(), neg_sum[u] * C::kZero));
        }
        const VF both = hn::Mul(hn::Load(DF(), s.panel_scale[u] + row), hn::Set(DF(), scale[u]));
        sum_f = Fuse(hn::ConvertTo(DF(), v[i]), both, sum_f);
        if constexpr (C::kHasMin) {
          sum_m = Fuse(hn::Load(DF(), s.panel_min[u] + row), hn::Set(DF(), scaled_sum[u]), sum_m);
        }
      }
    }
    hn::StoreU(sum_f, DF(), f + row);
    hn::StoreU(sum_m, DF(), m + row);
  }
}

// Units [first, end) of token t's RowScratch::from_zero; first is that of the chunk.
template <class C>
HWY_NOINLINE void FillFromZero(const RowInput& in, size_t first, size_t end, RowScratch<C>& s) {
  const size_t begin = first < kRowMargin ? first : first - kRowMargin;
  for (size_t t = 0; t < in.tokens; ++t) {
    for (size_t u = begin; u < end; u += 8) {
      const int16_t* const sum16 = in.act->sum16 + 2 * (in.off[t] + u);
      int32_t* const out = s.from_zero[t] + 2 * (u + kRowMargin - first);
      for (size_t i = 0; i < 16; ++i) out[i] = -C::kZero * sum16[kSubOrder[i]];
    }
  }
}

template <class C>
HWY_NOINLINE void RowSums16(const MatMulArgs& args, size_t row, size_t valid, size_t first,
                            size_t end, const RowInput& in, RowScratch<C>& s) {
  const size_t row_bytes = args.k / kActBlock / C::kUnits * C::kBlockBytes;
  for (size_t r = 0; r < valid; ++r) {
    const uint8_t* const p = args.weights + (row + r) * row_bytes;
    if (in.tokens == 1) {
      RowSums<C, true>(p, first, end, in, r, s);
    } else {
      RowSums<C, false>(p, first, end, in, r, s);
    }
  }
}

// Needs k >= 32 kRowUnits and at most kRowTokens tokens.
template <class C>
void MatMulRows(const MatMulArgs& args, uint8_t* scratch) {
  static_assert(sizeof(RowScratch<C>) <= kRowScratchBytes);
  RowScratch<C>& s = *reinterpret_cast<RowScratch<C>*>(scratch);
  RowInput in{args.tokens, {}, {}, &args.act};
  const size_t units = args.k / kActBlock;
  for (size_t t = 0; t < args.tokens; ++t) {
    const size_t row = TokenRow(args, t);
    in.q[t] = args.act.q + row * args.act.stride;
    in.off[t] = row * (args.act.stride / kActBlock);
  }
  for (size_t row = args.row_begin; row < args.row_end; row += kPanelRows) {
    HWY_ALIGN float f[kRowTokens][kPanelRows] = {}, m[kRowTokens][kPanelRows] = {};
    const size_t valid = std::min(kPanelRows, args.row_end - row);
    for (size_t first = 0; first < units; first += kRowChunk) {
      const size_t end = std::min(first + kRowChunk, units);
      if constexpr (C::kSub16 && RowDot<C>::kFromZero) FillFromZero<C>(in, first, end, s);
      RowSums16<C>(args, row, valid, first, end, in, s);
      TransposeScales(s.scale, end - first, C::WidenRowScale, s.panel_scale);
      if constexpr (C::kHasMin) {
        TransposeScales(s.min, end - first, C::WidenRowMin, s.panel_min);
      }
      for (size_t t = 0; t < args.tokens; ++t) {
        RowChain<C>(s, in, t, first, end - first, f[t], m[t]);
      }
    }
    for (size_t t = 0; t < args.tokens; ++t) {
      float* const out = args.out + t * args.out_stride + row;
      for (size_t r = 0; r < valid; ++r) out[r] = f[t][r] - m[t][r];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
