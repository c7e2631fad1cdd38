#include "src/engine/sampler.h"

#include "src/base/check.h"
#include "src/base/random.h"

namespace sluice {
namespace {

// Random streams: what one step decides by chance, each independent of the others.
constexpr uint64_t kDraw = 0, kXtc = 1;

}  // namespace

Sampler::Sampler(const SamplerOptions& options, size_t vocab)
    : options_(options), vocab_(vocab), repetition_(options, vocab) {}

void Sampler::RunStage(SamplerStage stage, uint64_t step, Candidates& candidates) const {
  const SamplerOptions& o = options_;
  switch (stage) {
    case SamplerStage::kTopNSigma:
      return candidates.TopNSigma(o.top_n_sigma);
    case SamplerStage::kTopK:
      return candidates.TopK(o.top_k > 0 ? static_cast<size_t>(o.top_k) : 0);
    case SamplerStage::kTypicalP:
      return candidates.TypicalP(o.typical_p);
    case SamplerStage::kTopP:
      return candidates.TopP(o.top_p);
    case SamplerStage::kMinP:
      return candidates.MinP(o.min_p);
    case SamplerStage::kXtc:
      if (RandomUniform(o.seed, kXtc, step) >= o.xtc_probability) return;
      return candidates.ExcludeTopChoices(o.xtc_threshold);
    case SamplerStage::kTemperature:
      if (o.dynatemp_range <= 0) return candidates.Temperature(o.temp);
      return candidates.DynamicTemperature(o.temp, o.dynatemp_range, o.dynatemp_exponent);
  }
}

Candidates& Sampler::Narrow(const Logits& logits, uint64_t step) {
  CHECK(logits.values.size() == vocab_ && logits.no_above.size() == LogitBlocks(vocab_));
  for (const auto& [id, bias] : options_.logit_bias) logits.Set(id, logits.values[id] + bias);
  repetition_.Apply(logits);
  // Of the thread, not of the sequence: 4 MB for a vocabulary of 262144 if all of it is listed.
  thread_local Candidates candidates;
  candidates.Start(logits);
  if (greedy()) {
    candidates.TopK(1);
  } else {
    for (SamplerStage stage : options_.stages) RunStage(stage, step, candidates);
  }
  return candidates;
}

std::span<const Candidate> Sampler::Distribution(const Logits& logits, uint64_t step) {
  return Narrow(logits, step).Finish();
}

int32_t Sampler::Sample(const Logits& logits, uint64_t step) {
  return Narrow(logits, step).Draw(RandomUniform(options_.seed, kDraw, step));
}

}  // namespace sluice
