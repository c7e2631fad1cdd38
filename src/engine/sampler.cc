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

std::span<const Candidate> Sampler::Distribution(const Logits& logits, uint64_t step) {
  CHECK(logits.values.size() == vocab_ && logits.no_above.size() == LogitBlocks(vocab_));
  for (const auto& [id, bias] : options_.logit_bias) logits.Set(id, logits.values[id] + bias);
  repetition_.Apply(logits);
  // Of the thread, not of the sequence: 4 MB for a vocabulary of 262144 if nothing narrows it.
  thread_local Candidates candidates;
  candidates.Start(logits);
  if (greedy()) {
    candidates.TopK(1);
  } else {
    for (SamplerStage stage : options_.stages) RunStage(stage, step, candidates);
  }
  return candidates.Finish();
}

int32_t Sampler::Sample(const Logits& logits, uint64_t step) {
  const auto candidates = Distribution(logits, step);
  if (candidates.empty()) return -1;
  double total = 0;
  for (const Candidate& c : candidates) total += c.weight;
  const double drawn = RandomUniform(options_.seed, kDraw, step) * total;
  // The first whose running sum passes the number drawn. Weights of zero never do.
  double sum = 0;
  int32_t last = candidates[0].id;
  for (const Candidate& c : candidates) {
    sum += c.weight;
    if (sum > drawn) return c.id;
    if (c.weight > 0) last = c.id;
  }
  return last;
}

}  // namespace sluice
