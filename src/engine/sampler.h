// Picks the next token from the logits. Steps, in this order: logit bias;
// repeat, presence and frequency penalties; DRY; then, unless temp <= 0, the
// stages of SamplerOptions::stages (default: top-n-sigma, top-k, typical-p,
// top-p, min-p, xtc, temperature) and one draw. The result is one function of
// (options, accepted tokens, logits, step): the same in any batch, on any
// machine. One per sequence, one thread at a time; sequences are sampled side by side.
#ifndef SLUICE_SRC_ENGINE_SAMPLER_H_
#define SLUICE_SRC_ENGINE_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/engine/candidates.h"
#include "src/engine/repetition.h"
#include "src/engine/sampler_options.h"
#include "src/model/logits.h"

namespace sluice {

class Sampler {
 public:
  // `options` have passed CheckSamplerOptions.
  Sampler(const SamplerOptions& options, size_t vocab);

  // Every token of the sequence in turn: the prompt's, then each sampled one.
  void Accept(int32_t id) { repetition_.Accept(id); }

  // The next token. `logits` are changed by bias and penalties. `step` is the position in
  // the random stream: the index of the token to be drawn, in its sequence. NaN counts as
  // -infinity; if nothing is above it, -1. No allocation once the thread has sampled this
  // vocabulary.
  int32_t Sample(const Logits& logits, uint64_t step);

  // What Sample would draw from: by ascending id, probability = weight / sum of weights. Changes
  // `logits` the same way. Valid until this thread samples again; empty if nothing is above
  // -infinity.
  std::span<const Candidate> Distribution(const Logits& logits, uint64_t step);

  // Sampler::Distribution keeps one token, whatever the step.
  bool greedy() const { return options_.temp <= 0; }

 private:
  Candidates& Narrow(const Logits& logits, uint64_t step);
  void RunStage(SamplerStage stage, uint64_t step, Candidates& candidates) const;

  SamplerOptions options_;
  size_t vocab_;
  Repetition repetition_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_SAMPLER_H_
