// A weight format: everything the engine knows about one GGUF tensor type.
// One file per format tells its whole story, in this order: a picture of the
// bits; the block struct with a static_assert on its size; scalar Decode (and
// Encode), which define the format; the integer codes of the recipe; the SIMD
// unpack; the Format entry. Loader, tests, bench and `inspect` iterate Formats().
#ifndef SLUICE_QUANT_FORMAT_H_
#define SLUICE_QUANT_FORMAT_H_

#include <stddef.h>
#include <stdint.h>

#include <span>
#include <string_view>

#include "simd/matmul.h"

namespace sluice {

// How a format multiplies.
enum class Arithmetic : uint8_t {
  kInt8,  // integer codes x int8 activations, exact inside a block (recipe B32)
  kF32,   // weights as f32, one f32 FMA chain over k (or bfloat16 pairs: MatMulArgs::bf16)
};

// The integer form of 32 consecutive weights of one row. With a = activations, da their scale:
//   I = sum over the two halves h of sub[h] * sum((u - zero) * a)
//   f = fma(float(I), scale * da, f)
//   M = sum over the two halves h of sub_min[h] * sum(a)
//   m = fma(min, da * float(M), m)
//   y = f - m
// Without Format::sub16 every sub and sub_min is 1; without has_min, m is left out.
struct Codes32 {
  uint8_t u[32];
  float scale;
  float min;
  int32_t sub[2];
  int32_t sub_min[2];
};

struct Format {
  const char* name;       // as GGUF tools print it: "Q4_K"
  uint32_t gguf_type;     // ggml_type number in a GGUF tensor header
  uint32_t block_values;  // weights per block along k
  uint32_t block_bytes;
  Arithmetic arithmetic;
  uint8_t zero = 0;          // kInt8: zero point of the codes
  bool has_min = false;      // kInt8: subtracts min * sum(a)
  bool dots_bf16 = false;    // kF32: multiplies MatMulArgs::bf16 in pairs, where given
  bool halves_bf16 = false;  // kF32: with AMX, multiplies it in two parts of the weights
  bool sub16 = false;        // kInt8: integer sub-scales per 16 weights (Q6_K, Q3_K, Q2_K)

  // The definition: n values (a multiple of block_values), blocks at any alignment.
  void (*decode)(const uint8_t* blocks, size_t n, float* out) = nullptr;
  // Plain quantiser; null where none is offered.
  void (*encode)(const float* in, size_t n, uint8_t* blocks) = nullptr;
  // kInt8: codes of the 32 weights [32 * index, 32 * index + 32) of a row.
  void (*codes)(const uint8_t* row, size_t index, Codes32* out) = nullptr;

  // Panel form: 16 rows x block_values weights, lossless. 0 / null: none, used in place only.
  size_t panel_block_bytes = 0;
  void (*to_panel)(const uint8_t* const rows[kPanelRows], size_t blocks, uint8_t* panel) = nullptr;
  void (*from_panel)(const uint8_t* panel, size_t blocks,
                     uint8_t* const rows[kPanelRows]) = nullptr;

  // SIMD, hot; null: decodes only. Shapes were checked when the tensor was bound.
  void (*matmul)(const MatMulArgs& args) = nullptr;

  size_t RowBytes(size_t k) const { return k / block_values * block_bytes; }
};

// All known formats.
std::span<const Format* const> Formats();
// Null if the number or name (any case) is unknown.
const Format* FindFormat(uint32_t gguf_type);
const Format* FindFormat(std::string_view name);

// Whether weights of this format are multiplied as pairs of bfloat16 on this CPU where that is
// allowed: inputs are then MatMulArgs::bf16.
bool MultipliesBf16(const Format& format);

// The recipe in scalar code, one output element: what every kernel must equal, bit for bit,
// except one given MatMulArgs::bf16.
// `row` points to the weights of one row; `t` picks the token in `act`, or in f32 ([.][k]).
float ReferenceDot(const Format& format, const uint8_t* row, size_t k, const ActView& act, size_t t,
                   const float* f32);

}  // namespace sluice
#endif  // SLUICE_QUANT_FORMAT_H_
