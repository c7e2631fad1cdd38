// The forms of a matmul input beside its floats: bfloat16, and the one quantised form, shared by
// every integer weight format (recipe B32): int8 within +-127 in blocks of 32, a float scale and
// the block sums. Written once per input by QuantiseRow, read by every kernel.
#ifndef SLUICE_SIMD_ACTIVATIONS_H_
#define SLUICE_SIMD_ACTIVATIONS_H_

#include <stddef.h>
#include <stdint.h>

namespace sluice {

constexpr size_t kActBlock = 32;

// Values from one row of a product's inputs to the next, in every form: an odd number of 64,
// because rows a power of two apart share few sets of the caches (Zen 3, 512 tokens, GMAC/s of each
// of two threads with rows next to each other and so: Q4_0 of 8192 x 2048 67.1 and 70.4, of 2048 x
// 8192 52.9 and 54.4; F32 33.3 and 34.5).
inline size_t RowStride(size_t k) { return ((k + 63) / 64 | 1) * 64; }

// A view of `rows` rows of `k` values, `stride` apart, over caller-owned storage; both are
// multiples of 32. Per block b of row t, with a = rint(x * 127 / amax):
struct ActView {
  size_t rows = 0, k = 0, stride = 0;
  int8_t* q = nullptr;          // [rows][stride]      a, never -128
  float* scale = nullptr;       // [rows][stride/32]   da = amax / 127
  float* scaled_sum = nullptr;  // [rows][stride/32]   da * float(sum of a)
  int32_t* neg_sum =
      nullptr;  // [rows][stride/32]   -(sum of a): times the zero point, where dot products start
  int32_t* neg_pair = nullptr;  // [rows][stride/16]   two int16 per 16 values: -(sum over k%4 in
                                // {0,1}) low, {2,3} high
  int16_t* sum16 = nullptr;     // [rows][stride/16]   sum of a over each 16
  // a and da again, for AMX: 16 rows side by side. Null where the CPU has none or rows are few.
  int8_t* tile_q = nullptr;     // [rows/16, rounded up][k/32][16][32]
  float* tile_scale = nullptr;  // [rows/16, rounded up][k/32][16]
};

// Bytes of 64-byte aligned storage a view of this shape needs, and the view. `stride`: up to
// RowStride(k).
size_t ActBytes(size_t rows, size_t k);
ActView MakeActView(void* storage, size_t rows, size_t k, size_t stride);
inline ActView MakeActView(void* storage, size_t rows, size_t k) {
  return MakeActView(storage, rows, k, RowStride(k));
}

// The rows [first, first + count) of a view; without tiles unless they start with one.
inline ActView ActRows(const ActView& a, size_t first, size_t count) {
  const size_t b32 = first * (a.stride / 32), b16 = first * (a.stride / 16);
  const bool tiles = a.tile_q != nullptr && first % 16 == 0;
  return {count,
          a.k,
          a.stride,
          a.q + first * a.stride,
          a.scale + b32,
          a.scaled_sum + b32,
          a.neg_sum + b32,
          a.neg_pair + b16,
          a.sum16 + b16,
          tiles ? a.tile_q + first * a.k : nullptr,
          tiles ? a.tile_scale + first * (a.k / 32) : nullptr};
}

// Quantises values [begin, end) (multiples of 32) of a row, given as x[end - begin] (finite
// floats), into row `row` of `a`. Blocks do not depend on each other; same bytes on every target.
void QuantisePart(const float* x, const ActView& a, size_t row, size_t begin, size_t end);
inline void QuantiseRow(const float* x, const ActView& a, size_t row) {
  QuantisePart(x, a, row, 0, a.k);
}

// out[i] = x[i] rounded to bfloat16, to nearest, ties to even, as this CPU does it (subnormal
// numbers may become zeros).
void RoundToBf16(const float* x, size_t n, uint16_t* out);

}  // namespace sluice
#endif  // SLUICE_SIMD_ACTIVATIONS_H_
