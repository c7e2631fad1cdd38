// A model with what it takes to run it: the thread team, the workspace and the
// KV pool, sized once. Used by the engine's one thread (serving) and by
// evaluation (perplexity, eval), never by two at a time.
#ifndef SLUICE_SRC_ENGINE_MODEL_RUNNER_H_
#define SLUICE_SRC_ENGINE_MODEL_RUNNER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/engine/stats.h"
#include "src/machine/ceilings.h"
#include "src/machine/relaxed_matmul.h"
#include "src/machine/team_size.h"
#include "src/model/model.h"

namespace sluice {

struct RunnerOptions {
  LoadMode weights = LoadMode::kAuto;
  Placement placement;
  Activations activations = Activations::kInt8;
  std::optional<KvType> kv_type;  // none: DefaultKvType
  size_t context = 0;     // positions per sequence; 0: the trained context, as memory allows
  size_t chunk = 512;     // most rows of one pass (--max-num-batched-tokens)
  size_t sequences = 1;   // that the KV pool holds at full context
  uint64_t kv_bytes = 0;  // of the KV pool instead (--kv-memory); 0: for `sequences`
  // With kv_bytes 0: the pool holds what half of the memory has room for, `sequences` full contexts
  // at most, one at least.
  bool share_memory = false;
  int threads = 0;        // decode; 0: as the machine profile says, at most one per core allowed
  int threads_batch = 0;  // prefill; 0: as decode, or as the profile says if that is 0 too
  // Fewer decode threads while other programs keep CPUs busy and fewer are faster.
  bool adapt_threads = true;
  // The same bytes on every CPU: float products where this CPU has faster ones of its own.
  bool portable = false;
  // Prefill of float weights by oneDNN where that measures faster: bytes then depend on the rows of
  // a pass. By how much faster; and who is told, once and by any thread, should it fail later.
  bool relaxed = false;
  double relaxed_gain = RelaxedMatMul::kLeastGain;
  std::function<void(const std::string&)> warn;
};

class ModelRunner {
 public:
  static Result<std::unique_ptr<ModelRunner>> Create(const std::string& path,
                                                     const RunnerOptions& options,
                                                     const LoadProgress& progress = {});

  const Model& model() const { return *model_; }
  const Config& config() const { return model_->config(); }
  ThreadTeam& team() { return *team_; }
  size_t context() const { return options_.context; }
  size_t chunk() const { return options_.chunk; }
  KvType kv_type() const { return *options_.kv_type; }
  int decode_threads() const { return options_.threads; }
  int prefill_threads() const { return options_.threads_batch; }
  int last_threads() const { return last_threads_; }  // of the latest pass; decode may take fewer
  double load_seconds() const { return load_seconds_; }
  // What was asked for and could not be had, and what --relaxed measured and took, a line each,
  // without a newline at the end.
  const std::string& load_note() const { return load_note_; }
  // GB/s at which the decode threads read as many bytes as a token's weights are, again and again:
  // the ceiling (of memory; of a model that is small against the caches, of what they hold too).
  // Measured at the first call (under half a second), kept in the history of this machine's
  // ceilings, and remembered; 0 if it cannot be.
  double ReadBandwidth();
  // The good value of the history (Ceilings::Good) that ReadBandwidth keeps; 0 before it.
  double QuietBandwidth() const { return quiet_bandwidth_; }
  // Measures it again, in a third of the time.
  double MeasureBandwidthAgain();
  // That and the kernels' own speed, of one row and of many: measured at the first call (about 0.1
  // s for each format) and kept; what counts is the good value of the history (Ceilings::Good), as
  // a kernel's speed does not swing as the memory's does.
  const PassCeilings& MeasureCeilings();
  // The process's peak memory without the buffer of that measurement.
  uint64_t PeakRssBytes() const;

  std::unique_ptr<KvSequence> NewSequence();
  KvPool& pool() { return *pool_; }
  const KvPool& pool() const { return *pool_; }
  // Pages that a sequence of so many positions takes, and the most positions one can have.
  size_t PagesOf(size_t positions) const;
  size_t MostPositions() const { return most_positions_; }

  // One pass; `decode`: every segment is one row of a running sequence, which picks the thread
  // count. Reserve the pages before, Advance the sequences after. Outputs as for Model::Forward.
  void Forward(const Batch& batch, bool decode, const LogitsOut& out, float* hidden = nullptr);
  // Logit rows [first, first + count) of the last pass into `out`.
  void Logits(size_t first, size_t count, const LogitsOut& out);

 private:
  ModelRunner() = default;
  Status MakeTeam();
  Status MakePool();
  void ChooseRelaxed();
  void MeasureRead(double seconds);
  // Measures something into the history of this machine's ceilings for this thread set.
  template <class Measure>
  Ceilings Kept(const Measure& measure);
  RunnerOptions options_;
  std::unique_ptr<ThreadTeam> team_;
  TeamSize decode_size_;
  std::unique_ptr<RelaxedMatMul> relaxed_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<KvPool> pool_;
  size_t most_positions_ = 0;
  double load_seconds_ = 0;
  std::string load_note_;
  int last_threads_ = 0;
  std::optional<double> read_bandwidth_;
  double quiet_bandwidth_ = 0;
  std::optional<PassCeilings> ceilings_;
  uint64_t peak_before_probe_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_MODEL_RUNNER_H_
