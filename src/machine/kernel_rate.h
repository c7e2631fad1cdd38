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

#include "quant/format.h"
#include "simd/attention.h"
#include "src/base/status.h"
#include "src/machine/thread_team.h"

namespace sluice {

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
                                 size_t tokens, double seconds = 0.1);

// The same of attention over a unit of 512 positions (scores and weighed values), in tiles as
// prefill has them.
Result<double> MeasureAttentionRate(ThreadTeam& team, int threads, const KvShape& shape,
                                    double seconds = 0.1);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_KERNEL_RATE_H_
