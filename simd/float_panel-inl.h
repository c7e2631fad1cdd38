// The matrix product of float weights: per output one FMA chain over k ascending.
// Panels are [k][16]; a codec loads 16 rows at one k as floats:
//   Block   16 rows x 1 k          Load(block, row)   VF: rows row ..
// Included by quant/*.cc.
#if defined(SLUICE_SIMD_FLOAT_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_FLOAT_PANEL_INL_H_
#undef SLUICE_SIMD_FLOAT_PANEL_INL_H_
#else
#define SLUICE_SIMD_FLOAT_PANEL_INL_H_
#endif

#include <algorithm>

#include "simd/byte_panel.h"
#include "simd/panel_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Tokens at once, for two panels (AVX-512: 24 sums of 32 registers) or one.
constexpr size_t kFloatV = kWide ? 2 : 1;
constexpr size_t kFloatT = kWide ? 12 : kRegisters == 32 ? 5 : 6 / (3 - HWY_MIN(kParts, 2));

// f[t][column] += over k of w * x: V panels `panel_stride` blocks apart, T tokens.
template <class C, size_t V, size_t T>
HWY_NOINLINE void FloatKernel(const typename C::Block* HWY_RESTRICT w, size_t panel_stride,
                              size_t count, const float* const* x, float* f, size_t f_stride) {
  constexpr size_t kN = V * kParts;
  const float* HWY_RESTRICT in[T];
  for (size_t t = 0; t < T; ++t) in[t] = x[t];
  FloatTile<V, T, true> sum(f, f_stride);
  for (size_t k = 0; k < count; ++k, ++w) {
    VF weights[kN];
    SLUICE_UNROLL
    for (size_t v = 0; v < kN; ++v) {
      const typename C::Block* const p = w + v / kParts * panel_stride;
      weights[v] = C::Load(*p, v % kParts * kLanes);
    }
    SLUICE_UNROLL
    for (size_t t = 0; t < T; ++t) {
      const VF a = hn::Set(DF(), in[t][k]);
      SLUICE_UNROLL
      for (size_t v = 0; v < kN; ++v) sum.Add(v, t, weights[v], a);
    }
  }
  sum.Store();
}

// One chunk of k from panels (`panel_stride` blocks apart) into the output of `valid` rows.
struct FloatTileArgs {
  const MatMulArgs* args;
  size_t row, valid;  // output rows row .. row + valid - 1, at most 16 kFloatV
  size_t k, count;
  size_t panel_stride;
};

template <class C, size_t T>
void FloatTokens(const FloatTileArgs& tile, const typename C::Block* w, size_t token) {
  constexpr size_t kColumns = kFloatV * kPanelRows;
  const MatMulArgs& args = *tile.args;
  HWY_ALIGN float copy[T][kColumns];
  const float* x[T];
  float* const out = args.out + token * args.out_stride + tile.row;
  const bool whole = tile.valid == kColumns;
  float* const f = whole ? out : copy[0];
  const size_t stride = whole ? args.out_stride : kColumns;
  for (size_t t = 0; t < T; ++t) {
    x[t] = args.f32 + TokenRow(args, token + t) * args.f32_stride + tile.k;
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

template <class C, size_t T = kFloatT>
void SomeFloatTokens(const FloatTileArgs& tile, const typename C::Block* w, size_t token,
                     size_t count) {
  if (count == T) {
    FloatTokens<C, T>(tile, w, token);
  } else if constexpr (T > 1) {
    SomeFloatTokens<C, T - 1>(tile, w, token, count);
  }
}

template <class C>
void RunFloatTile(const FloatTileArgs& tile, const typename C::Block* w) {
  const size_t tokens = tile.args->tokens;
  const size_t pieces = (tokens + kFloatT - 1) / kFloatT;
  for (size_t p = 0, t = 0; p < pieces; ++p) {
    const size_t some = (tokens - t) / (pieces - p);
    SomeFloatTokens<C>(tile, w, t, some);
    t += some;
  }
}

template <class C>
void MatMulFloatPanels(const MatMulArgs& args) {
  constexpr size_t kColumns = kFloatV * kPanelRows;
  const auto* const panels = reinterpret_cast<const typename C::Block*>(args.weights);
  for (size_t row = args.row_begin; row < args.row_end; row += kColumns) {
    const size_t valid = std::min(kColumns, args.row_end - row);
    // One token needs no chunks: nothing is used twice.
    const size_t chunk = args.tokens <= kFloatT ? args.k : kChunk;
    for (size_t k = 0; k < args.k; k += chunk) {
      const FloatTileArgs tile{&args, row, valid, k, std::min(chunk, args.k - k), args.k};
      RunFloatTile<C>(tile, panels + row / kPanelRows * args.k + k);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
