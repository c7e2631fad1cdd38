// The short float types of weight files as float32, exactly, in plain scalar
// code: every scale of every format passes through here, so no library or
// compiler setting decides what a subnormal means. Any thread.
#ifndef SLUICE_QUANT_HALF_H_
#define SLUICE_QUANT_HALF_H_

#include <stdint.h>
#include <string.h>

#include <bit>

namespace sluice {

inline float F32FromF16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t rest = h & 0x7fff;
  uint32_t bits;
  if (rest < 0x0400) {  // zero and subnormals: whole multiples of 2^-24
    bits = std::bit_cast<uint32_t>(static_cast<float>(rest) * 0x1p-24f);
  } else if (rest < 0x7c00) {
    bits = (rest << 13) + ((127 - 15) << 23);
  } else {  // infinity, NaN with its payload
    bits = (rest << 13) | 0x7f800000;
  }
  return std::bit_cast<float>(sign | bits);
}

// To nearest, ties to even; past 65520 to infinity; any NaN to one quiet NaN.
inline uint16_t F16FromF32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t rest = bits & 0x7fffffff;
  uint32_t h;
  if (rest > 0x7f800000) {
    h = 0x7e00;
  } else if (rest < 0x38800000) {  // below 2^-14: one unit in the last place of 0.5f is 2^-24
    h = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  } else {
    h = (rest - ((127 - 15) << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    if (h > 0x7c00) h = 0x7c00;
  }
  return static_cast<uint16_t>(sign | h);
}

inline float F32FromBF16(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}

// To nearest, ties to even; a NaN stays one.
inline uint16_t BF16FromF32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// MXFP4's block scale: half of e8m0, because its values are stored doubled: 2^(e - 128).
// Exponents 0 and 1 are subnormal floats.
inline float F32FromE8M0Half(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

// NVFP4's sub-block scale: half of an unsigned e4m3 float; 0x7f (its NaN) means 0. Bit 7 is unused.
inline float F32FromE4M3Half(uint8_t x) {
  if (x == 0x7f) return 0;
  const uint32_t exponent = x >> 3 & 15, mantissa = x & 7;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return std::bit_cast<float>((exponent + 127 - 7 - 1) << 23 | mantissa << 20);
}

// An f16 at any alignment (files and hosts are little endian).
inline float LoadF16(const uint8_t* p) {
  uint16_t h;
  memcpy(&h, p, sizeof h);
  return F32FromF16(h);
}
inline void StoreF16(float x, uint8_t* p) {
  const uint16_t h = F16FromF32(x);
  memcpy(p, &h, sizeof h);
}

}  // namespace sluice
#endif  // SLUICE_QUANT_HALF_H_
