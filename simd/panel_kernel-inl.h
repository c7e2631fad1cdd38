// The integer matrix product over panels, for any codec and target: V panels of
// 16 rows times T tokens. The only place where the recipe's float chain is
// written in SIMD. Used by the formats' own panels (few tokens) and by the byte
// panels of byte_tiles.cc (many).
//
// A codec says what the bits of one block of a panel mean:
//   Block                     16 rows x 32 kUnits values
//   kUnits, kZero, kMaxCode, kHasMin, kSub16
//   Codes<group>(block, unit, at)   VU8: bytes at .. of the group's 64
//   Scale(block, unit, row)         VF: rows row ..
//   Min(block, unit, row)           VF, with kHasMin
//   Sub(block, unit, half, row)     VI16: int16 sub-scale in both halves of each 32-bit lane, with
//   kSub16
#if defined(SLUICE_SIMD_PANEL_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_PANEL_KERNEL_INL_H_
#undef SLUICE_SIMD_PANEL_KERNEL_INL_H_
#else
#define SLUICE_SIMD_PANEL_KERNEL_INL_H_
#endif

#include "simd/byte_panel.h"
#include "simd/dot-inl.h"
#include "simd/matmul.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

HWY_INLINE size_t TokenRow(const MatMulArgs& args, size_t t) {
  return args.token_rows == nullptr ? t : static_cast<size_t>(args.token_rows[t]);
}

template <size_t T>
HWY_INLINE TokenRows<T> RowsOf(const MatMulArgs& args, size_t first_token) {
  const ActView& act = args.act;
  TokenRows<T> a;
  for (size_t t = 0; t < T; ++t) {
    const size_t row = TokenRow(args, first_token + t);
    a.q[t] = act.q + row * act.stride;
    a.off[t] = row * (act.stride / kActBlock);
  }
  a.scale = act.scale;
  a.scaled_sum = act.scaled_sum;
  a.neg_sum = act.neg_sum;
  a.neg_pair = act.neg_pair;
  a.sum16 = act.sum16;
  return a;
}

// The float sums of a tile live in registers where they fit and in memory (L1) where not: next to
// each other there, because T rows of an output take T pointers, which spill, and share sets of L1
// (Zen 3, AVX2, 512 tokens, GMAC/s of a thread with rows and so: Q4_0 96 and 111, Q4_K 101 and 106,
// Q6_K 90 and 97, Q8_0 59 and 61).
template <size_t V, size_t T, bool kInRegisters>
struct FloatTile {
  static constexpr size_t kN = V * kParts;
  VF reg[kInRegisters ? kN : 1][kInRegisters ? T : 1];
  float* HWY_RESTRICT at;  // [T][stride], 16 V columns; stride 16 V unless in registers
  size_t stride;

  HWY_INLINE FloatTile(float* memory, size_t row_stride = V * kPanelRows)
      : at(memory), stride(row_stride) {
    if constexpr (kInRegisters) {
      SLUICE_UNROLL
      for (size_t v = 0; v < kN; ++v) {
        SLUICE_UNROLL
        for (size_t t = 0; t < T; ++t) reg[v][t] = hn::LoadU(DF(), at + t * stride + v * kLanes);
      }
    }
  }
  HWY_INLINE void Add(size_t v, size_t t, VF a, VF b) {
    if constexpr (kInRegisters) {
      reg[v][t] = Fuse(a, b, reg[v][t]);
    } else {
      float* const p = at + t * (V * kPanelRows) + v * kLanes;
      hn::StoreU(Fuse(a, b, hn::LoadU(DF(), p)), DF(), p);
    }
  }
  HWY_INLINE void Store() const {
    if constexpr (kInRegisters) {
      SLUICE_UNROLL
      for (size_t v = 0; v < kN; ++v) {
        SLUICE_UNROLL
        for (size_t t = 0; t < T; ++t) hn::StoreU(reg[v][t], DF(), at + t * stride + v * kLanes);
      }
    }
  }
};

// The integer sums of one unit, exact, for V panels and T tokens.
template <class C, size_t V, size_t T>
struct UnitSums {
  using Block = typename C::Block;
  using Dot = HWY_NAMESPACE::Dot<C>;
  static constexpr size_t kN = V * kParts;

  const Block* HWY_RESTRICT block;  // V panels, `panel_stride` apart
  size_t panel_stride, unit, b;     // b: this unit's block of the activations
  typename Dot::Acc acc[kN][T];

  HWY_INLINE UnitSums(const Block* w, size_t stride, size_t unit, size_t b)
      : block(w), panel_stride(stride), unit(unit), b(b) {}

  const Block& Panel(size_t v) const { return block[v / kParts * panel_stride]; }
  static constexpr size_t Row(size_t v) { return v % kParts * kLanes; }

  template <size_t kGroup>
  HWY_INLINE void Group(const TokenRows<T>& a) {
    typename Dot::W w[kN];
    SLUICE_UNROLL
    for (size_t v = 0; v < kN; ++v) {
      w[v] = Dot::Prepare(C::template Codes<kGroup>(Panel(v), unit, 4 * Row(v)));
    }
    SLUICE_UNROLL
    for (size_t t = 0; t < T; ++t) {
      const VI8 x = hn::BitCast(DI8(), Broadcast4(a.q[t] + kActBlock * b + 4 * kGroup));
      SLUICE_UNROLL
      for (size_t v = 0; v < kN; ++v) Dot::Multiply(acc[v][t], w[v], x);
    }
  }

  template <size_t kHalf>
  HWY_INLINE void Half(const TokenRows<T>& a) {
    SLUICE_UNROLL
    for (size_t t = 0; t < T; ++t) {
      const auto start = Dot::template Start<kHalf>(a, t, b);
      SLUICE_UNROLL
      for (size_t v = 0; v < kN; ++v) Dot::template Begin<kHalf>(acc[v][t], start);
    }
    Group<4 * kHalf>(a);
    Group<4 * kHalf + 1>(a);
    Group<4 * kHalf + 2>(a);
    Group<4 * kHalf + 3>(a);
    SLUICE_UNROLL
    for (size_t v = 0; v < kN; ++v) {
      typename Dot::Sub sub = {};
      if constexpr (C::kSub16) sub = Dot::PrepareSub(C::Sub(Panel(v), unit, kHalf, Row(v)));
      SLUICE_UNROLL
      for (size_t t = 0; t < T; ++t) Dot::template End<kHalf>(acc[v][t], sub);
    }
  }
};

// Bytes ahead in a panel for weights that come from memory. Beside the work of several tokens too
// few misses are under way without (Zen 4 from DRAM, GB/s without and with, 2, 4 and 8 tokens: Q4_K
// 21, 11, 6.6 and 29, 20, 10.7; Q4_0 32, 14, 7 and 28, 22, 11). Zen 3, one token, GB/s with none,
// 1024, 2048, 4096 and 8192 ahead: Q4_0 16, 18, 20, 19, 18; Q6_K 15, 18, 20, 20, 18 (into L1 the
// same; more tokens do not mind the distance). Xeon with AMX, two threads in turns within one
// process, against 4096 ahead to L2: 2048 to L2 2 to 7 %, 2048 to L1 5 to 11 % faster; 1024, 1536
// and 3072 to L1 4 to 7 %; 4096 to L2 and 256 or 1024 to L1 together 4 to 11 %, for twice the
// hints.
// Other targets have what was best on the Xeon, unmeasured.
constexpr bool kZen4Target = HWY_TARGET == HWY_AVX3_ZEN4;  // Zen 5's too
constexpr size_t kPanelPrefetch = kZen4Target ? 8192 : 2048;
HWY_INLINE void PrefetchPanel(const void* at, size_t ahead) {
  __builtin_prefetch(static_cast<const char*>(at) + ahead, 0, kZen4Target ? 2 : 3);
}
// How far ahead to ask in each of V panels that lie `stride` bytes apart. `left`: bytes to the
// panel's end. Past the end comes the panel that is being read beside this one already: so the one
// V further on (2 to 4 %).
template <size_t V>
HWY_INLINE size_t PanelAhead(size_t left, size_t stride) {
  return kPanelPrefetch + (left > kPanelPrefetch ? 0 : (V - 1) * stride);
}
// Whether one token does so too. Zen 4 alone is 10 to 20 % faster with what its hardware prefetches
// by itself. Zen 5, which has the same target, is not: 1B, two threads, tok/s without and with,
// Q4_0 46 and 58, Q4_K_M 50 and 56, Q6_K 36 and 45 (4096 ahead the same).
HWY_INLINE bool PrefetchForOne() {
#if HWY_TARGET == HWY_AVX3_ZEN4
  return !IsZenBefore5();  // of which only Zen 4 has AVX-512
#else
  return HWY_ARCH_X86 != 0;
#endif
}

// Adds `blocks` blocks, the first of them at block `b` of the activations, to f (and m, with
// kHasMin). Panels are `panel_stride` blocks apart; f and m are [T][16 V].
// kStream: each block is read once, from memory.
template <class C, size_t V, size_t T, bool kStream = false>
HWY_NOINLINE void PanelKernel(const typename C::Block* HWY_RESTRICT w, size_t panel_stride,
                              size_t blocks, const TokenRows<T>& rows, size_t b, float* f,
                              float* m) {
  constexpr size_t kN = V * kParts;
  constexpr size_t kSums = C::kHasMin ? 3 : 2;  // integer, f, m
  constexpr bool kInRegisters = kN * T * kSums + 6 <= kRegisters;
  constexpr size_t kBytes = sizeof(typename C::Block), kUnitBytes = kBytes / C::kUnits;
  const TokenRows<T> a = rows;
  FloatTile<V, T, kInRegisters> sum_f(f);
  FloatTile<V, T, kInRegisters && C::kHasMin> sum_m(m);
  for (size_t i = 0; i < blocks; ++i, ++w) {
    for (size_t unit = 0; unit < C::kUnits; ++unit, ++b) {
      if constexpr (kStream) {
        const size_t left = (blocks - i) * kBytes - unit * kUnitBytes;
        const size_t ahead = PanelAhead<V>(left, panel_stride * kBytes);
        SLUICE_UNROLL
        for (size_t v = 0; v < V; ++v) {
          const char* const at = reinterpret_cast<const char*>(w + v * panel_stride);
          SLUICE_UNROLL
          for (size_t line = 0; line < kUnitBytes; line += 64) {
            PrefetchPanel(at + unit * kUnitBytes + line, ahead);
          }
        }
      }
      UnitSums<C, V, T> sums(w, panel_stride, unit, b);
      sums.template Half<0>(a);
      sums.template Half<1>(a);
      // Before sums are stored, which for all the compiler knows changes them (+1.5 %).
      VF token_scale[T];
      SLUICE_UNROLL
      for (size_t t = 0; t < T; ++t) token_scale[t] = hn::Set(DF(), a.scale[a.off[t] + b]);
      SLUICE_UNROLL
      for (size_t v = 0; v < kN; ++v) {
        const typename C::Block& block = sums.Panel(v);
        const size_t row = sums.Row(v);
        const VF scale = C::Scale(block, unit, row);
        SLUICE_UNROLL
        for (size_t t = 0; t < T; ++t) {
          const VF both = hn::Mul(scale, token_scale[t]);
          sum_f.Add(v, t, UnitSums<C, V, T>::Dot::Finish(sums.acc[v][t]), both);
        }
        if constexpr (C::kHasMin) {
          const VF min = C::Min(block, unit, row);
          SLUICE_UNROLL
          for (size_t t = 0; t < T; ++t) {
            sum_m.Add(v, t, min, hn::Set(DF(), a.scaled_sum[a.off[t] + b]));
          }
        }
      }
    }
  }
  sum_f.Store();
  if constexpr (C::kHasMin) sum_m.Store();
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif
