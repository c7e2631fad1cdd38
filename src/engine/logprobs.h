// The model's own log-probabilities of a drawn token and of the likeliest
// alternatives, before bias, penalties, grammar and sampler: what OpenAI's
// `logprobs` mean. One per sequence, engine thread.
#ifndef SLUICE_SRC_ENGINE_LOGPROBS_H_
#define SLUICE_SRC_ENGINE_LOGPROBS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

struct TokenLogprob {
  int32_t id = -1;
  float logprob = 0;  // natural logarithm
};

class Logprobs {
 public:
  // Takes the numbers of `logits` [vocab] that Of and top need; the logits may change afterwards.
  // Sums in ascending order of id with our own exp: the same bits on every machine. `count`
  // alternatives, ties to the lower id.
  void Read(std::span<const float> logits, size_t count);
  // Of a token whose logit was `logit`.
  float Of(float logit) const;
  std::span<const TokenLogprob> top() const { return top_; }

 private:
  double largest_ = 0, log_sum_ = 0;
  std::vector<TokenLogprob> top_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_LOGPROBS_H_
