// The forms of a matmul input beside its floats: bfloat16, and the one quantised form, shared by
// every integer weight format (recipe B32): int8 within +-127 in blocks of 32, a float scale and
// the block sums. Written once per input by QuantiseRow, read by every kernel.
#ifndef SLUICE_SIMD_ACTIVATIONS_H_
#define SLUICE_SIMD_ACTIVATIONS_H_

#include <stddef.h>
#include <stdint.h>

namespace sluice {

constexpr size_t kActBlock = 32;

// A view of `rows` rows of `k` values over caller-owned storage; k is a
// multiple of 32. Per block b of row t, with a = rint(x * 127 / amax):
struct ActView {
  size_t rows = 0, k = 0;
  int8_t* q = nullptr;          // [rows][k]      a, never -128
  float* scale = nullptr;       // [rows][k/32]   da = amax / 127
  float* scaled_sum = nullptr;  // [rows][k/32]   da * float(sum of a)
  int32_t* neg_sum =
      nullptr;  // [rows][k/32]   -(sum of a): times the zero point, where dot products start
  int32_t* neg_pair =
      nullptr;  // [rows][k/16]   two int16 per 16 values: -(sum over k%4 in {0,1}) low, {2,3} high
  int16_t* sum16 = nullptr;  // [rows][k/16]   sum of a over each 16
  // a and da again, for AMX: 16 rows side by side. Null where the CPU has none or rows are few.
  int8_t* tile_q = nullptr;     // [rows/16, rounded up][k/32][16][32]
  float* tile_scale = nullptr;  // [rows/16, rounded up][k/32][16]
};

// Bytes of 64-byte aligned storage a view of this shape needs, and the view.
size_t ActBytes(size_t rows, size_t k);
ActView MakeActView(void* storage, size_t rows, size_t k);

// The rows [first, first + count) of a view; without tiles unless they start with one.
inline ActView ActRows(const ActView& a, size_t first, size_t count) {
  const size_t b32 = first * (a.k / 32), b16 = first * (a.k / 16);
  const bool tiles = a.tile_q != nullptr && first % 16 == 0;
  return {count,
          a.k,
          a.q + first * a.k,
          a.scale + b32,
          a.scaled_sum + b32,
          a.neg_sum + b32,
          a.neg_pair + b16,
          a.sum16 + b16,
          tiles ? a.tile_q + first * a.k : nullptr,
          tiles ? a.tile_scale + b32 : nullptr};
}

// Quantises values [begin, end) (multiples of 32) of a row, given as x[end - begin] (finite
// floats), into row `row` of `a`. Blocks do not depend on each other; same bytes on every target.
void QuantisePart(const float* x, const ActView& a, size_t row, size_t begin, size_t end);
inline void QuantiseRow(const float* x, const ActView& a, size_t row) {
  QuantisePart(x, a, row, 0, a.k);
}

// Values from one row of bfloat16 inputs to the next: an odd number of cache lines, because rows a
// power of two apart would share one set of the caches.
inline size_t Bf16Stride(size_t k) { return ((k + 31) / 32 | 1) * 32; }
// out[i] = x[i] rounded to bfloat16, to nearest, ties to even, as this CPU does it (subnormal
// numbers may become zeros).
void RoundToBf16(const float* x, size_t n, uint16_t* out);

}  // namespace sluice
#endif  // SLUICE_SIMD_ACTIVATIONS_H_
