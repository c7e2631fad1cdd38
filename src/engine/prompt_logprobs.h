// The model's own log-probabilities of a prompt's tokens, each given all before
// it, with its rank and the likeliest alternatives: vLLM's `prompt_logprobs`,
// OpenAI's `echo`. Filled by the engine a few rows at a time, different tokens by
// different workers; read by whoever answers, once it is complete.
#ifndef SLUICE_SRC_ENGINE_PROMPT_LOGPROBS_H_
#define SLUICE_SRC_ENGINE_PROMPT_LOGPROBS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/engine/logprobs.h"

namespace sluice {

class PromptLogprobs {
 public:
  PromptLogprobs() = default;
  PromptLogprobs(std::vector<int32_t> tokens, size_t alternatives);

  struct Entry {
    TokenLogprob token;
    size_t rank = 0;                    // 1: no token was likelier (of equal ones the lower id is)
    std::span<const TokenLogprob> top;  // most likely first
  };
  // Tokens of the prompt; the first has no entry, as nothing comes before it.
  size_t size() const { return tokens_.size(); }
  int32_t first() const { return tokens_.front(); }
  Entry at(size_t token) const;  // 1 <= token < size()

  // For the engine. The first token that has no entry yet; size(): complete.
  size_t next() const { return next_; }
  bool complete() const { return next_ >= tokens_.size(); }
  // From the logits [vocab] of the row before the token. Any one worker.
  void Score(size_t token, std::span<const float> logits);
  void Scored(size_t count) { next_ += count; }  // the next `count` tokens were

 private:
  std::vector<int32_t> tokens_;
  size_t alternatives_ = 0, next_ = 1;
  std::vector<float> logprobs_;    // [tokens]
  std::vector<uint32_t> ranks_;    // [tokens]
  std::vector<TokenLogprob> top_;  // [tokens][alternatives]
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_PROMPT_LOGPROBS_H_
