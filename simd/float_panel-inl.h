// The matrix product of float weights: per output one chain of multiply-adds over k
// ascending, for any number of tokens, from panels or from GGUF rows in place.
// What a panel holds and what it is multiplied with, a codec says:
//   Block, kValues               16 rows x kValues k (1 or 2)
//   kSteps                       multiply-adds per block: kValues, or 1 for a pair at once
//   Weight(block, row, step)     VF: rows row .., as multiplied
//   Input, Broadcast(x)          what activations are; VF: those of one step, in every lane
//   MulAdd(weight, x, sum)       VF
//   LastWeight(block, row), BroadcastLast(x)   of an odd last k, where kValues is 2
//   PackLine(rows, at, panel)    64 bytes of each of 16 rows, from byte `at`, to a panel
// Included by quant/*.cc.
#if defined(SLUICE_SIMD_FLOAT_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_FLOAT_PANEL_INL_H_
#undef SLUICE_SIMD_FLOAT_PANEL_INL_H_
#else
#define SLUICE_SIMD_FLOAT_PANEL_INL_H_
#endif

#include <string.h>

#include <algorithm>
#include <type_traits>

#include "simd/byte_panel.h"
#include "simd/panel_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Tokens at once, for two panels (AVX-512: 24 sums of 32 registers) or one. Fewer where weights
// come in pairs, which need registers too (6 on AVX2, Zen 3, clang 19: 10 MAC/cycle instead of 15).
constexpr size_t kFloatV = kWide ? 2 : 1;
template <class C>
constexpr size_t kFloatT = kWide              ? 14 - 2 * C::kSteps
                           : kRegisters == 32 ? 5
                                              : 7 - C::kSteps;
// Up to here tokens are few: they read each weight once.
constexpr size_t kFewFloatTokens = 8;
template <class C>
constexpr size_t kFewFloatT = HWY_MIN(kFloatT<C>, kFewFloatTokens);  // at once, for one panel

template <class C>
constexpr size_t kWeightBytes = sizeof(typename C::Block) / (kPanelRows * C::kValues);
template <class C>
constexpr size_t kLineValues = 64 / kWeightBytes<C>;  // k of one cache line of a row
template <class C>
constexpr size_t PanelBytes(size_t k) {
  return k * kPanelRows * kWeightBytes<C>;
}

// sum[.][t] += over `count` k of w * in[t][0 ..]: V panels `panel_stride` bytes apart, T tokens.
// kStream: each weight is read once, from memory.
template <class C, size_t V, size_t T, bool kStream = false>
HWY_INLINE void FloatChain(const uint8_t* HWY_RESTRICT w, size_t panel_stride, size_t count,
                           const typename C::Input* const (&in)[T], FloatTile<V, T, true>& sum) {
  constexpr size_t kN = V * kParts;
  constexpr size_t kPerStep = C::kValues / C::kSteps;
  using Block = typename C::Block;
  const auto at = [&](size_t v) HWY_ATTR -> const Block& {
    return *reinterpret_cast<const Block*>(w + v / kParts * panel_stride);
  };
  for (size_t i = 0; i + C::kValues <= count; i += C::kValues, w += sizeof(Block)) {
    if constexpr (kStream) {
      const size_t ahead = PanelAhead<V>(PanelBytes<C>(count - i), panel_stride);
      SLUICE_UNROLL
      for (size_t v = 0; v < V; ++v) PrefetchPanel(w + v * panel_stride, ahead);
    }
    SLUICE_UNROLL
    for (size_t step = 0; step < C::kSteps; ++step) {
      VF weights[kN];
      SLUICE_UNROLL
      for (size_t v = 0; v < kN; ++v) weights[v] = C::Weight(at(v), v % kParts * kLanes, step);
      SLUICE_UNROLL
      for (size_t t = 0; t < T; ++t) {
        const VF a = C::Broadcast(in[t] + i + step * kPerStep);
        SLUICE_UNROLL
        for (size_t v = 0; v < kN; ++v) {
          sum.reg[v][t] = C::MulAdd(weights[v], a, sum.reg[v][t]);
        }
      }
    }
  }
  if constexpr (C::kValues == 2) {
    if (count % 2 == 0) return;
    SLUICE_UNROLL
    for (size_t v = 0; v < kN; ++v) {
      const VF weight = C::LastWeight(at(v), v % kParts * kLanes);
      SLUICE_UNROLL
      for (size_t t = 0; t < T; ++t) {
        const VF a = C::BroadcastLast(in[t] + count - 1);
        sum.reg[v][t] = C::MulAdd(weight, a, sum.reg[v][t]);
      }
    }
  }
}

// The same for x[t][0 ..] with sums in memory: f is [T][f_stride], 16 V columns.
template <class C, size_t V, size_t T, bool kStream = false>
HWY_NOINLINE void FloatKernel(const uint8_t* w, size_t panel_stride, size_t count,
                              const typename C::Input* const* x, float* f, size_t f_stride) {
  const typename C::Input* in[T];
  for (size_t t = 0; t < T; ++t) in[t] = x[t];
  FloatTile<V, T, true> sum(f, f_stride);
  FloatChain<C, V, T, kStream>(w, panel_stride, count, in, sum);
  sum.Store();
}

template <class C>
HWY_INLINE const typename C::Input* InputRow(const MatMulArgs& args, size_t t) {
  if constexpr (hwy::IsSame<typename C::Input, float>()) {
    return args.f32 + TokenRow(args, t) * args.f32_stride;
  } else {
    return args.bf16 + TokenRow(args, t) * args.bf16_stride;
  }
}

// ---- rows in place ------------------------------------------------------------------------------

// The 16 rows from `row` on, copies of the last one behind the end: their results are dropped.
struct FloatRows {
  const uint8_t* at[kPanelRows];
  FloatRows(const MatMulArgs& args, size_t row, size_t row_bytes) {
    for (size_t r = 0; r < kPanelRows; ++r) {
      at[r] = args.weights + std::min(row + r, args.rows - 1) * row_bytes;
    }
  }
};

// k [begin, begin + count) of 16 rows as a panel, less than a line: what is behind is not read.
template <class C>
HWY_NOINLINE void PackPart(const uint8_t* const* rows, size_t begin, size_t count, uint8_t* panel) {
  HWY_ALIGN uint8_t copy[kPanelRows][64] = {};
  HWY_ALIGN uint8_t line[kPanelRows * 64];
  const uint8_t* copies[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r) {
    memcpy(copy[r], rows[r] + begin * kWeightBytes<C>, count * kWeightBytes<C>);
    copies[r] = copy[r];
  }
  C::PackLine(copies, 0, line);
  if constexpr (C::kValues == 2) {
    uint16_t* const last = reinterpret_cast<uint16_t*>(line + PanelBytes<C>(count - 1));
    for (size_t r = 0; count % 2 != 0 && r < kPanelRows; ++r) last[r] = last[2 * r];
  }
  memcpy(panel, line, PanelBytes<C>(count));
}

// k [begin, begin + count) of 16 rows as a panel.
template <class C>
void PackFloats(const uint8_t* const* rows, size_t begin, size_t count, uint8_t* panel) {
  const size_t end = begin + count;
  for (; begin + kLineValues<C> <= end; begin += kLineValues<C>) {
    C::PackLine(rows, begin * kWeightBytes<C>, panel);
    panel += PanelBytes<C>(kLineValues<C>);
  }
  if (begin < end) PackPart<C>(rows, begin, end - begin, panel);
}

// ---- few tokens ---------------------------------------------------------------------------------

// Bytes ahead in each of 16 rows in place, to L2 (Zen 3 from DRAM, one token of F32, where panels
// read 20 GB/s: 1024 ahead 17, 2048 ahead 14; stretches of 1 to 4 KB ahead, row after row: 13, 12).
constexpr size_t kFloatRowPrefetch = 1024;
// Bytes of each row that so many tokens read twice: 16 such pieces stay in L2.
constexpr size_t kFloatRowPiece = 4096;

// f[t][.] += over bytes [begin, end) of 16 rows, whole lines, for T tokens. A line of each row
// becomes a panel in L1 and is multiplied at once: while sums wait for their last product, the next
// line is transposed.
template <class C, size_t T>
HWY_NOINLINE void FloatRowKernel(const uint8_t* const* rows, size_t row_bytes, size_t begin,
                                 size_t end, const typename C::Input* const* x, float* f) {
  HWY_ALIGN uint8_t panel[kPanelRows * 64];
  const typename C::Input* in[T];
  for (size_t t = 0; t < T; ++t) in[t] = x[t] + begin / kWeightBytes<C>;
  FloatTile<1, T, true> sum(f, kPanelRows);
  for (size_t at = begin; at < end; at += 64) {
    size_t ahead = at + kFloatRowPrefetch;
    if (ahead >= row_bytes) ahead += (kPanelRows - 1) * row_bytes;  // the next 16 rows
    SLUICE_UNROLL
    for (size_t r = 0; r < kPanelRows; ++r) __builtin_prefetch(rows[r] + ahead, 0, 2);
    C::PackLine(rows, at, panel);
    FloatChain<C, 1, T>(panel, 0, kLineValues<C>, in, sum);
    for (size_t t = 0; t < T; ++t) in[t] += kLineValues<C>;
  }
  sum.Store();
}

template <class C>
struct FewFloats {
  size_t tokens;
  const typename C::Input* x[kFewFloatTokens];
  HWY_ALIGN float f[kFewFloatTokens][kPanelRows];

  explicit FewFloats(const MatMulArgs& args) : tokens(args.tokens) {
    for (size_t t = 0; t < tokens; ++t) x[t] = InputRow<C>(args, t);
  }
  void Clear() { std::fill_n(f[0], tokens * kPanelRows, 0.0f); }
  void Store(const MatMulArgs& args, size_t row) const {
    const size_t valid = std::min(kPanelRows, args.row_end - row);
    for (size_t t = 0; t < tokens; ++t) {
      std::copy_n(f[t], valid, args.out + t * args.out_stride + row);
    }
  }

  size_t parts() const { return (tokens + kFewFloatT<C> - 1) / kFewFloatT<C>; }
  // Calls run(T, first) with T a constant for as many tokens at once as fit, evenly.
  template <class F>
  void ForParts(const F& run) const {
    for (size_t p = 0, t = 0; p < parts(); ++p) {
      const size_t some = (tokens - t) / (parts() - p);
      Part<kFewFloatT<C>>(t, some, run);
      t += some;
    }
  }
  template <size_t T, class F>
  static void Part(size_t first, size_t some, const F& run) {
    if (some == T) {
      run(std::integral_constant<size_t, T>(), first);
    } else if constexpr (T > 1) {
      Part<T - 1>(first, some, run);
    }
  }

  // Adds `count` k of a panel, from k of the inputs on.
  void Multiply(const uint8_t* w, size_t k, size_t count) {
    ForParts([&](auto some, size_t first) {
      const typename C::Input* in[some()];
      for (size_t t = 0; t < some(); ++t) in[t] = x[first + t] + k;
      FloatKernel<C, 1, some()>(w, 0, count, in, f[first], kPanelRows);
    });
  }
  // Adds all `k` of rows in place.
  void MultiplyRows(const FloatRows& rows, size_t k) {
    const size_t bytes = k * kWeightBytes<C>, lines = bytes / 64 * 64;
    const size_t piece = parts() == 1 ? bytes : kFloatRowPiece;
    for (size_t begin = 0; begin < lines; begin += piece) {
      const size_t end = std::min(begin + piece, lines);
      ForParts([&](auto some, size_t first) {
        FloatRowKernel<C, some()>(rows.at, bytes, begin, end, x + first, f[first]);
      });
    }
    if (lines == bytes) return;
    HWY_ALIGN uint8_t panel[kPanelRows * 64];
    const size_t done = lines / kWeightBytes<C>;
    PackPart<C>(rows.at, done, k - done, panel);
    Multiply(panel, done, k - done);
  }
};

// One token from panels: two at once, because a sum waits for its last product (of 16 bits a panel
// alone cannot pass 25 GB/s at 3.2 GHz), the copy of an odd last one dropped.
template <class C>
void OneTokenOfFloats(const MatMulArgs& args) {
  constexpr size_t kColumns = 2 * kPanelRows;
  const size_t panel = PanelBytes<C>(args.k);
  const typename C::Input* const x = InputRow<C>(args, 0);
  auto* const kernel = PrefetchForOne() ? FloatKernel<C, 2, 1, true> : FloatKernel<C, 2, 1, false>;
  for (size_t row = args.row_begin; row < args.row_end; row += kColumns) {
    const size_t valid = std::min(kColumns, args.row_end - row);
    HWY_ALIGN float f[kColumns] = {};
    kernel(args.weights + row / kPanelRows * panel, valid > kPanelRows ? panel : 0, args.k, &x, f,
           kColumns);
    std::copy_n(f, valid, args.out + row);
  }
}

template <class C>
void FewTokensOfFloats(const MatMulArgs& args) {
  if (args.panels && args.tokens == 1) return OneTokenOfFloats<C>(args);
  FewFloats<C> few(args);
  for (size_t row = args.row_begin; row < args.row_end; row += kPanelRows) {
    few.Clear();
    if (args.panels) {
      few.Multiply(args.weights + row / kPanelRows * PanelBytes<C>(args.k), 0, args.k);
    } else {
      few.MultiplyRows(FloatRows(args, row, args.k * kWeightBytes<C>), args.k);
    }
    few.Store(args, row);
  }
}

// ---- many tokens --------------------------------------------------------------------------------

// One chunk of k of up to kFloatV panels for all tokens.
struct FloatTileArgs {
  const MatMulArgs* args;
  size_t row, valid;  // output rows row .. row + valid - 1, at most 16 kFloatV
  size_t k, count;
  size_t panel_stride;
};

template <class C, size_t T>
void FloatTokens(const FloatTileArgs& tile, const uint8_t* w, size_t token) {
  constexpr size_t kColumns = kFloatV * kPanelRows;
  const MatMulArgs& args = *tile.args;
  HWY_ALIGN float copy[T][kColumns];
  const typename C::Input* x[T];
  float* const out = args.out + token * args.out_stride + tile.row;
  const bool whole = tile.valid == kColumns;
  float* const f = whole ? out : copy[0];
  const size_t stride = whole ? args.out_stride : kColumns;
  for (size_t t = 0; t < T; ++t) {
    x[t] = InputRow<C>(args, token + t) + tile.k;
    if (tile.k == 0) {
      std::fill_n(f + t * stride, kColumns, 0.0f);
    } else if (!whole) {
      std::copy_n(out + t * args.out_stride, tile.valid, copy[t]);
    }
  }
  // An odd last panel is multiplied twice, its copy dropped: rarer than kernels for it are worth.
  const size_t panel_stride = tile.valid > kPanelRows ? tile.panel_stride : 0;
  FloatKernel<C, kFloatV, T>(w, panel_stride, tile.count, x, f, stride);
  if (!whole) {
    for (size_t t = 0; t < T; ++t) std::copy_n(copy[t], tile.valid, out + t * args.out_stride);
  }
}

template <class C, size_t T = kFloatT<C>>
void SomeFloatTokens(const FloatTileArgs& tile, const uint8_t* w, size_t token, size_t count) {
  if (count == T) {
    FloatTokens<C, T>(tile, w, token);
  } else if constexpr (T > 1) {
    SomeFloatTokens<C, T - 1>(tile, w, token, count);
  }
}

template <class C>
void RunFloatTile(const FloatTileArgs& tile, const uint8_t* w) {
  const size_t tokens = tile.args->tokens;
  const size_t pieces = (tokens + kFloatT<C> - 1) / kFloatT<C>;
  for (size_t p = 0, t = 0; p < pieces; ++p) {
    const size_t some = (tokens - t) / (pieces - p);
    SomeFloatTokens<C>(tile, w, t, some);
    t += some;
  }
}

template <class C>
void ManyTokensOfFloats(const MatMulArgs& args) {
  constexpr size_t kColumns = kFloatV * kPanelRows;
  uint8_t* const packed = LayOut(args.scratch).floats;
  const size_t row_bytes = args.k * kWeightBytes<C>;
  const size_t stride = PanelBytes<C>(args.panels ? args.k : kChunk);
  for (size_t row = args.row_begin; row < args.row_end; row += kColumns) {
    const size_t valid = std::min(kColumns, args.row_end - row);
    for (size_t k = 0; k < args.k; k += kChunk) {
      const size_t count = std::min(kChunk, args.k - k);
      const uint8_t* w = packed;
      if (args.panels) w = args.weights + row * row_bytes + PanelBytes<C>(k);
      for (size_t r = 0; !args.panels && r < valid; r += kPanelRows) {
        PackFloats<C>(FloatRows(args, row + r, row_bytes).at, k, count,
                      packed + r / kPanelRows * stride);
      }
      RunFloatTile<C>({&args, row, valid, k, count, stride}, w);
    }
  }
}

template <class C>
void MatMulFloat(const MatMulArgs& args) {
  if (args.tokens <= kFewFloatTokens) {
    FewTokensOfFloats<C>(args);
  } else {
    ManyTokensOfFloats<C>(args);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
