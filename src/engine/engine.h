// Turns requests into text: every Step runs one pass for the sequences that
// are running, samples where a context was finished, and delivers. Called by
// one thread, which leads the team.
#ifndef SLUICE_SRC_ENGINE_ENGINE_H_
#define SLUICE_SRC_ENGINE_ENGINE_H_

#include <memory>
#include <vector>

#include "src/base/status.h"
#include "src/engine/model_runner.h"
#include "src/engine/scheduler.h"
#include "src/engine/sequence.h"
#include "src/text/tokenizer.h"

namespace sluice {

struct EngineOptions {
  size_t max_sequences = 1;   // run at once; others wait in order of arrival
  bool prefix_cache = false;  // keep the keys and values of finished prompts while there is room
  // While a sequence decodes, a pass takes no more of other prompts than this time allows at the
  // speed of the last passes; 0: as much as a pass can hold.
  double max_stall_s = 0;
};

// What the engine has done and holds: for metrics.
struct EngineSnapshot {
  size_t running = 0, waiting = 0;
  size_t max_sequences = 0;
  uint64_t steps = 0, prefill_tokens = 0, generated_tokens = 0, decode_bytes = 0;
  double prefill_s = 0, decode_s = 0;  // of passes with prompt rows; of pure decode passes
  uint64_t preemptions = 0;
  uint64_t cache_queries = 0, cache_hits = 0;          // tokens of prompts; of these not computed
  uint64_t cache_evictions = 0;                        // blocks of 64 positions
  size_t pages = 0, free_pages = 0, cached_pages = 0;  // of the pool; free ones, ones only kept
  uint64_t last_step_tokens = 0;
  double last_step_s = 0;
};

class Engine {
 public:
  // Both must outlive the engine.
  Engine(ModelRunner& runner, const Tokenizer& tokenizer, const EngineOptions& options = {});

  // Starts a sequence, which the engine owns until Remove. Refused when the prompt is empty, holds
  // a foreign id, does not fit in the context, or a sampler option is out of range.
  Result<Sequence*> Add(Request request);
  // The same on a finished sequence, which keeps what the new prompt has in common with it.
  Status Restart(Sequence& sequence, Request request);
  void Remove(Sequence* sequence);

  // One step; false: no sequence is running.
  Result<bool> Step();

 private:
  Status Check(const Request& request) const;
  Status PrepareContexts();
  Status Forward();
  void SampleAll();

  ModelRunner& runner_;
  const Tokenizer& tokenizer_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;
  StepPlan plan_;
  std::vector<float> logits_;   // [sampled][vocab]
  std::vector<float> largest_;  // [sampled][LogitBlocks(vocab)]
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_ENGINE_H_
