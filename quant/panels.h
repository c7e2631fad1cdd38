// The panel form of each weight format: 16 output rows x one block, cut into
// groups of 4 consecutive k, so that one 64-byte vector feeds a dot instruction
// for 16 rows (2 registers on AVX2, 1 on AVX-512, 4 on NEON). Written by
// Format::to_panel at load, read by the kernels. Lossless: from_panel gives the
// GGUF bytes back. A change here must raise the version of the panel file.
//
// One shape for every format of 8 bits or less. A *unit* is 32 k = 8 groups of 4:
//
//   group g, row r, j = 0..3   is weight k = 4 g + j of row r
//   a vector of 64 bytes       byte 4 r + j:   r0: j0 j1 j2 j3 | r1: j0 j1 j2 j3 | ... | r15
//
//   nibbles    q[4][64]   q[v], low 4 bits: group v (k < 16); high 4 bits: group v + 4 (k >= 16)
//   fifth bit  h[64]      bit g: group g                  u = nibble | ((h >> g & 1) << 4)
//   bits 4, 5  h[2][64]   h[g / 4], bits 2 (g % 4) ..+1   u = nibble | ((h >> 2 (g % 4) & 3) << 4)
//   bytes      q[8][64]   q[g]
//
// So the low nibbles of a unit are its first 16 weights, and each 16-wide
// sub-scale (Q6_K) belongs to one half. Masks as AVX-512 k-words lost: the byte
// plane costs a shift and an and-or everywhere, the k-word four ops on AVX2.
// K-quants: 8 units; their 6-bit scales are unpacked to bytes (+2.8 % for Q4_K).
// f16 scales stay f16 bits. Sizes are multiples of 16 or 32, so vectors inside
// are *not* 64-byte aligned: load unaligned.
#ifndef SLUICE_QUANT_PANELS_H_
#define SLUICE_QUANT_PANELS_H_

#include <stdint.h>

#include "simd/matmul.h"

namespace sluice {

// ---- 32 weights per block: one unit -------------------------------------------------------------

// Q4_0 and IQ4_NL: scale d; IQ4_NL's nibbles are indices into its 16 values.
struct alignas(32) PanelQ4_0 {
  uint16_t d[16];    // f16 per row
  uint8_t q[4][64];  // nibbles
};
static_assert(sizeof(PanelQ4_0) == 16 * 18);
using PanelIQ4_NL = PanelQ4_0;

struct alignas(32) PanelQ4_1 {
  uint16_t d[16];    // f16
  uint16_t m[16];    // f16, as in GGUF: the weight is d u + m
  uint8_t q[4][64];  // nibbles
};
static_assert(sizeof(PanelQ4_1) == 16 * 20);

struct alignas(32) PanelQ5_0 {
  uint16_t d[16];    // f16
  uint8_t h[64];     // fifth bits
  uint8_t q[4][64];  // nibbles
};
static_assert(sizeof(PanelQ5_0) == 16 * 22);

struct alignas(32) PanelQ5_1 {
  uint16_t d[16];    // f16
  uint16_t m[16];    // f16
  uint8_t h[64];     // fifth bits
  uint8_t q[4][64];  // nibbles
};
static_assert(sizeof(PanelQ5_1) == 16 * 24);

struct alignas(32) PanelQ8_0 {
  uint16_t d[16];   // f16
  int8_t q[8][64];  // bytes, signed as in GGUF
};
static_assert(sizeof(PanelQ8_0) == 16 * 34);

struct alignas(16) PanelMXFP4 {
  uint8_t e[16];     // e8m0; the scale is 2^(e - 128), a subnormal float for e < 2 (half.h)
  uint8_t q[4][64];  // nibbles: indices into the 16 values
};
static_assert(sizeof(PanelMXFP4) == 16 * 17);

// ---- 256 weights per block: 8 units -------------------------------------------------------------

struct alignas(64) PanelQ4_K {
  uint16_t d[16], dmin[16];  // f16
  uint8_t sc[8][16];         // [unit][row] 0..63; scale of a unit: d * sc
  uint8_t mn[8][16];         // [unit][row] 0..63; minimum: dmin * mn
  uint8_t q[8][4][64];       // [unit] nibbles
};
static_assert(sizeof(PanelQ4_K) == 2368);  // 16 * 144 + 64

struct alignas(64) PanelQ5_K {
  uint16_t d[16], dmin[16];  // f16
  uint8_t sc[8][16];         // as PanelQ4_K
  uint8_t mn[8][16];
  struct Unit {
    uint8_t h[64];     // fifth bits
    uint8_t q[4][64];  // nibbles
  } unit[8];
};
static_assert(sizeof(PanelQ5_K) == 2880);  // 16 * 176 + 64

struct alignas(32) PanelQ6_K {
  uint16_t d[16];     // f16
  int8_t sc[16][16];  // [half unit][row]: sc[2 unit] for k < 16, sc[2 unit + 1] for k >= 16
  struct Unit {
    uint8_t h[2][64];  // bits 4 and 5
    uint8_t q[4][64];  // nibbles
  } unit[8];
};
static_assert(sizeof(PanelQ6_K) == 16 * 210);

struct alignas(32) PanelIQ4_XS {
  uint16_t d[16];       // f16
  int8_t ls[8][16];     // [unit][row] -32..31; scale of a unit: d * ls
  uint8_t q[8][4][64];  // [unit] nibbles: indices into the 16 values of IQ4_NL
};
static_assert(sizeof(PanelIQ4_XS) == 2208);  // 16 * 136 + 32

// ---- floats: [k][16] ----------------------------------------------------------------------------

struct PanelF32 {
  float w[16];
};
struct PanelF16 {
  uint16_t w[16];
};
// Two k, which a bf16 dot instruction multiplies at once: [k / 2][16][2]. An odd last k: [16].
struct PanelBF16 {
  uint16_t w[16][2];
};

static_assert(kPanelRows == 16);

}  // namespace sluice
#endif  // SLUICE_QUANT_PANELS_H_
