// The matrix product of one format: one driver for every codec. Few tokens read
// the panels themselves; many tokens first expand 32 rows to bytes, once for all.
// GGUF rows: few tokens read them in place (row_kernel-inl.h), many expand them,
// repacked 16 at a time. Included by quant/*.cc; codecs: see panel_kernel-inl.h.
#if defined(SLUICE_SIMD_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_MATMUL_INL_H_
#undef SLUICE_SIMD_MATMUL_INL_H_
#else
#define SLUICE_SIMD_MATMUL_INL_H_
#endif

#include <algorithm>

#include "simd/amx_tiles-inl.h"
#include "simd/byte_panel.h"
#include "simd/panel_kernel-inl.h"
#include "simd/row_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Defined in byte_tiles.cc, for each target.
void RunByteTiles(const ByteTileArgs& tile);

using ToPanel = void (*)(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel);

// Most tokens a panel kernel takes at once. AVX2: 5 and more spill; 8 run as 4 + 4.
constexpr size_t kMaxTokens = kWide ? 8 : 4;
// Most tokens for two panels at once, on x86: 8 integer and up to 16 float sums.
constexpr size_t kTwoPanelTokens = kWide ? 4 : 1;
// Up to here unpacking in registers again and again costs less than expanding to bytes, which waits
// for memory and cannot be hidden behind few products. 1B Q4_K_M on Zen 5, tok/s of a step of so
// many sequences, expanded and not: AVX-512 16 tokens 222 and 368, 48 tokens 346 and 415, 64 tokens
// 432 and 413; AVX2 12 tokens 65 and 74, 16 156 and 160, 24 186 and 169.
constexpr size_t kFewTokens = kWide ? 48 : 16;

// Where the weights of 16 rows come from: a panel, or rows repacked into scratch chunk by chunk.
template <class C>
class PanelSource {
 public:
  using Block = typename C::Block;
  static constexpr size_t kBlockValues = kActBlock * C::kUnits;

  PanelSource(const MatMulArgs& args, ToPanel to_panel, uint8_t* scratch)
      : args_(args), to_panel_(to_panel), scratch_(scratch), blocks_(args.k / kBlockValues) {}

  // Blocks [first, first + count) of the panel that starts at `row`; count <= kChunk / kBlockValues
  // for rows.
  const Block* Get(size_t row, size_t first, size_t count) const {
    if (args_.panels) {
      return reinterpret_cast<const Block*>(args_.weights) + row / kPanelRows * blocks_ + first;
    }
    const uint8_t* rows[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) {
      const size_t real = std::min(row + r, args_.rows - 1);  // the results of copies are dropped
      rows[r] = args_.weights + (real * blocks_ + first) * C::kBlockBytes;
    }
    to_panel_(rows, count, scratch_);
    return reinterpret_cast<const Block*>(scratch_);
  }
  // Where the chunk after this one begins: in the same two panels, or in the two after them, which
  // the same thread takes next if nobody else does. Asking for what is not used costs nothing.
  void Next(size_t row, size_t first, size_t count, ByteTileArgs* tile) const {
    if (!args_.panels) return;
    if (first == blocks_) row += kTileRows, first = 0;
    for (size_t v = 0; v < kTilePanels; ++v) {
      tile->next[v] = args_.weights + ((row / kPanelRows + v) * blocks_ + first) * sizeof(Block);
    }
    tile->next_bytes = std::min(count, blocks_ - first) * sizeof(Block);
  }
  size_t blocks() const { return blocks_; }
  // Blocks to take at once: all of a panel, or a chunk.
  size_t step() const { return args_.panels ? blocks_ : kChunk / kBlockValues; }

 private:
  const MatMulArgs& args_;
  const ToPanel to_panel_;
  uint8_t* const scratch_;
  const size_t blocks_;
};

// ---- few tokens ---------------------------------------------------------------------------------

// out[r] = f[r] - m[r] of `valid` rows, kMost as a rule.
template <class C, size_t kMost>
HWY_INLINE void StoreSums(const float* HWY_RESTRICT f, const float* HWY_RESTRICT m, size_t valid,
                          float* HWY_RESTRICT out) {
  static_assert(kMost % kLanes == 0);
  if (valid != kMost) {
    for (size_t r = 0; r < valid; ++r) out[r] = f[r] - m[r];
    return;
  }
  for (size_t r = 0; r < kMost; r += kLanes) {
    VF sum = hn::Load(DF(), f + r);
    if constexpr (C::kHasMin) sum = hn::Sub(sum, hn::Load(DF(), m + r));
    hn::StoreU(sum, DF(), out + r);
  }
}

// Sums of one panel for up to kFewTokens tokens, between chunks of k.
struct FewSums {
  HWY_ALIGN float f[kFewTokens][kPanelRows];
  HWY_ALIGN float m[kFewTokens][kPanelRows];
};

// Tokens first .. first + count - 1 with the largest kernels that fit, evenly: 5 are 3 + 2 where 4
// is the most.
template <class C, size_t T = kMaxTokens>
HWY_INLINE void FewTokens(const MatMulArgs& args, const typename C::Block* w, size_t blocks,
                          size_t b, size_t first, size_t count, FewSums& sums) {
  if (count == T) {
    auto* kernel = PanelKernel<C, 1, T, true>;
    if constexpr (T == 1) {
      if (!PrefetchForOne()) kernel = PanelKernel<C, 1, T, false>;
    }
    kernel(w, 0, blocks, RowsOf<T>(args, first), b, sums.f[first], sums.m[first]);
  } else if constexpr (T > 1) {
    FewTokens<C, T - 1>(args, w, blocks, b, first, count, sums);
  }
}

// Tokens from panels, two of those at once: what is loaded of a token serves both, and two streams
// are under way. Xeon with AMX, one thread, one token, GB/s from memory with one and with two: Q4_0
// 15.2 and 18.3, Q8_0 14.0 and 15.8, Q6_K 13.1 and 14.2, Q4_K 15.7 and 16.5; running AVX2, two
// threads, 1B, tok/s: Q4_0 33.6 and 38.3, Q4_K_M 32.6 and 36.8, Q6_K 24.7 and 28.5, Q8_0 21.0
// and 24.0. Zen to Zen 4 keep to one: on Zen 3 four rounds in turns gave -6 % (Q4_0), -25 %
// (Q4_K_M) and +13 % (Q8_0), no more than their spread.
template <class C, size_t T>
void TwoPanelsAtOnce(const MatMulArgs& args, const PanelSource<C>& source) {
  if constexpr (T > 1) {
    if (args.tokens < T) return TwoPanelsAtOnce<C, T - 1>(args, source);
  }
  const size_t blocks = source.blocks();
  const TokenRows<T> tokens = RowsOf<T>(args, 0);
  for (size_t row = args.row_begin; row < args.row_end; row += kTileRows) {
    const size_t valid = std::min(kTileRows, args.row_end - row);
    HWY_ALIGN float f[T][kTileRows] = {};
    HWY_ALIGN float m[T][kTileRows] = {};
    // An odd last panel is multiplied twice, its copy dropped.
    PanelKernel<C, kTilePanels, T, true>(
        source.Get(row, 0, blocks), valid > kPanelRows ? blocks : 0, blocks, tokens, 0, f[0], m[0]);
    for (size_t t = 0; t < T; ++t) {
      StoreSums<C, kTileRows>(f[t], m[t], valid, args.out + t * args.out_stride + row);
    }
  }
}

template <class C>
void MatMulFew(const MatMulArgs& args, const PanelSource<C>& source) {
  if constexpr (HWY_ARCH_X86) {
    if (args.panels && args.tokens <= kTwoPanelTokens && !IsZenBefore5()) {
      return TwoPanelsAtOnce<C, kTwoPanelTokens>(args, source);
    }
  }
  FewSums sums;
  const size_t pieces = (args.tokens + kMaxTokens - 1) / kMaxTokens;
  for (size_t row = args.row_begin; row < args.row_end; row += kPanelRows) {
    for (size_t t = 0; t < args.tokens; ++t) {
      std::fill_n(sums.f[t], kPanelRows, 0.0f);
      std::fill_n(sums.m[t], kPanelRows, 0.0f);
    }
    for (size_t first = 0; first < source.blocks(); first += source.step()) {
      const size_t count = std::min(source.step(), source.blocks() - first);
      const typename C::Block* w = source.Get(row, first, count);
      for (size_t p = 0, t = 0; p < pieces; ++p) {
        const size_t some = (args.tokens - t) / (pieces - p);
        FewTokens<C>(args, w, count, first * C::kUnits, t, some, sums);
        t += some;
      }
    }
    const size_t valid = std::min(kPanelRows, args.row_end - row);
    for (size_t t = 0; t < args.tokens; ++t) {
      StoreSums<C, kPanelRows>(sums.f[t], sums.m[t], valid, args.out + t * args.out_stride + row);
    }
  }
}

// ---- many tokens --------------------------------------------------------------------------------

// Codes, or signed bytes, scales and minimums of `blocks` blocks as units. `Unit`: ByteUnit or
// ByteUnitSub.
template <class C, class Unit, bool kSigned>
HWY_NOINLINE void Expand(const typename C::Block* w, size_t blocks, Unit* HWY_RESTRICT units,
                         MinUnit* HWY_RESTRICT mins) {
  for (size_t i = 0; i < blocks; ++i, ++w) {
    for (size_t unit = 0; unit < C::kUnits; ++unit, ++units) {
      for (size_t row = 0; row < kPanelRows; row += kLanes) {
        const size_t at = 4 * row;
        const auto put = [&](VU8 codes, size_t group) HWY_ATTR {
          if constexpr (kSigned) codes = hn::Sub(codes, hn::Set(D8(), C::kZero));
          hn::Store(codes, D8(), units->u[group] + at);
        };
        put(C::template Codes<0>(*w, unit, at), 0);
        put(C::template Codes<1>(*w, unit, at), 1);
        put(C::template Codes<2>(*w, unit, at), 2);
        put(C::template Codes<3>(*w, unit, at), 3);
        put(C::template Codes<4>(*w, unit, at), 4);
        put(C::template Codes<5>(*w, unit, at), 5);
        put(C::template Codes<6>(*w, unit, at), 6);
        put(C::template Codes<7>(*w, unit, at), 7);
        hn::Store(C::Scale(*w, unit, row), DF(), units->scale + row);
        if constexpr (C::kSub16) {
          for (size_t h = 0; h < 2; ++h) {
            hn::Store(hn::BitCast(D32(), C::Sub(*w, unit, h, row)), D32(), units->sub[h] + row);
          }
        }
        if constexpr (C::kHasMin) hn::Store(C::Min(*w, unit, row), DF(), mins->min + row);
      }
      if constexpr (C::kHasMin) ++mins;
    }
  }
}

template <class C>
void MatMulMany(const MatMulArgs& args, const PanelSource<C>& source,
                const MatMulScratch& scratch) {
  using Unit = hwy::If<C::kSub16, ByteUnitSub, ByteUnit>;
  auto* expand = Expand<C, Unit, false>;
  bool signed_codes = false;
  if constexpr (SLUICE_AMX_TILES && !C::kSub16 && C::kZero != 0) {
    signed_codes = InAmxTiles(args) && AmxTokens(args.tokens) == args.tokens;
    if (signed_codes) expand = Expand<C, Unit, true>;
  }
  const bool long_chunks = InAmxTiles(args) && args.panels;
  const size_t chunk_units = long_chunks ? kAmxChunkUnits : kChunkUnits;
  const size_t chunk_blocks = chunk_units / C::kUnits;
  Unit* const units = reinterpret_cast<Unit*>(scratch.units);
  MinUnit* const mins = reinterpret_cast<MinUnit*>(scratch.mins);
  const size_t all_units = args.k / kActBlock;
  ByteTileArgs tile{.args = &args,
                    .zero = C::kZero,
                    .max_code = C::kMaxCode,
                    .sub16 = C::kSub16,
                    .has_min = C::kHasMin,
                    .units = units,
                    .signed_codes = signed_codes,
                    .chunk_units = chunk_units,
                    .mins = mins};
  for (tile.row = args.row_begin; tile.row < args.row_end; tile.row += kTileRows) {
    for (size_t first = 0; first < source.blocks(); first += chunk_blocks) {
      const size_t count = std::min(chunk_blocks, source.blocks() - first);
      tile.unit_begin = first * C::kUnits;
      tile.unit_count = count * C::kUnits;
      for (size_t v = 0; v < kTilePanels; ++v) {
        const size_t row = tile.row + v * kPanelRows;
        if (row >= args.row_end) break;
        expand(source.Get(row, first, count), count, units + v * chunk_units,
               mins + v * all_units + tile.unit_begin);
      }
      source.Next(tile.row, first + count, chunk_blocks, &tile);
      RunByteTiles(tile);
    }
  }
}

template <class C>
void MatMulFormat(const MatMulArgs& args, ToPanel to_panel) {
  if (!args.panels && args.tokens <= kRowTokens && args.k >= kRowUnits * kActBlock) {
    return MatMulRows<C>(args, args.scratch);
  }
  const MatMulScratch scratch = LayOut(args.scratch);
  const PanelSource<C> source(args, to_panel, scratch.panel);
  if (args.tokens <= kFewTokens) {
#if SLUICE_AVX_VNNI
    if (UsesAvxVnni()) {
      return MatMulFew(args, PanelSource<WithVnni<C>>(args, to_panel, scratch.panel));
    }
#endif
    MatMulFew(args, source);
  } else {
    MatMulMany(args, source, scratch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
