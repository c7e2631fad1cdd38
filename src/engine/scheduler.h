// Decides what the next pass computes: one row of every decoding sequence
// first, then prefill chunks in order of arrival, up to a number of rows.
// Engine thread only.
#ifndef SLUICE_SRC_ENGINE_SCHEDULER_H_
#define SLUICE_SRC_ENGINE_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/engine/sequence.h"
#include "src/model/batch.h"

namespace sluice {

// The rows of one pass. Reused from step to step: no allocation after warm-up.
struct StepPlan {
  std::vector<int32_t> tokens;
  std::vector<BatchSegment> segments;
  std::vector<Sequence*> sequences;  // of each segment
  // Rows whose logits are wanted: the last one of a segment that reaches the end of its context
  // draws a token; before it, those of who wants its prompt's log-probabilities.
  std::vector<int32_t> logit_rows;
  std::vector<Sequence*> sampled;    // who draws
  std::vector<size_t> sampled_rows;  // from which of logit_rows
  struct ScoredRows {
    Sequence* sequence;
    size_t first, count;  // of logit_rows; they score its next `count` tokens
  };
  std::vector<ScoredRows> scored;
  std::vector<Sequence*> prompt_only;  // their prompt ends here, and they want no token
  std::vector<int32_t> hidden_rows;    // of embeddings, in order: those that their poolers want
  bool decode = false;                 // every segment is a decode row

  void Clear();
  void Add(Sequence& sequence, size_t rows);
  Batch batch() const { return {tokens, segments, logit_rows, hidden_rows}; }
};

// How many rows of prompts a pass takes while a budget of --max-stall-ms holds, from what passes
// took before: a step of the streams alone, and each row of a prompt on top of it.
class PrefillPace {
 public:
  // A pass of `rows`, of which `prompt_rows` (0: a step of streams alone) were of prompts.
  void Learn(double seconds, size_t rows, size_t prompt_rows);
  // Rows for the next pass, `most` at most, each with `extra_s` of other work: a few at least, or
  // no prompt would ever get in, and whole tiles. `streams`: somebody decodes beside them; without,
  // a pass may take longer, but a newcomer waits for its end.
  size_t Rows(double max_stall_s, bool streams, size_t most, double extra_s = 0) const;

 private:
  double step_s_ = 0, row_s_ = 0;  // moving means; 0: not known
};
// Moves the mean towards a sample; 0: none yet.
void LearnMean(double sample, double* mean);

// Fills the plan from the running sequences: every decode row that max_rows has room for, then at
// most prefill_rows of prompts. False: nothing to do.
bool Schedule(std::span<Sequence* const> running, size_t max_rows, size_t prefill_rows,
              StepPlan* plan);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_SCHEDULER_H_
