// Weights of 16 bits times bfloat16 activations on CPUs with AMX, for any number of tokens.
// Included by quant/bf16.cc and quant/f16.cc.
//
//   BF16   w x, with x rounded to bfloat16. Panels of pairs of k lie as the instruction wants its
//          second operand.
//   F16    (w0 + w1) x: w0 is w cut to bfloat16, w1 what is left, exact. A chunk of each panel
//          is taken apart at a time. An infinite weight becomes NaN. With 16 bits of x, a
//          third product, the mean KL divergence from exact arithmetic is 0.00003 instead of
//          0.00008 (Gemma 3 270M with bf16 keys and values; Q8_0: 0.002), and 1B takes 293 instead
//          of 505 tok/s of prefill (Xeon with AMX, two threads).
//
// Every product of these CPUs is made here, one token or many, so that they have one set of bytes:
// per output and 32 k the instruction adds the products of even and of odd k each in ascending
// order, then both to the sum (Intel's manual, TDPBF16PS: fused, subnormal numbers are zeros,
// rounded to nearest whatever MXCSR says); what other tokens or rows are in the tile does not
// matter. A last part of k is filled up with zeros.
// vdpbf16ps on the same CPU lost: 87 tok/s of prefill where these give 474 and floats 127 (BF16).
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
#if SLUICE_HAVE_AMX
#include <xmmintrin.h>
#endif

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

// A stretch of k of up to two panels, in P parts, and two tiles of tokens.
template <size_t P>
struct Bf16Operands {
  const uint8_t* w[P];
  size_t panel_stride;  // bytes
  const uint16_t* x;
  size_t x_stride;
};

// f[t][16 V] += `steps` x 32 k of V panels, A token tiles; from zero where `first`. left: bytes to
// the panels' ends where they are read once, from memory; else 0.
template <size_t P, size_t A, size_t V>
HWY_NOINLINE void Bf16Steps(const Bf16Operands<P>& operands, size_t steps, float* f,
                            size_t f_stride, bool first, size_t left) {
  const Bf16Operands<P> o = operands;
  const size_t stride = f_stride * sizeof(float), x_bytes = o.x_stride * sizeof(uint16_t);
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
  // With two token tiles a register is loaded for the next product as soon as the last one of this
  // was issued (1B F16 prefill 500 -> 520 tok/s, BF16 the same; one token tile 3 to 5 % slower so).
  constexpr bool kEarly = A == 2;
  const auto load_first = [&](size_t s) HWY_ATTR { LoadTile<4>(o.x + s * kAmxK, x_bytes); };
  const auto load_second = [&](size_t s) HWY_ATTR {
    if constexpr (A == 2) LoadTile<5>(o.x + s * kAmxK + 16 * o.x_stride, x_bytes);
  };
  const auto weights = [&](size_t s, size_t part) { return o.w[part] + s * kAmxStepBytes; };
  if (kEarly) {
    load_first(0);
    load_second(0);
    LoadTile<6>(weights(0, 0), 64);
    if constexpr (V == 2) LoadTile<7>(weights(0, 0) + o.panel_stride, 64);
  }
  for (size_t s = 0; s < steps; ++s) {
    if (left > 0) {
      const size_t ahead = PanelAhead<V>(left - s * kAmxStepBytes, o.panel_stride);
      for (size_t v = 0; v < V; ++v) {
        for (size_t line = 0; line < kAmxStepBytes; line += 64) {
          PrefetchPanel(weights(s, 0) + v * o.panel_stride + line, ahead);
        }
      }
    }
    const size_t next = std::min(s + 1, steps - 1);
    if (!kEarly) load_first(s);
    for (size_t part = 0; part < P; ++part) {
      const bool last = part + 1 == P;
      const uint8_t* const w = !kEarly ? weights(s, part)
                               : last  ? weights(next, 0)
                                       : weights(s, part + 1);
      if (!kEarly) {
        LoadTile<6>(w, 64);
        if constexpr (V == 2) LoadTile<7>(w + o.panel_stride, 64);
      }
      MultiplyBf16<0, 4, 6>();
      if constexpr (V == 2) MultiplyBf16<1, 4, 7>();
      if (kEarly && last) load_first(next);
      if constexpr (A == 2) MultiplyBf16<2, 5, 6>();
      if (kEarly) LoadTile<6>(w, 64);
      if constexpr (A == 2 && V == 2) MultiplyBf16<3, 5, 7>();
      if (kEarly && last) load_second(next);
      if constexpr (kEarly && V == 2) LoadTile<7>(w + o.panel_stride, 64);
    }
  }
  StoreTile<0>(f, stride);
  if constexpr (V == 2) StoreTile<1>(f + 16, stride);
  if constexpr (A == 2) StoreTile<2>(f2, stride);
  if constexpr (A == 2 && V == 2) StoreTile<3>(f2 + 16, stride);
}

// A chunk of k of one or two panels.
template <size_t P>
struct Bf16Weights {
  const uint8_t* w[P];
  size_t panel_stride;
  size_t k, count;  // count: a multiple of 32, or to the end
  size_t valid;     // rows
  size_t left;      // of Bf16Steps()
};

// The last count % 32 k of both operands, filled up with zeros.
template <size_t P>
struct Bf16Rest {
  HWY_ALIGN uint16_t x[kAmxTokens][kAmxK];
  HWY_ALIGN uint16_t w[P][2][kAmxK / 2][kPanelRows][2];

  Bf16Rest(const Bf16Weights<P>& weights, const uint16_t* input, size_t x_stride, size_t tokens)
      : x{}, w{} {
    const size_t done = weights.count / kAmxK * kAmxK, rest = weights.count - done;
    for (size_t t = 0; t < tokens; ++t) std::copy_n(input + t * x_stride + done, rest, x[t]);
    for (size_t part = 0; part < P; ++part) {
      for (size_t v = 0; v * kPanelRows < weights.valid; ++v) {
        const uint8_t* const from =
            weights.w[part] + v * weights.panel_stride + done * kPanelRows * sizeof(uint16_t);
        const size_t even = rest / 2 * 2;
        memcpy(w[part][v], from, even * kPanelRows * sizeof(uint16_t));
        if (even == rest) continue;
        uint16_t last[kPanelRows];  // a plain row
        memcpy(last, from + even * kPanelRows * sizeof(uint16_t), sizeof(last));
        for (size_t r = 0; r < kPanelRows; ++r) w[part][v][even / 2][r][0] = last[r];
      }
    }
  }

  Bf16Operands<P> Operands() const {
    Bf16Operands<P> o;
    for (size_t part = 0; part < P; ++part) o.w[part] = reinterpret_cast<const uint8_t*>(w[part]);
    o.panel_stride = sizeof(w[0][0]);
    o.x = x[0];
    o.x_stride = kAmxK;
    return o;
  }
};

template <size_t P, size_t A, size_t V>
void Bf16Block(const Bf16Weights<P>& w, const uint16_t* x, size_t x_stride, size_t tokens, float* f,
               size_t f_stride) {
  const size_t steps = w.count / kAmxK;
  const bool first = w.k == 0;
  if (steps > 0) {
    Bf16Operands<P> o;
    std::copy_n(w.w, P, o.w);
    o.panel_stride = w.panel_stride;
    o.x = x;
    o.x_stride = x_stride;
    Bf16Steps<P, A, V>(o, steps, f, f_stride, first, w.left);
  }
  if (w.count % kAmxK != 0) {
    const Bf16Rest<P> rest(w, x, x_stride, tokens);
    Bf16Steps<P, A, V>(rest.Operands(), 1, f, f_stride, first && steps == 0, 0);
  }
}

using DU32 = hn::RebindToUnsigned<DF>;
using VU32 = hn::Vec<DU32>;

// 16 weights of F16, and the upper part of floats: cut to bfloat16, so that the rest, at most 3
// bits of F16, is one too. To round instead takes an addition, with which one token takes 3 to 5 %
// longer.
HWY_INLINE VF LoadHalves(const uint16_t* p) {
  const hn::Rebind<uint16_t, DF> d16;
  return hn::PromoteTo(DF(), hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), hn::LoadU(d16, p)));
}
HWY_INLINE VF UpperPart(VF w) {
  return hn::BitCast(DF(), hn::And(hn::BitCast(DU32(), w), hn::Set(DU32(), 0xffff0000u)));
}
// Floats that are bfloat16 as pairs.
HWY_INLINE VU32 Pairs(VF even, VF odd) {
  return hn::Or(hn::ShiftRight<16>(hn::BitCast(DU32(), even)), hn::BitCast(DU32(), odd));
}

// A chunk of a panel of F16 as pairs of k of both parts, `part_bytes` apart; an odd last k is a
// plain row.
constexpr size_t kHalfChunk = 256;
inline HWY_NOINLINE void TakeApart(const uint8_t* panel, size_t count, uint8_t* out,
                                   size_t part_bytes, bool stream) {
  const hn::Rebind<uint16_t, DF> d16;
  constexpr size_t kBytes = kPanelRows * sizeof(uint16_t);  // of one k
  const auto* const from = reinterpret_cast<const uint16_t*>(panel);
  size_t k = 0;
  for (; k + 2 <= count; k += 2) {
    if (stream) PrefetchPanel(panel + k * kBytes, kPanelPrefetch);
    const VF even = LoadHalves(from + k * kPanelRows),
             odd = LoadHalves(from + (k + 1) * kPanelRows);
    const VF even0 = UpperPart(even), odd0 = UpperPart(odd);
    uint8_t* const to = out + k * kBytes;
    hn::Store(Pairs(even0, odd0), DU32(), reinterpret_cast<uint32_t*>(to));
    hn::Store(Pairs(hn::Sub(even, even0), hn::Sub(odd, odd0)), DU32(),
              reinterpret_cast<uint32_t*>(to + part_bytes));
  }
  if (k == count) return;
  const VF last = LoadHalves(from + k * kPanelRows), last0 = UpperPart(last);
  const auto upper = [&](VF v) HWY_ATTR {
    return hn::TruncateTo(d16, hn::ShiftRight<16>(hn::BitCast(DU32(), v)));
  };
  hn::StoreU(upper(last0), d16, reinterpret_cast<uint16_t*>(out + k * kBytes));
  hn::StoreU(upper(hn::Sub(last, last0)), d16,
             reinterpret_cast<uint16_t*>(out + part_bytes + k * kBytes));
}

// Subnormal numbers are zeros while it lives, as the tile instructions have it.
class NoSubnormals {
 public:
  NoSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~NoSubnormals() { _mm_setcsr(before_); }
  NoSubnormals(const NoSubnormals&) = delete;
  NoSubnormals& operator=(const NoSubnormals&) = delete;

 private:
  const unsigned before_;
};

// One token of F16 from panels: with FMAs what the instruction does, in its order, because to write
// the parts of weights that are used once costs more (1B, two threads: 7.5 tok/s instead of 11.5;
// all 32 k unrolled 10.1). f[v] += the products of 32 k of two panels. `ahead`: of PrefetchPanel().
HWY_INLINE void HalvesOfOne(const uint16_t* const (&w)[2], const float* x, size_t ahead,
                            VF (&f)[2]) {
  VF even[2][2], odd[2][2];
  SLUICE_UNROLL
  for (size_t v = 0; v < 2; ++v) {
    SLUICE_UNROLL
    for (size_t part = 0; part < 2; ++part) even[v][part] = odd[v][part] = hn::Zero(DF());
  }
  const auto add = [&](size_t k, VF(&sum)[2][2]) HWY_ATTR {
    const VF in = hn::Set(DF(), x[k]);
    SLUICE_UNROLL
    for (size_t v = 0; v < 2; ++v) {
      const VF all = LoadHalves(w[v] + k * kPanelRows), w0 = UpperPart(all);
      sum[v][0] = Fuse(w0, in, sum[v][0]);
      sum[v][1] = Fuse(hn::Sub(all, w0), in, sum[v][1]);
    }
  };
  for (size_t k = 0; k < kAmxK; k += 2) {
    for (size_t v = 0; v < 2; ++v) PrefetchPanel(w[v] + k * kPanelRows, ahead);
    add(k, even);
    add(k + 1, odd);
  }
  SLUICE_UNROLL
  for (size_t v = 0; v < 2; ++v) {
    SLUICE_UNROLL
    for (size_t part = 0; part < 2; ++part) {
      f[v] = hn::Add(f[v], hn::Add(even[v][part], odd[v][part]));
    }
  }
}

inline void OneTokenOfHalves(const MatMulArgs& args) {
  const NoSubnormals no_subnormals;
  const size_t steps = args.k / kAmxK, rest = args.k % kAmxK;
  float* const x = reinterpret_cast<float*>(args.scratch);
  const uint16_t* const from = args.bf16 + TokenRow(args, 0) * args.bf16_stride;
  for (size_t k = 0; k < (steps + 1) * kAmxK; ++k) {
    const uint32_t bits = k < args.k ? static_cast<uint32_t>(from[k]) << 16 : 0;
    memcpy(x + k, &bits, sizeof(bits));
  }
  const size_t panel = args.k * kPanelRows;
  for (size_t row = args.row_begin; row < args.row_end; row += kAmxColumns) {
    const size_t valid = std::min(kAmxColumns, args.row_end - row);
    const auto* const first =
        reinterpret_cast<const uint16_t*>(args.weights) + row / kPanelRows * panel;
    const uint16_t* w[2] = {first, valid > kPanelRows ? first + panel : first};
    VF f[2] = {hn::Zero(DF()), hn::Zero(DF())};
    for (size_t s = 0; s < steps; ++s) {
      const size_t left = (steps - s) * kAmxStepBytes;
      HalvesOfOne(w, x + s * kAmxK, PanelAhead<2>(left, panel * sizeof(uint16_t)), f);
      for (const uint16_t*& at : w) at += kAmxK * kPanelRows;
    }
    if (rest != 0) {
      HWY_ALIGN uint16_t copy[2][kAmxK * kPanelRows] = {};
      for (size_t v = 0; v < 2; ++v) std::copy_n(w[v], rest * kPanelRows, copy[v]);
      HalvesOfOne({copy[0], copy[1]}, x + steps * kAmxK, 0, f);
    }
    HWY_ALIGN float out[kAmxColumns];
    hn::Store(f[0], DF(), out);
    hn::Store(f[1], DF(), out + kPanelRows);
    std::copy_n(out, valid, args.out + row);
  }
}

// C: the codec of the panels. P: parts of a weight, 2 for F16.
template <class C, size_t P>
class AmxFloats {
 public:
  explicit AmxFloats(const MatMulArgs& args) : args_(args) {}

  void Run() {
    if (args_.tokens <= kAmxTokens) {  // along each panel, as it lies in memory
      for (size_t row = args_.row_begin; row < args_.row_end; row += kAmxColumns) {
        for (size_t k = 0; k < args_.k; k += Chunk()) Part(row, k);
      }
    } else {  // all rows by a stretch of the tokens that stays in L2
      for (size_t k = 0; k < args_.k; k += Chunk()) {
        for (size_t row = args_.row_begin; row < args_.row_end; row += kAmxColumns) Part(row, k);
      }
    }
  }

 private:
  // k at a time: all where nothing has to be copied.
  size_t Chunk() const {
    if (P == 2) return kHalfChunk;
    const bool few = args_.tokens <= kAmxTokens;
    return few && args_.panels && !args_.token_rows ? args_.k : kChunk;
  }

  void Part(size_t row, size_t k) {
    const size_t row_bytes = args_.k * sizeof(uint16_t);
    const bool stream = args_.panels && args_.tokens <= kAmxTokens;
    Bf16Weights<P> w;
    w.valid = std::min(kAmxColumns, args_.row_end - row);
    w.left = stream && P == 1 ? PanelBytes<C>(args_.k - k) : 0;
    w.k = k;
    w.count = std::min(Chunk(), args_.k - k);
    w.w[0] = packed();
    w.panel_stride = PanelBytes<C>(args_.panels ? args_.k : kChunk);
    if (args_.panels) w.w[0] = args_.weights + row * row_bytes + PanelBytes<C>(k);
    for (size_t r = 0; !args_.panels && r < w.valid; r += kPanelRows) {
      PackFloats<C>(FloatRows(args_, row + r, row_bytes).at, k, w.count,
                    packed() + r / kPanelRows * w.panel_stride);
    }
    if constexpr (P == 2) {
      constexpr size_t kPart = kHalfChunk * kPanelRows * sizeof(uint16_t);
      for (size_t v = 0; v * kPanelRows < w.valid; ++v) {
        TakeApart(w.w[0] + v * w.panel_stride, w.count, apart() + 2 * v * kPart, kPart, stream);
      }
      w.w[0] = apart();
      w.w[1] = apart() + kPart;
      w.panel_stride = 2 * kPart;
    }
    for (size_t t = 0; t < args_.tokens; t += kAmxTokens) {
      Tokens(w, row, t, std::min(kAmxTokens, args_.tokens - t));
    }
  }

  // Two panels' chunks packed from rows, and behind them, of F16, the parts of two.
  uint8_t* packed() const { return LayOut(args_.scratch).floats; }
  uint8_t* apart() const { return packed() + 2 * PanelBytes<C>(kChunk); }

  const uint16_t* Token(size_t token) const {
    return args_.bf16 + TokenRow(args_, token) * args_.bf16_stride;
  }

  void Tokens(const Bf16Weights<P>& w, size_t row, size_t token, size_t count) {
    if (count != shaped_) registers_.Shape(Bf16Shape(shaped_ = count));
    const uint16_t* x = Token(token) + w.k;
    size_t x_stride = args_.bf16_stride;
    if (args_.token_rows && count > 1) {  // not neighbours (an expert's): side by side
      for (size_t t = 0; t < count; ++t) {
        std::copy_n(Token(token + t) + w.k, w.count, gather_ + t * kGathered);
      }
      x = gather_;
      x_stride = kGathered;
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
        Bf16Block<P, 1, 2>(w, x, x_stride, count, f, stride);
      } else {
        Bf16Block<P, 1, 1>(w, x, x_stride, count, f, stride);
      }
    } else if (w.valid > kPanelRows) {
      Bf16Block<P, 2, 2>(w, x, x_stride, count, f, stride);
    } else {
      Bf16Block<P, 2, 1>(w, x, x_stride, count, f, stride);
    }
    for (size_t t = 0; !whole && t < count; ++t) {
      std::copy_n(copy[t], w.valid, out + t * args_.out_stride);
    }
  }

  static constexpr size_t kGathered = P == 2 ? kHalfChunk : kChunk;
  const MatMulArgs& args_;
  AmxTiles registers_;
  size_t shaped_ = 0;  // tokens
  HWY_ALIGN uint16_t gather_[kAmxTokens * kGathered];
};

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_AMX_TILES
#endif
