#include "src/engine/logprobs.h"

#include <algorithm>
#include <cmath>

#include "src/engine/candidates.h"

namespace sluice {

void Logprobs::Read(std::span<const float> logits, size_t count) {
  float largest = -std::numeric_limits<float>::infinity();
  for (float logit : logits) largest = logit > largest ? logit : largest;
  largest_ = largest;
  double sum = 0;
  for (float logit : logits) {
    if (logit == logit) sum += ExpOfNegative(static_cast<double>(logit) - largest_);
  }
  log_sum_ = std::log(sum);

  const auto likelier = [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
  };
  // A heap of the best so far, the worst of them in front.
  top_.clear();
  for (size_t i = 0; i < logits.size() && count > 0; ++i) {
    const TokenLogprob one{static_cast<int32_t>(i), logits[i]};
    if (!(logits[i] == logits[i])) continue;
    if (top_.size() == count) {
      if (!likelier(one, top_.front())) continue;
      std::pop_heap(top_.begin(), top_.end(), likelier);
      top_.pop_back();
    }
    top_.push_back(one);
    std::push_heap(top_.begin(), top_.end(), likelier);
  }
  std::sort_heap(top_.begin(), top_.end(), likelier);
  for (TokenLogprob& t : top_) t.logprob = Of(t.logprob);
}

float Logprobs::Of(float logit) const {
  return static_cast<float>(static_cast<double>(logit) - largest_ - log_sum_);
}

}  // namespace sluice
