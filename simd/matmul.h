// What one thread's share of a matrix product is. Plain types: safe to include anywhere.
//   out[t][r] = sum over k of weight[r][k] * input[t][k]
// Each output element is one chain over k in ascending order (float_amx-inl.h: of 32 k at a time),
// so its bytes do not depend on `tokens`, on the row range, or on how the weights are held.
#ifndef SLUICE_SIMD_MATMUL_H_
#define SLUICE_SIMD_MATMUL_H_

#include <stddef.h>
#include <stdint.h>

#include "simd/activations.h"

namespace sluice {

constexpr size_t kPanelRows = 16;

struct MatMulArgs {
  // Panels: [rows / 16, rounded up][k / block_values][Format::panel_block_bytes], last panel
  // zero-filled. GGUF rows: [rows][k / block_values][Format::block_bytes]; any alignment.
  const uint8_t* weights = nullptr;
  bool panels = false;
  size_t rows = 0;                    // of the whole matrix
  size_t row_begin = 0, row_end = 0;  // this call's share; row_begin is a multiple of 16
  size_t k = 0;
  size_t tokens = 0;
  // Input row of token t: token_rows[t], or t when token_rows is null.
  const int32_t* token_rows = nullptr;
  ActView act;                 // integer formats read this ...
  const float* f32 = nullptr;  // ... float formats this: [.][k], `f32_stride` floats apart
  size_t f32_stride = 0;
  // Where given, BF16 weights, and with AMX those of F16, read this: rounded to bfloat16, [.][k],
  // `bf16_stride` values apart (even). Other formats know nothing of it.
  const uint16_t* bf16 = nullptr;
  size_t bf16_stride = 0;
  float* out = nullptr;  // [tokens][out_stride]: columns row_begin..row_end-1 are written
  size_t out_stride = 0;
  uint8_t* scratch = nullptr;  // this thread's, 64-byte aligned, MatMulScratchBytes(k)
};

// Scratch one thread needs for any format at this k.
size_t MatMulScratchBytes(size_t k);

}  // namespace sluice
#endif  // SLUICE_SIMD_MATMUL_H_
