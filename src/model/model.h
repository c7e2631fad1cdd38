// A model ready to run: its file, config and bound weights, and the forward
// pass over a thread team. Immutable after Load; Forward may be called by one
// thread at a time per Workspace and team.
#ifndef SLUICE_SRC_MODEL_MODEL_H_
#define SLUICE_SRC_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "src/file/gguf.h"
#include "src/machine/thread_team.h"
#include "src/model/architecture.h"
#include "src/model/batch.h"
#include "src/model/config.h"
#include "src/model/kv_cache.h"
#include "src/model/logits.h"
#include "src/model/weight_store.h"
#include "src/model/weights.h"
#include "src/model/workspace.h"

namespace sluice {

// The config of a file and the architecture that runs it, without touching a weight.
Result<Config> ReadConfig(const Gguf& gguf);

class Model {
 public:
  // Checks every tensor, then holds the weights as `mode` and `placement` say.
  static Result<std::unique_ptr<Model>> Load(std::unique_ptr<Gguf> gguf, LoadMode mode,
                                             Activations activations, ThreadTeam& team,
                                             const LoadProgress& progress = {},
                                             const Placement& placement = {});

  const Gguf& gguf() const { return *gguf_; }
  const Config& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  LoadMode load_mode() const { return store_.mode(); }
  const std::string& load_note() const { return store_.note(); }

  // Runs the batch on `threads` workers of the team (0: all): stores its keys and values, and,
  // where `out` has a place for them, writes the logits of logit_rows. Without it, Logits() may
  // follow in pieces. Every id is < vocab, every segment's pages are reserved; the caller advances
  // the sequences afterwards. `hidden` [hidden_rows][dim]: their states, which need no logits.
  void Forward(ThreadTeam& team, int threads, Workspace& ws, const Batch& batch,
               const LogitsOut& out, float* hidden = nullptr) const;
  // Logits of logit rows [first, first + count) of the last Forward on this workspace.
  void Logits(ThreadTeam& team, int threads, const Workspace& ws, size_t first, size_t count,
              const LogitsOut& out) const;

  // Most positions this model can tell apart, 0: no such limit (learned positions).
  size_t position_limit() const { return weights_.position_embedding ? config_.context : 0; }
  // Whether a sequence of this many positions uses LongRoPE's long factors; all its keys must.
  bool UsesLongRope(size_t positions) const;

  // Bytes one decoded token reads: every streamed weight once (of experts, the chosen ones; of the
  // embedding, one row), and the keys and values of `position` earlier positions.
  uint64_t WeightBytesPerToken() const { return weight_bytes_per_token_; }
  uint64_t KvBytesPerToken(KvType type, size_t position) const;

 private:
  Model(std::unique_ptr<Gguf> gguf, Activations activations)
      : gguf_(std::move(gguf)), store_(*gguf_, activations) {}
  void CountBytes();

  std::unique_ptr<Gguf> gguf_;
  WeightStore store_;
  const Architecture* architecture_ = nullptr;
  Config config_;
  Weights weights_;
  uint64_t weight_bytes_per_token_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_MODEL_H_
