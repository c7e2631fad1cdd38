#include "src/engine/prompt_logprobs.h"

#include <algorithm>

namespace sluice {

namespace {

size_t RankOf(size_t token, std::span<const float> logits) {
  const float own = logits[token];
  size_t likelier = 0;
  for (size_t i = 0; i < token; ++i) likelier += logits[i] >= own;
  for (size_t i = token + 1; i < logits.size(); ++i) likelier += logits[i] > own;
  return likelier + 1;
}

}  // namespace

PromptLogprobs::PromptLogprobs(std::vector<int32_t> tokens, size_t alternatives)
    : tokens_(std::move(tokens)),
      alternatives_(alternatives),
      logprobs_(tokens_.size()),
      ranks_(tokens_.size()),
      top_(tokens_.size() * alternatives) {}

PromptLogprobs::Entry PromptLogprobs::at(size_t token) const {
  std::span<const TokenLogprob> top(top_.data() + token * alternatives_, alternatives_);
  // Fewer than were asked for, in a vocabulary smaller than that.
  while (!top.empty() && top.back().id < 0) top = top.first(top.size() - 1);
  return {{tokens_[token], logprobs_[token]}, ranks_[token], top};
}

void PromptLogprobs::Score(size_t token, std::span<const float> logits) {
  // Of the thread: its list of alternatives is kept from row to row.
  thread_local Logprobs logprobs;
  const auto id = static_cast<size_t>(tokens_[token]);
  logprobs.Read(logits, alternatives_);
  logprobs_[token] = logprobs.Of(logits[id]);
  ranks_[token] = static_cast<uint32_t>(RankOf(id, logits));
  std::copy(logprobs.top().begin(), logprobs.top().end(),
            top_.begin() + static_cast<ptrdiff_t>(token * alternatives_));
}

}  // namespace sluice
