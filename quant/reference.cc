// The numeric recipe in scalar code. This is the definition that every kernel,
// on every target, for any batch and any weight layout, must equal bit for bit:
// tests compare with it. Integers are exact, so their order is free; the float
// chain is as written, block after block, and fuses exactly where std::fma is.
#include <cmath>

#include "quant/format.h"

namespace sluice {
namespace {

// Of one block of 32: the exact integers, then one step of each float chain.
void AddBlock(const Format& format, const Codes32& c, const int8_t* a, float da, float* f,
              float* m) {
  int32_t dot = 0, sums = 0;
  for (int h = 0; h < 2; ++h) {
    int32_t half_dot = 0, half_sum = 0;
    for (int j = 16 * h; j < 16 * h + 16; ++j) {
      half_dot += (c.u[j] - format.zero) * a[j];
      half_sum += a[j];
    }
    dot += (format.sub16 ? c.sub[h] : 1) * half_dot;
    sums += (format.sub16 ? c.sub_min[h] : 1) * half_sum;
  }
  *f = std::fma(static_cast<float>(dot), c.scale * da, *f);
  if (format.has_min) *m = std::fma(c.min, da * static_cast<float>(sums), *m);
}

float IntegerDot(const Format& format, const uint8_t* row, size_t k, const ActView& act, size_t t) {
  float f = 0, m = 0;
  Codes32 c;
  for (size_t b = 0; b < k / kActBlock; ++b) {
    format.codes(row, b, &c);
    const size_t at = t * (act.stride / kActBlock) + b;
    AddBlock(format, c, act.q + at * kActBlock, act.scale[at], &f, &m);
  }
  return format.has_min ? f - m : f;
}

float FloatDot(const Format& format, const uint8_t* row, size_t k, const float* x) {
  constexpr size_t kMostBlockValues = 256;
  float w[kMostBlockValues];
  float f = 0;
  for (size_t i = 0; i < k; i += format.block_values, row += format.block_bytes) {
    format.decode(row, format.block_values, w);
    for (size_t j = 0; j < format.block_values; ++j) f = std::fma(w[j], x[i + j], f);
  }
  return f;
}

}  // namespace

float ReferenceDot(const Format& format, const uint8_t* row, size_t k, const ActView& act, size_t t,
                   const float* f32) {
  return format.arithmetic == Arithmetic::kInt8 ? IntegerDot(format, row, k, act, t)
                                                : FloatDot(format, row, k, f32 + t * k);
}

}  // namespace sluice
