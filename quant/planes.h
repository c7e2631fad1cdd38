// Takes one row of a unit (32 weights) out of the bit planes of a panel
// (pictures in panels.h; pack-inl.h puts it in). A unit's row travels as 8 words, w[g] byte j =
// some bits of weight 4 g + j, because words of 4 weights are what panels
// interleave: no step here handles a single weight. Included by quant/*.cc only.
#ifndef SLUICE_QUANT_PLANES_H_
#define SLUICE_QUANT_PLANES_H_

#include <stddef.h>
#include <stdint.h>

#include "quant/blocks.h"

namespace sluice {

constexpr uint32_t kLow1 = 0x01010101;
constexpr uint32_t kLow2 = 0x03030303;
constexpr uint32_t kLow4 = 0x0f0f0f0f;

inline void GetNibbles(const uint8_t (*q)[64], size_t row, uint32_t w[8]) {
  for (size_t v = 0; v < 4; ++v) {
    const uint32_t both = Load32(q[v] + 4 * row);
    w[v] = both & kLow4;
    w[v + 4] = both >> 4 & kLow4;
  }
}

// A 32-weight block's 16 nibble bytes already are the four words of the plane.
inline void GetNibbleBytes(const uint8_t (*q)[64], size_t row, uint8_t bytes[16]) {
  for (size_t v = 0; v < 4; ++v) Store32(Load32(q[v] + 4 * row), bytes + 4 * v);
}

inline void GetFifthBits(const uint8_t h[64], size_t row, uint32_t w[8]) {
  const uint32_t all = Load32(h + 4 * row);
  for (size_t g = 0; g < 8; ++g) w[g] = all >> g & kLow1;
}

// The same as a mask with bit k for weight k. The factor collects the bits of four bytes; no two
// products meet in one bit, so nothing carries.
inline uint32_t GetFifthBitMask(const uint8_t h[64], size_t row) {
  uint32_t w[8], mask = 0;
  GetFifthBits(h, row, w);
  for (size_t g = 0; g < 8; ++g) mask |= (w[g] * 0x10204080u >> 28) << (4 * g);
  return mask;
}

inline void GetBits45(const uint8_t (*h)[64], size_t row, uint32_t w[8]) {
  for (size_t g = 0; g < 8; ++g) w[g] = Load32(h[g / 4] + 4 * row) >> (2 * (g % 4)) & kLow2;
}

}  // namespace sluice
#endif  // SLUICE_QUANT_PLANES_H_
