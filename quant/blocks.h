// Loops and unaligned reads that the scalar parts of the format files share.
// A format's block struct holds bytes only, so it may lie at any address.
// Included by quant/*.cc only; any thread, nothing here is hot.
#ifndef SLUICE_QUANT_BLOCKS_H_
#define SLUICE_QUANT_BLOCKS_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmath>

#include "quant/format.h"

namespace sluice {

inline uint16_t Load16(const uint8_t* p) {
  uint16_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
inline uint32_t Load32(const uint8_t* p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
inline void Store16(uint16_t v, uint8_t* p) { memcpy(p, &v, sizeof v); }
inline void Store32(uint32_t v, uint8_t* p) { memcpy(p, &v, sizeof v); }

template <class Block>
const Block* AsBlocks(const uint8_t* bytes) {
  static_assert(alignof(Block) == 1);
  return reinterpret_cast<const Block*>(bytes);
}
template <class Block>
Block* AsBlocks(uint8_t* bytes) {
  static_assert(alignof(Block) == 1);
  return reinterpret_cast<Block*>(bytes);
}

// Format::decode of an integer format: the recipe's formula with an activation of 1.
// f(row, index, &codes) is its Format::codes; zero, has_min and sub16 as in its Format.
template <class F>
void DecodeCodes(const uint8_t* blocks, size_t n, float* out, int zero, F f) {
  Codes32 c;
  for (size_t i = 0; i < n; i += 32) {
    f(blocks, i / 32, &c);
    for (size_t j = 0; j < 32; ++j) {
      const float scale = c.scale * static_cast<float>(c.sub[j / 16]);
      const float min = c.min * static_cast<float>(c.sub_min[j / 16]);
      out[i + j] = scale * static_cast<float>(c.u[j] - zero) - min;
    }
  }
}

// Sub-scales of a format that has none: the formulas above and in format.h then hold for all.
inline void NoSubScales(Codes32* c) {
  for (int h = 0; h < 2; ++h) c->sub[h] = c->sub_min[h] = 1;
}

// Format::decode of a float format: f(block, values) writes the kValues values of one block.
template <class Block, size_t kValues, class F>
void DecodeBlocks(const uint8_t* blocks, size_t n, float* out, F f) {
  const Block* b = AsBlocks<Block>(blocks);
  for (size_t i = 0; i < n; i += kValues) f(b[i / kValues], out + i);
}

// Format::from_panel: f(panel, r, &block) takes row r out of its panel.
template <class Block, class Panel, class F>
void UnpackPanels(const uint8_t* panel, size_t blocks, uint8_t* const rows[kPanelRows], F f) {
  const Panel* p = reinterpret_cast<const Panel*>(panel);
  for (size_t b = 0; b < blocks; ++b) {
    for (size_t r = 0; r < kPanelRows; ++r) f(p[b], r, &AsBlocks<Block>(rows[r])[b]);
  }
}

// The order of the 32-weight formats: low nibble of byte j is weight j, high nibble weight j + 16.
inline void NibblesToCodes(const uint8_t q[16], uint8_t u[32]) {
  for (size_t j = 0; j < 16; ++j) {
    u[j] = q[j] & 15;
    u[j + 16] = q[j] >> 4;
  }
}
inline void CodesToNibbles(const uint8_t u[32], uint8_t q[16]) {
  for (size_t j = 0; j < 16; ++j) q[j] = static_cast<uint8_t>((u[j] & 15) | u[j + 16] << 4);
}
// Adds bit j of `high` to code j as its fifth bit, and collects it again.
inline void AddFifthBits(uint32_t high, uint8_t u[32]) {
  for (size_t j = 0; j < 32; ++j) u[j] |= static_cast<uint8_t>((high >> j & 1) << 4);
}
inline uint32_t FifthBits(const uint8_t u[32]) {
  uint32_t high = 0;
  for (size_t j = 0; j < 32; ++j) high |= static_cast<uint32_t>(u[j] >> 4 & 1) << j;
  return high;
}

// ---- for the plain quantisers
// ---------------------------------------------------------------------

// The value of the largest magnitude, with its sign; the first one on ties.
inline float SignedMax(const float* x, size_t n) {
  float best = 0;
  for (size_t i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(best)) best = x[i];
  }
  return best;
}
inline float InverseOrZero(float d) { return d == 0 ? 0 : 1 / d; }
// v cut to a whole number in 0..max; the tests are written so that NaN gives 0.
inline uint8_t CutToCode(float v, int max) {
  if (!(v > 0)) return 0;
  return static_cast<uint8_t>(v < static_cast<float>(max) ? static_cast<int>(v) : max);
}

}  // namespace sluice
#endif  // SLUICE_QUANT_BLOCKS_H_
