// Expanded integer weights: the form every format takes when many tokens share
// them. A format writes units of two panels (32 rows) into scratch, once for all
// tokens; RunByteTiles (matmul-inl.h) multiplies. Also home of the scratch layout.
#ifndef SLUICE_SIMD_BYTE_PANEL_H_
#define SLUICE_SIMD_BYTE_PANEL_H_

#include <stddef.h>
#include <stdint.h>

#include "simd/amx.h"
#include "simd/matmul.h"

namespace sluice {

// 16 rows x 32 k. Codes: byte 4 r + j of u[g] is weight k = 4 g + j of row r (quant/panels.h).
struct alignas(64) ByteUnit {
  uint8_t u[8][64];
  float scale[16];
};
// With integer sub-scales per 16 k: each as int16 in both halves of a word.
struct alignas(64) ByteUnitSub : ByteUnit {
  int32_t sub[2][16];
};
// For AMX, a unit with sub-scales as weights without the common factor, code times sub-scale: up to
// 13 bits, so 256 times a byte and a byte.
struct alignas(64) SplitUnit {
  uint8_t u[2][8][64];  // multiples of 256, and what is left: signed bytes, placed as in ByteUnit
  float scale[16];
};
// Minimums of a unit: of the 32, or per half as int16 pairs (low: k < 16) times one float.
struct alignas(64) MinUnit {
  float min[16];
};
struct alignas(64) MinUnitSub : MinUnit {
  int32_t pair[16];
};

constexpr size_t kTilePanels = 2;
constexpr size_t kTileRows = kTilePanels * kPanelRows;

// k of a panel that is expanded at a time: two byte panels stay in L1 or near it. A multiple of
// 256.
constexpr size_t kChunk = 1024;
constexpr size_t kChunkUnits = kChunk / kActBlock;
// With AMX, whose sums cost more to take up again: 1B Q4_0, tok/s of prefill with 1024 and with
// 2048 at a time 581 and 617, Q6_K 428 and 456 (Xeon, two threads), with 4096 the same.
constexpr size_t kAmxChunkUnits = 2 * kChunkUnits;
// Bytes of one block of any format's panel per weight are at most 34/32 (Q8_0).
constexpr size_t kPanelChunkBytes = kPanelRows * kChunk / 32 * 34 + 256;
// Bytes for 16 rows in place (RowScratch in row_kernel-inl.h), over units, panel and floats.
constexpr size_t kRowScratchBytes = kTilePanels * kChunk * kPanelRows * sizeof(float);

// Where things lie in MatMulArgs::scratch.
struct MatMulScratch {
  ByteUnitSub* units;  // [kTilePanels][units of a chunk], as ByteUnit or ByteUnitSub
  uint8_t* panel;      // [kPanelChunkBytes]: rows repacked on the fly
  uint8_t* floats;     // [kTilePanels][kChunk][16] weights of a float format (over units and panel)
  SplitUnit* split;    // [kTilePanels][units of a chunk] with AMX
  MinUnitSub* mins;    // [kTilePanels][k / 32], as MinUnit or MinUnitSub
};
MatMulScratch LayOut(uint8_t* scratch);

// Whether so many tokens multiply in AMX tiles.
inline bool InAmxTiles(const MatMulArgs& args) {
  return args.act.tile_q != nullptr && args.tokens >= kAmxRows && args.token_rows == nullptr;
}

// How many of so many tokens do then. A last tile of 16 that has few costs more than VNNI.
inline size_t AmxTokens(size_t tokens) {
  constexpr size_t kTooFew = 6;
  return tokens % 16 > kTooFew ? tokens : tokens / 16 * 16;
}

// AMD's Zen to Zen 4, which share targets with Zen 5 and with Intel's CPUs and differ in how they
// like to be fed.
bool IsZenBefore5();

// One chunk of k for all tokens, for up to 32 rows.
struct ByteTileArgs {
  const MatMulArgs* args;
  uint8_t zero;
  uint8_t max_code;
  bool sub16, has_min;
  size_t row = 0;                         // first of the 32 output rows
  size_t unit_begin = 0, unit_count = 0;  // of k / 32
  const ByteUnit* units;                  // [kTilePanels][chunk_units]
  bool signed_codes = false;              // less `zero` already, as AMX wants them
  size_t chunk_units;                     // kChunkUnits or kAmxChunkUnits
  const MinUnit* mins;                    // [kTilePanels][k / 32]: subtracted with the last chunk
  // Memory that the next chunk will be expanded from, brought to L2 beside the products.
  const uint8_t* next[kTilePanels] = {};
  size_t next_bytes = 0;  // of each; 0: nothing is known of it
};

}  // namespace sluice
#endif  // SLUICE_SIMD_BYTE_PANEL_H_
