// BF16 weights times bfloat16 activations on CPUs with AMX, for any number of tokens: panels of
// pairs of k lie as the instruction wants its second operand. Included by quant/bf16.cc.
//
// Every product of these CPUs is made here, one token or many, so that they have one set of bytes:
// per output and 32 k the instruction adds the products of even and of odd k each in ascending
// order, then both to the sum (Intel's manual, TDPBF16PS: fused, subnormal numbers are zeros,
// rounded to nearest whatever MXCSR says); what other tokens or rows are in the tile does not
// matter. A last part of k is filled up with zeros.
// vdpbf16ps on the same CPU lost: 87 tok/s of prefill where these give 474 and floats (F16) 127.
#if defined(SLUICE_SIMD_FLOAT_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_FLOAT_AMX_INL_H_
#undef SLUICE_SIMD_FLOAT_AMX_INL_H_
#else
#define SLUICE_SIMD_FLOAT_AMX_INL_H_
#endif

#include <string.h>

#include <algorithm>

#include "simd/amx_tiles-inl.h"
#include "simd/float_panel-inl.h"

#if SLUICE_AMX_TILES
HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

constexpr size_t kAmxK = 32;       // of one product
constexpr size_t kAmxTokens = 32;  // two tiles of 16
constexpr size_t kAmxColumns = 2 * kPanelRows;
constexpr size_t kAmxStepBytes = kAmxK * kPanelRows * sizeof(uint16_t);  // of a panel

// Sums in 0 to 3 (the second token tile in 2 and 3), tokens in 4 and 5, weights in 6 and 7.
inline AmxShape Bf16Shape(size_t tokens) {
  AmxShape shape;
  const size_t first = std::min<size_t>(tokens, 16);
  for (size_t t = 0; t < 8; ++t) {
    const bool second = t == 2 || t == 3 || t == 5;
    shape.row_bytes[t] = 64;
    shape.rows[t] = static_cast<uint8_t>(t > 5     ? 16
                                         : !second ? first
                                                   : std::max(tokens - first, size_t{1}));
  }
  return shape;
}

// f[t][16 V] += `steps` x 32 k of V panels, A token tiles; from zero where `first`.
template <size_t A, size_t V>
HWY_NOINLINE void Bf16Steps(const uint8_t* HWY_RESTRICT w, size_t panel_stride, size_t steps,
                            const uint16_t* HWY_RESTRICT x, size_t x_stride, float* f,
                            size_t f_stride, bool first, bool stream) {
  const size_t stride = f_stride * sizeof(float), x_bytes = x_stride * sizeof(uint16_t);
  float* const f2 = f + 16 * f_stride;
  if (first) {
    ZeroTile<0>();
    ZeroTile<1>();
    ZeroTile<2>();
    ZeroTile<3>();
  } else {
    LoadTile<0>(f, stride);
    if constexpr (V == 2) LoadTile<1>(f + 16, stride);
    if constexpr (A == 2) LoadTile<2>(f2, stride);
    if constexpr (A == 2 && V == 2) LoadTile<3>(f2 + 16, stride);
  }
  for (size_t s = 0; s < steps; ++s, w += kAmxStepBytes, x += kAmxK) {
    if (stream) {
      for (size_t v = 0; v < V; ++v) {
        for (size_t at = 0; at < kAmxStepBytes; at += 64) {
          __builtin_prefetch(w + v * panel_stride + kPanelPrefetch + at, 0, 2);
        }
      }
    }
    LoadTile<6>(w, 64);
    LoadTile<4>(x, x_bytes);
    MultiplyBf16<0, 4, 6>();
    if constexpr (V == 2) {
      LoadTile<7>(w + panel_stride, 64);
      MultiplyBf16<1, 4, 7>();
    }
    if constexpr (A == 2) {
      LoadTile<5>(x + 16 * x_stride, x_bytes);
      MultiplyBf16<2, 5, 6>();
      if constexpr (V == 2) MultiplyBf16<3, 5, 7>();
    }
  }
  StoreTile<0>(f, stride);
  if constexpr (V == 2) StoreTile<1>(f + 16, stride);
  if constexpr (A == 2) StoreTile<2>(f2, stride);
  if constexpr (A == 2 && V == 2) StoreTile<3>(f2 + 16, stride);
}

// A chunk of k of one or two panels.
struct Bf16Weights {
  const uint8_t* w;
  size_t panel_stride;
  size_t k, count;  // count: a multiple of 32, or to the end
  size_t valid;     // rows
  bool stream;      // read once, from memory
};

// The last count % 32 k of both operands, filled up with zeros.
struct Bf16Rest {
  HWY_ALIGN uint16_t x[kAmxTokens][kAmxK];
  HWY_ALIGN uint16_t w[2][kAmxK / 2][kPanelRows][2];

  Bf16Rest(const Bf16Weights& weights, const uint16_t* input, size_t x_stride, size_t tokens)
      : x{}, w{} {
    const size_t done = weights.count / kAmxK * kAmxK, rest = weights.count - done;
    for (size_t t = 0; t < tokens; ++t) std::copy_n(input + t * x_stride + done, rest, x[t]);
    for (size_t v = 0; v * kPanelRows < weights.valid; ++v) {
      const uint8_t* const from =
          weights.w + v * weights.panel_stride + done * kPanelRows * sizeof(uint16_t);
      const size_t even = rest / 2 * 2;
      memcpy(w[v], from, even * kPanelRows * sizeof(uint16_t));
      if (even == rest) continue;
      uint16_t last[kPanelRows];  // a plain row
      memcpy(last, from + even * kPanelRows * sizeof(uint16_t), sizeof(last));
      for (size_t r = 0; r < kPanelRows; ++r) w[v][even / 2][r][0] = last[r];
    }
  }
};

template <size_t A, size_t V>
void Bf16Block(const Bf16Weights& w, const uint16_t* x, size_t x_stride, size_t tokens, float* f,
               size_t f_stride) {
  const size_t steps = w.count / kAmxK;
  const bool first = w.k == 0;
  if (steps > 0) {
    Bf16Steps<A, V>(w.w, w.panel_stride, steps, x, x_stride, f, f_stride, first, w.stream);
  }
  if (w.count % kAmxK != 0) {
    const Bf16Rest rest(w, x, x_stride, tokens);
    Bf16Steps<A, V>(reinterpret_cast<const uint8_t*>(rest.w[0]), sizeof(rest.w[0]), 1, rest.x[0],
                    kAmxK, f, f_stride, first && steps == 0, false);
  }
}

// Tokens that are not neighbours (an expert's), side by side.
struct Bf16Gather {
  HWY_ALIGN uint16_t x[kAmxTokens][kChunk];
};

template <class C>
class AmxFloats {
 public:
  explicit AmxFloats(const MatMulArgs& args) : args_(args) {}

  void Run() {
    uint8_t* const packed = LayOut(args_.scratch).floats;
    const size_t row_bytes = args_.k * sizeof(uint16_t);
    // Rows in place and gathered tokens are copied a chunk at a time.
    const size_t chunk = args_.panels && !args_.token_rows ? args_.k : kChunk;
    for (size_t row = args_.row_begin; row < args_.row_end; row += kAmxColumns) {
      Bf16Weights w;
      w.valid = std::min(kAmxColumns, args_.row_end - row);
      w.panel_stride = PanelBytes<C>(args_.panels ? args_.k : kChunk);
      w.stream = args_.panels && args_.tokens <= kAmxTokens;
      for (w.k = 0; w.k < args_.k; w.k += chunk) {
        w.count = std::min(chunk, args_.k - w.k);
        w.w = args_.panels ? args_.weights + row * row_bytes + PanelBytes<C>(w.k) : packed;
        for (size_t r = 0; !args_.panels && r < w.valid; r += kPanelRows) {
          PackFloats<C>(FloatRows(args_, row + r, row_bytes).at, w.k, w.count,
                        packed + r / kPanelRows * w.panel_stride);
        }
        for (size_t t = 0; t < args_.tokens; t += kAmxTokens) {
          Tokens(w, row, t, std::min(kAmxTokens, args_.tokens - t));
        }
      }
    }
  }

 private:
  void Tokens(const Bf16Weights& w, size_t row, size_t token, size_t count) {
    if (count != shaped_) registers_.Shape(Bf16Shape(shaped_ = count));
    const uint16_t* x = InputRow<C>(args_, token) + w.k;
    size_t x_stride = args_.bf16_stride;
    if (args_.token_rows && count > 1) {
      for (size_t t = 0; t < count; ++t) {
        std::copy_n(InputRow<C>(args_, token + t) + w.k, w.count, gather_.x[t]);
      }
      x = gather_.x[0];
      x_stride = kChunk;
    }
    float* const out = args_.out + token * args_.out_stride + row;
    HWY_ALIGN float copy[kAmxTokens][kAmxColumns];
    const bool whole = w.valid % kPanelRows == 0;
    float* const f = whole ? out : copy[0];
    const size_t stride = whole ? args_.out_stride : kAmxColumns;
    for (size_t t = 0; !whole && w.k > 0 && t < count; ++t) {
      std::copy_n(out + t * args_.out_stride, w.valid, copy[t]);
    }
    if (count <= 16) {
      if (w.valid > kPanelRows) {
        Bf16Block<1, 2>(w, x, x_stride, count, f, stride);
      } else {
        Bf16Block<1, 1>(w, x, x_stride, count, f, stride);
      }
    } else if (w.valid > kPanelRows) {
      Bf16Block<2, 2>(w, x, x_stride, count, f, stride);
    } else {
      Bf16Block<2, 1>(w, x, x_stride, count, f, stride);
    }
    for (size_t t = 0; !whole && t < count; ++t) {
      std::copy_n(copy[t], w.valid, out + t * args_.out_stride);
    }
  }

  const MatMulArgs& args_;
  AmxTiles registers_;
  size_t shaped_ = 0;  // tokens
  Bf16Gather gather_;
};

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_AMX_TILES
#endif
