// How attention divides its queries and its scratch memory; the same on every SIMD target.
// Only simd/attention.cc includes this.
#ifndef SLUICE_SIMD_ATTENTION_PLAN_H_
#define SLUICE_SIMD_ATTENTION_PLAN_H_

#include <stddef.h>
#include <stdint.h>

#include "simd/attention.h"
#include "simd/kv_page.h"

namespace sluice {

constexpr size_t RoundUp16(size_t n) { return (n + 15) / 16 * 16; }

// Queries that go through all their pages together: the more, the fewer times a page is read and
// turned into floats; the limit is that page, packed queries and states share the L2 cache.
constexpr size_t BlockQueries(const KvShape& s) {
  const size_t dims = s.key_dim + s.value_dim;
  return dims <= 512 ? 96 : dims <= 1024 ? 48 : 24;
}

// The parts of AttentionArgs::scratch, in floats, each on a 64-byte boundary.
struct ScratchPlan {
  size_t queries = 0;  // packed in groups of N: [key_dim][N] each, or as tiles of 16
  size_t scores, unit_states, states, scale_table, keys, values, value_stride, floats;

  explicit constexpr ScratchPlan(const KvShape& s)
      : scores(RoundUp16(BlockQueries(s) * s.key_dim)),
        unit_states(scores + kScoreRows * kSpan),
        states(unit_states + BlockQueries(s) * AttentionStateFloats(s)),
        scale_table(states + BlockQueries(s) * AttentionStateFloats(s)),
        keys(scale_table + (s.key_dim + s.value_dim) / kKvGroup * kSpan),
        values(keys + s.key_dim * kSpan),
        // Not a power of two: the rows of a column of tiles would share a few L1 sets.
        value_stride(RoundUp16(s.value_dim) + 16),
        floats(values + kSpan * value_stride) {}

  static constexpr size_t kScoreRows = 32;  // of two tiles; the largest other group has 12
};

}  // namespace sluice
#endif  // SLUICE_SIMD_ATTENTION_PLAN_H_
