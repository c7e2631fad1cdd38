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

class Engine {
 public:
  // Both must outlive the engine.
  Engine(ModelRunner& runner, const Tokenizer& tokenizer);

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
