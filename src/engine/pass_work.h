// What passes of a model compute and read, counted, and the time that takes at
// least on this machine's kernels: the two roofs of `sluice bench`.
#ifndef SLUICE_SRC_ENGINE_PASS_WORK_H_
#define SLUICE_SRC_ENGINE_PASS_WORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/machine/kernel_rate.h"
#include "src/machine/thread_team.h"
#include "src/model/batch.h"
#include "src/model/model.h"

namespace sluice {

// Multiply-adds (MAC) and bytes of some passes.
struct PassWork {
  std::vector<double> matrix_macs;  // [WorkCounter::kernels()]
  double attention_macs = 0;        // scores and weighed values
  double bytes = 0;                 // weights once per pass, keys and values once per sequence
  double kv_bytes = 0;              // of these, keys and values

  double macs() const;
};

// Why a share of the ceiling can be above 100 %, in a few words; "" where there is nothing to
// explain. pass_bytes: read again by every pass, 0 if the ceiling is not of bytes.
const char* CeilingRemark(double pct, double pass_bytes, uint64_t cache_bytes);

// A model's matrix, for the probes of src/machine.
KernelMatrix MatrixOf(const Weight& weight);

// 1e9 MAC per second of each kernel at its best.
struct ComputeRates {
  std::vector<double> matrix;  // [WorkCounter::kernels()]
  double attention = 0;
};

inline constexpr double kProbeSeconds = 0.12;

// Immutable after it is made; the model must outlive it.
class WorkCounter {
 public:
  WorkCounter(const Model& model, KvType kv_type);

  // One for every way this model's matrices are multiplied: format, panels or rows.
  struct Kernel {
    KernelMatrix largest;    // the largest matrix of the layers, for the probe
    double macs = 0;         // per row: layers, the chosen experts
    double output_macs = 0;  // per row whose logits are made
  };
  const std::vector<Kernel>& kernels() const { return kernels_; }

  // Adds what one Model::Forward of this batch, logits included, computes and reads. Of a mixture,
  // the experts that rows choose at random are read: experts * (1 - (1 - used / experts) ^ rows).
  void Add(const Batch& batch, PassWork* work) const;

  // The kernels alone, on `threads` workers, with `tokens` rows a product. `seconds` (and a little)
  // a kernel.
  Result<ComputeRates> MeasureRates(ThreadTeam& team, int threads, size_t tokens,
                                    double seconds = kProbeSeconds) const;

 private:
  Kernel& KernelOf(const Weight& weight);
  void AddMatrix(const Weight& weight, double used);
  double AttentionMacs(const BatchSegment& segment) const;

  const Model& model_;
  const KvType kv_type_;
  std::vector<Kernel> kernels_;
  double dense_bytes_ = 0, expert_bytes_ = 0, output_bytes_ = 0;  // expert: all of them
  size_t windowed_layers_ = 0;
};

// The shortest time in which these kernels do this work.
double ComputeSeconds(const PassWork& work, const ComputeRates& rates);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_PASS_WORK_H_
