// The tile kernel of prefill: two byte panels (32 rows) by a few tokens, over one
// chunk of k, for every kind of codes a format may have. The float sums wait in the
// output between chunks; minimums are subtracted with the last.
#include <string.h>

#include "simd/byte_panel.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/byte_tiles.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "simd/dot_amx-inl.h"
#include "simd/dot_i8mm-inl.h"
#include "simd/matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

template <int kZeroPoint, int kLargestCode, bool kSub>
struct ByteCodec {
  using Block = hwy::If<kSub, ByteUnitSub, ByteUnit>;
  static constexpr size_t kUnits = 1;
  static constexpr int kZero = kZeroPoint, kMaxCode = kLargestCode;
  static constexpr bool kHasMin = false, kSub16 = kSub;

  template <size_t kGroup>
  static HWY_INLINE VU8 Codes(const Block& block, size_t, size_t at) {
    return hn::Load(D8(), block.u[kGroup] + at);
  }
  static HWY_INLINE VF Scale(const Block& block, size_t, size_t row) {
    return hn::Load(DF(), block.scale + row);
  }
  static HWY_INLINE VI16 Sub(const Block& block, size_t, size_t half, size_t row) {
    return hn::BitCast(D16(), hn::Load(D32(), block.sub[half] + row));
  }
};

// Panels and tokens at once. 12 integer and 12 float sums fill AVX-512's 32 registers. Lost on Zen
// 4 (Q4_0, MAC/cycle): AVX2 1 x 6 24 against 33, AVX-512 2 x 8 with float sums in L1 41 against 47.
constexpr size_t kV = kWide ? 2 : 1;
constexpr size_t kT = kWide ? 6 : kRegisters == 32 ? 4 : kParts == 2 ? 4 : 2;
// I8MM: 12 and 12 for 8 rows. AVX-VNNI: 12 integer sums, the others in L1 (1B on a Xeon, tok/s of
// prefill with 4, 5 and 6 tokens: 264, 264, 268). Sub-scales need a third sum per output (AVX-VNNI
// with 3 and 4 tokens: 194 and 196, but 4 spill).
template <class C, bool kI8mm>
constexpr size_t kTokens = !C::kSub16       ? (kI8mm || kWithVnni<C> ? 6 : kT)
                           : kWide || kI8mm ? 4
                           : kWithVnni<C>   ? 3
                                            : kT;

// out[t][16 V] -= the minimum chain of V panels over all of k. The chain waits for the last chunk
// because its sums would not fit beside the tile's in the registers.
template <bool kSub, size_t V, size_t T>
HWY_NOINLINE void SubtractMins(const ByteTileArgs& tile, size_t panel, const TokenRows<T>& a,
                               float* out, size_t stride) {
  using Unit = hwy::If<kSub, MinUnitSub, MinUnit>;
  constexpr size_t kN = V * kParts;
  const size_t units = tile.args->k / kActBlock;
  const Unit* HWY_RESTRICT mins = static_cast<const Unit*>(tile.mins) + panel * units;
  VF m[kN][T];
  SLUICE_UNROLL
  for (size_t v = 0; v < kN; ++v) {
    SLUICE_UNROLL
    for (size_t t = 0; t < T; ++t) m[v][t] = hn::Zero(DF());
  }
  for (size_t b = 0; b < units; ++b, ++mins) {
    SLUICE_UNROLL
    for (size_t v = 0; v < kN; ++v) {
      const Unit& unit = mins[v / kParts * units];
      const size_t row = v % kParts * kLanes;
      const VF min = hn::Load(DF(), unit.min + row);
      SLUICE_UNROLL
      for (size_t t = 0; t < T; ++t) {
        const size_t at = a.off[t] + b;
        VF sum;
        if constexpr (kSub) {
          const VI16 pair = hn::BitCast(D16(), hn::Load(D32(), unit.pair + row));
          const VI32 both = hn::WidenMulPairwiseAdd(D32(), pair, BroadcastPair(a.sum16 + 2 * at));
          sum = hn::Mul(hn::Set(DF(), a.scale[at]), hn::ConvertTo(DF(), both));
        } else {
          sum = hn::Set(DF(), a.scaled_sum[at]);
        }
        m[v][t] = Fuse(min, sum, m[v][t]);
      }
    }
  }
  SLUICE_UNROLL
  for (size_t v = 0; v < kN; ++v) {
    SLUICE_UNROLL
    for (size_t t = 0; t < T; ++t) {
      float* const p = out + t * stride + v * kLanes;
      hn::StoreU(hn::Sub(hn::LoadU(DF(), p), m[v][t]), DF(), p);
    }
  }
}

// `n` floats, kMost as a rule.
template <size_t kMost>
HWY_INLINE void CopyFloats(const float* HWY_RESTRICT from, size_t n, float* HWY_RESTRICT to) {
  if (n == kMost) {
    memcpy(to, from, kMost * sizeof(float));
  } else {
    memcpy(to, from, n * sizeof(float));
  }
}

// T tokens x V panels from `panel`, `valid` of their rows exist.
template <class C, size_t V, size_t T, bool kI8mm>
void Tile(const ByteTileArgs& tile, size_t panel, size_t token, size_t valid) {
  const MatMulArgs& args = *tile.args;
  constexpr size_t kColumns = V * kPanelRows;
  HWY_ALIGN float sums[T][kColumns] = {};
  float* const out = args.out + token * args.out_stride + tile.row + panel * kPanelRows;
  for (size_t t = 0; tile.unit_begin > 0 && t < T; ++t) {
    CopyFloats<kColumns>(out + t * args.out_stride, valid, sums[t]);
  }
  const auto* units = static_cast<const typename C::Block*>(tile.units) + panel * tile.chunk_units;
  const TokenRows<T> rows = RowsOf<T>(args, token);
  if constexpr (kI8mm) {
    PairKernel<C, T>(units, tile.unit_count, rows, tile.unit_begin, sums[0]);
  } else {
    PanelKernel<C, V, T>(units, tile.chunk_units, tile.unit_count, rows, tile.unit_begin, sums[0],
                         nullptr);
  }
  if (tile.has_min && tile.unit_begin + tile.unit_count == args.k / kActBlock) {
    SubtractMins<C::kSub16, V, T>(tile, panel, rows, sums[0], kColumns);
  }
  for (size_t t = 0; t < T; ++t) CopyFloats<kColumns>(sums[t], valid, out + t * args.out_stride);
}

template <class C, bool kI8mm, size_t T = kTokens<C, kI8mm>>
void TokenTile(const ByteTileArgs& tile, size_t token, size_t count, size_t valid) {
  if (count == T) {
    for (size_t panel = 0; panel < kTilePanels && panel * kPanelRows < valid; panel += kV) {
      Tile<C, kV, T, kI8mm>(tile, panel, token,
                            std::min(valid - panel * kPanelRows, kV * kPanelRows));
    }
  } else if constexpr (T > 1) {
    TokenTile<C, kI8mm, T - 1>(tile, token, count, valid);
  }
}

// Expanding the next chunk waits for memory and multiplying does not, so each of the `pieces` of
// the products asks for its part of that chunk.
HWY_INLINE void AskForNext(const ByteTileArgs& tile, size_t piece, size_t pieces) {
  constexpr size_t kLine = 64;
  const size_t lines = tile.next_bytes / kLine;
  for (size_t i = lines * piece / pieces; i < lines * (piece + 1) / pieces; ++i) {
    for (const uint8_t* next : tile.next) __builtin_prefetch(next + i * kLine, 0, 2);
  }
}

// Tokens from `first` to the last.
template <class C, bool kI8mm>
void EveryToken(const ByteTileArgs& tile, size_t first, size_t valid) {
  const MatMulArgs& args = *tile.args;
  const size_t pieces = (args.tokens - first + kTokens<C, kI8mm> - 1) / kTokens<C, kI8mm>;
  for (size_t p = 0, t = first; p < pieces; ++p) {
    const size_t some = (args.tokens - t) / (pieces - p);  // evenly: 8 are 4 + 4
    if (first == 0) AskForNext(tile, p, pieces);
    TokenTile<C, kI8mm>(tile, t, some, valid);
    t += some;
  }
}

#if SLUICE_AMX_TILES
// Sums of a group of tokens, side by side: rows of a long output are often a power of two apart,
// and 16 of them would share one set of the caches (512 tokens: 320 GMAC/s with the output, 460
// so).
constexpr size_t kAmxGroup = 512;
struct AmxSums {
  float* at;
  size_t stride;
  HWY_ALIGN float own[kAmxGroup][kTileRows];
};
// Outputs of rows up to this long are added to in place.
constexpr size_t kShortRow = 128;

// `count` tokens times the chunk's units of every panel, [panel][tile.chunk_units].
template <class Unit>
HWY_INLINE void AmxPanels(const ByteTileArgs& tile, const Unit* units, size_t first, size_t count,
                          size_t valid, const AmxSums& sums) {
  const ActView& act = tile.args->act;
  for (size_t t = 0; t < count; t += 16) {
    const size_t at = ((first + t) / 16 * (act.k / kActBlock) + tile.unit_begin) * 16;
    for (size_t v = 0; v * kPanelRows < valid; ++v) {
      AmxKernel<Unit>(units + v * tile.chunk_units, tile.unit_count, act.tile_q + at * kActBlock,
                      act.tile_scale + at)
          .Run(sums.at + t * sums.stride + v * kPanelRows, sums.stride, tile.unit_begin == 0);
    }
    if (first == 0) AskForNext(tile, t / 16, (count + 15) / 16);
  }
}

// Tokens first .. first + count - 1, up to kAmxGroup, 16 at a time; `first` is a multiple of 16.
template <class C>
HWY_NOINLINE void AmxTokenGroup(const ByteTileArgs& tile, size_t first, size_t count,
                                size_t valid) {
  const MatMulArgs& args = *tile.args;
  float* const out = args.out + first * args.out_stride + tile.row;
  const bool in_place = valid == kTileRows && args.out_stride <= kShortRow && count % 16 == 0;
  AmxSums sums;
  sums.at = in_place ? out : sums.own[0];
  sums.stride = in_place ? args.out_stride : kTileRows;
  if (tile.unit_begin > 0 && !in_place) {
    for (size_t t = 0; t < count; ++t) {
      std::copy_n(out + t * args.out_stride, valid, sums.own[t]);
    }
    for (size_t t = count; t % 16 != 0; ++t) std::fill_n(sums.own[t], kTileRows, 0.0f);
  }
  if constexpr (C::kSub16) {
    AmxPanels(tile, LayOut(args.scratch).split, first, count, valid, sums);
  } else {
    AmxPanels(tile, tile.units, first, count, valid, sums);
  }
  if (tile.has_min && tile.unit_begin + tile.unit_count == args.k / kActBlock) {
    constexpr size_t kAtOnce = 8;
    size_t t = 0;
    for (; t + kAtOnce <= count; t += kAtOnce) {
      SubtractMins<C::kSub16, kTilePanels, kAtOnce>(tile, 0, RowsOf<kAtOnce>(args, first + t),
                                                    sums.at + t * sums.stride, sums.stride);
    }
    for (; t < count; ++t) {
      SubtractMins<C::kSub16, kTilePanels, 1>(tile, 0, RowsOf<1>(args, first + t),
                                              sums.at + t * sums.stride, sums.stride);
    }
  }
  for (size_t t = 0; t < count && !in_place; ++t) {
    std::copy_n(sums.own[t], valid, out + t * args.out_stride);
  }
}

// All tokens: those of a last tile with few by VNNI, which reads the codes before they are turned.
template <class C>
void AmxAllTokens(const ByteTileArgs& tile, size_t valid) {
  const size_t tokens = AmxTokens(tile.args->tokens);
  EveryToken<C, false>(tile, tokens, valid);
  const MatMulScratch scratch = LayOut(tile.args->scratch);
  for (size_t v = 0; v * kPanelRows < valid && !tile.signed_codes; ++v) {
    for (size_t i = v * tile.chunk_units, end = i + tile.unit_count; i < end; ++i) {
      if constexpr (C::kSub16) {
        Split<C>(scratch.units[i], &scratch.split[i]);
      } else {
        SignedCodes<C>(reinterpret_cast<ByteUnit*>(scratch.units)[i]);
      }
    }
  }
  const AmxTiles registers(ByteShape());
  for (size_t t = 0; t < tokens; t += kAmxGroup) {
    AmxTokenGroup<C>(tile, t, std::min(kAmxGroup, tokens - t), valid);
  }
}
#endif

template <class C>
void AllTokens(const ByteTileArgs& tile) {
  const size_t valid = std::min(kTileRows, tile.args->row_end - tile.row);
#if SLUICE_AMX_TILES
  if (InAmxTiles(*tile.args)) return AmxAllTokens<C>(tile, valid);
#endif
#if SLUICE_HAVE_I8MM
  if (HasI8mm()) {
    auto* units = reinterpret_cast<typename C::Block*>(LayOut(tile.args->scratch).units);
    for (size_t panel = 0; panel * kPanelRows < valid; ++panel, units += tile.chunk_units) {
      for (size_t u = 0; u < tile.unit_count; ++u) PairRows<C>(units[u]);
    }
    return EveryToken<C, true>(tile, 0, valid);
  }
#endif
#if SLUICE_AVX_VNNI
  if (UsesAvxVnni()) return EveryToken<WithVnni<C>, false>(tile, 0, valid);
#endif
  EveryToken<C, false>(tile, 0, valid);
}

void RunByteTiles(const ByteTileArgs& tile) {
  if (tile.sub16) {
    if (tile.zero == 32) return AllTokens<ByteCodec<32, 63, true>>(tile);
    if (tile.zero == 4) return AllTokens<ByteCodec<4, 7, true>>(tile);
    return AllTokens<ByteCodec<0, 3, true>>(tile);
  }
  switch (tile.zero) {
    case 0:
      if (tile.max_code <= 15) return AllTokens<ByteCodec<0, 15, false>>(tile);
      return AllTokens<ByteCodec<0, 31, false>>(tile);
    case 8:
      return AllTokens<ByteCodec<8, 15, false>>(tile);
    case 12:
      return AllTokens<ByteCodec<12, 24, false>>(tile);
    case 16:
      return AllTokens<ByteCodec<16, 31, false>>(tile);
    default:
      return AllTokens<ByteCodec<128, 255, false>>(tile);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

namespace {

constexpr size_t kUnitBytes = kTilePanels * kAmxChunkUnits * sizeof(ByteUnitSub);
constexpr size_t kFloatBytes = kTilePanels * kChunk * kPanelRows * sizeof(float);
constexpr size_t kSplitAt = std::max(kFloatBytes, kUnitBytes + kPanelChunkBytes);
constexpr size_t kSplitBytes =
    SLUICE_HAVE_AMX ? kTilePanels * kAmxChunkUnits * sizeof(SplitUnit) : 0;
constexpr size_t kMinsAt = kSplitAt + kSplitBytes;

}  // namespace

MatMulScratch LayOut(uint8_t* scratch) {
  return {reinterpret_cast<ByteUnitSub*>(scratch), scratch + kUnitBytes, scratch,
          reinterpret_cast<SplitUnit*>(scratch + kSplitAt),
          reinterpret_cast<MinUnitSub*>(scratch + kMinsAt)};
}

bool IsZenBefore5() {
#if defined(__x86_64__)
  static const bool is = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kAuth = 0x68747541;  // of "AuthenticAMD"
    if (!__get_cpuid(0, &a, &b, &c, &d) || b != kAuth || !__get_cpuid(1, &a, &b, &c, &d))
      return false;
    const unsigned family = (a >> 8 & 15) + (a >> 20 & 255);
    return family == 23 || family == 25;  // Zen and Zen 2; Zen 3 and Zen 4
  }();
  return is;
#else
  return false;
#endif
}

size_t MatMulScratchBytes(size_t k) {
  return kMinsAt + kTilePanels * ((k + kActBlock - 1) / kActBlock) * sizeof(MinUnitSub);
}

}  // namespace sluice
#endif  // HWY_ONCE
