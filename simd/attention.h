// Attention of a tile of query rows over one KV head, in spans of 64 absolute
// positions: the arithmetic of one query row depends on nothing but its own
// position and the stored keys and values, so decode, chunks and whole prompts
// give the same bytes. Recipe: spans ascending, units of 8 spans started fresh
// and merged in ascending order, finite start maximum, masked p set to 0.
#ifndef SLUICE_SIMD_ATTENTION_H_
#define SLUICE_SIMD_ATTENTION_H_

#include <stddef.h>
#include <stdint.h>

namespace sluice {

constexpr size_t kSpan = 64;      // positions per span = positions per KV page
constexpr size_t kUnitSpans = 8;  // spans per unit

enum class KvType : uint8_t { kF32, kF16, kBF16, kQ8 };
const char* KvTypeName(KvType type);  // "f32" ...

// One page holds 64 positions of one (layer, kv head): keys [key_dim][64] (position in the lanes),
// then values [64][value_dim]. kBF16: both in pairs (simd/kv_page.h). kQ8: int8 with one f16 scale
// per 32 values of a position's key or value.
struct KvShape {
  size_t key_dim = 0, value_dim = 0;  // floats per position; multiples of 8 (of 32 for kQ8)
  KvType type = KvType::kF16;
};
// Bytes of one page, a multiple of 64. A page must start zeroed (finite values behind the last
// key).
size_t KvPageBytes(const KvShape& shape);
// Rounds and stores one position's key and value at `slot` (0..63) of a page.
void KvStore(const KvShape& shape, uint8_t* page, size_t slot, const float* key,
             const float* value);
// Reads them back as floats (tests).
void KvLoad(const KvShape& shape, const uint8_t* page, size_t slot, float* key, float* value);

struct AttentionArgs {
  KvShape shape;
  // Page of span s (absolute positions 64s .. 64s+63): pages[s % ring_pages]. Full layers:
  // ring_pages is the table's length and never wraps; sliding-window layers reuse entries as a
  // ring.
  const uint8_t* const* pages = nullptr;
  size_t ring_pages = 0;
  // Query rows of this tile, any mix of heads and positions that share the kv head.
  size_t queries = 0;
  const float* const* query = nullptr;  // [queries] -> key_dim floats, rope applied, not scaled
  const int32_t* position = nullptr;    // [queries] sees keys first..position, both inclusive
  const int32_t* first = nullptr;       // [queries] start of its window
  float scale = 1;                      // scores = scale * (q . k)
  float soft_cap = 0;                   // > 0: cap * tanh(score / cap), before the mask
  const float* sink = nullptr;          // [queries] extra logit in the denominator, or null
  float* const* out = nullptr;          // [queries] -> value_dim floats
  bool portable = false;                // floats also where DotsBf16(shape)
  uint8_t* scratch = nullptr;           // 64-byte aligned, AttentionScratchBytes(shape)
};
// Whether pages of this shape are multiplied as bfloat16 pairs on this CPU (kBF16 where it has the
// instruction and gains by it, or AMX, then heads of at least 32 and multiples of 16), queries and
// weights rounded to bfloat16, sums in floats. Nearly twice the speed, with AMX more; the bytes
// depend on the CPU's rounding, though still on no batch, chunk or thread. What it costs: mean KL
// of Gemma 3 270M's logits from exact ones 0.000025 +- 0.000001 over 1530 positions of
// tests/testdata/lighthouse.txt (`sluice perplexity --kl --activations f32
// --kv-type bf16`), a hundredth of what 8-bit activations cost.
bool DotsBf16(const KvShape& shape);
size_t AttentionScratchBytes(const KvShape& shape);
// Takes any number of queries; works through them in tiles.
void Attention(const AttentionArgs& args);

// The same in two steps, for splitting one long context over threads (decode with few kv heads). A
// unit is 512 positions; its result for one query is a state of AttentionStateFloats(shape) floats.
// First, in any order and on any thread, states[(unit - unit_begin) * queries + q] for each unit;
// then, per query or for all, the merge in ascending order, which writes `out`. Same bytes as
// Attention when [unit_begin, unit_end) covers every unit the queries see, from AttentionFirstUnit
// to AttentionEndUnit.
// State: sums [value_dim rounded up to 16], maximum, sum of weights, padding.
constexpr size_t AttentionStateFloats(const KvShape& shape) {
  return (shape.value_dim + 15) / 16 * 16 + 16;
}
constexpr size_t kUnitPositions = kSpan * kUnitSpans;
inline size_t AttentionFirstUnit(int32_t first) {
  return static_cast<size_t>(first) / kUnitPositions;
}
inline size_t AttentionEndUnit(int32_t position) {
  return static_cast<size_t>(position) / kUnitPositions + 1;
}
// Writes the states [queries] of one unit; `out` and `sink` are not used.
void AttentionUnit(const AttentionArgs& args, size_t unit, float* states);
// states: [units][queries][AttentionStateFloats]; uses shape, queries, sink, out and scratch.
void AttentionMerge(const AttentionArgs& args, const float* states, size_t units);

}  // namespace sluice
#endif  // SLUICE_SIMD_ATTENTION_H_
