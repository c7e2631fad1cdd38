// What passes of a loaded model compute and read (counted by src/engine/time_model),
// and the time that takes at least on this machine's kernels, probed with the model's
// own matrices: the two roofs of `sluice bench`.
#ifndef SLUICE_SRC_ENGINE_PASS_WORK_H_
#define SLUICE_SRC_ENGINE_PASS_WORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/engine/time_model.h"
#include "src/machine/kernel_rate.h"
#include "src/machine/thread_team.h"
#include "src/model/batch.h"
#include "src/model/model.h"

namespace sluice {

// What to know of a share of the ceiling, in a few words: "in cache" where the last cache could
// hold all that every pass reads again (the ceiling then is of that cache, as far as others leave
// it to us), why it is above 100 %, or "". pass_bytes: 0 if the ceiling is not of bytes.
const char* CeilingRemark(double pct, double pass_bytes, uint64_t cache_bytes);

// A model's matrix, for the probes of src/machine.
KernelMatrix MatrixOf(const Weight& weight);

// 1e9 MAC per second of each kernel at its best.
struct ComputeRates {
  std::vector<double> matrix;  // [ModelWork::kernels()]
  double attention = 0;
};

// Immutable after it is made; the model must outlive it.
class WorkCounter {
 public:
  WorkCounter(const Model& model, KvType kv_type);

  // Of each kernel the largest matrix of the layers, for the probe.
  const std::vector<KernelMatrix>& largest() const { return largest_; }
  const ModelWork& model_work() const { return counted_; }

  // Adds what one Model::Forward of this batch, logits included, computes and reads.
  void Add(const Batch& batch, PassWork* work) const;

  // The kernels alone, on `threads` workers, with `tokens` rows a product. 0.12 s (and a little) a
  // kernel.
  Result<ComputeRates> MeasureRates(ThreadTeam& team, int threads, size_t tokens) const;

 private:
  const ModelWork counted_;
  const KvShape kv_shape_;
  std::vector<KernelMatrix> largest_;
};

// The shortest time in which these kernels do this work.
double ComputeSeconds(const PassWork& work, const ComputeRates& rates);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_PASS_WORK_H_
