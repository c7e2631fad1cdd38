// How fast this machine's kernels multiply when nothing holds them up: the
// compute roof that `sluice bench` draws. Called by the thread that owns the
// team, while it is idle.
//
// Every worker works by itself on data that stays in its L2 cache, in windows of
// about a millisecond, and its fastest window counts: other programs only ever take
// time away. The rate is the sum over the workers.
#ifndef SLUICE_SRC_MACHINE_KERNEL_RATE_H_
#define SLUICE_SRC_MACHINE_KERNEL_RATE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/format.h"
#include "simd/attention.h"
#include "src/base/status.h"
#include "src/machine/thread_team.h"

namespace sluice {

// What counts: the fastest window (a roof), or all of them (what to expect now, with whatever else
// runs here).
enum class RateWindows { kFastest, kAll };

// A matrix that exists: rows are multiples of 16, k of the format's block.
struct KernelMatrix {
  const Format* format = nullptr;
  const uint8_t* weights = nullptr;
  bool panels = false;
  bool exact = false;  // multiplied as decoded floats
  size_t rows = 0, k = 0;
  bool dots_bf16 = false;  // multiplies inputs rounded to bfloat16
};

// 1e9 multiply-adds per second of `threads` workers (0: all; never more than have a CPU) that
// multiply parts of `matrix` with `tokens` rows, quantised before. Takes about `seconds`, one
// window at least.
Result<double> MeasureMatMulRate(ThreadTeam& team, int threads, const KernelMatrix& matrix,
                                 size_t tokens, double seconds = 0.1,
                                 RateWindows windows = RateWindows::kFastest);

// The same of attention over a unit of 512 positions (scores and weighed values), in tiles of
// `queries` rows: as prefill has them, or the query heads of one kv head. With `memory` (finite
// numbers in `shape`'s type) each worker takes the next unit of its share of that every time, as
// decode does; without, the same one in its cache.
Result<double> MeasureAttentionRate(ThreadTeam& team, int threads, const KvShape& shape,
                                    double seconds = 0.1, size_t queries = 48,
                                    RateWindows windows = RateWindows::kFastest,
                                    std::span<const uint8_t> memory = {});

// 1e9 multiply-adds per second while `threads` workers multiply `tokens` rows with 2048 rows of
// `matrix` at a time, all together, as a pass of a model does: with a matrix larger than the
// caches what to expect of it, weights read from memory, outputs written, barriers waited for.
// `tokens` 1 times the bytes of a weight is the speed of decode at best. The mean over
// about `seconds`, one product at least.
Result<double> MeasureProductRate(ThreadTeam& team, int threads, const KernelMatrix& matrix,
                                  size_t tokens, double seconds);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_KERNEL_RATE_H_
