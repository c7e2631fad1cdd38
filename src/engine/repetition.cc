#include "src/engine/repetition.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

// base^exponent, at most `cap`, for base >= 1, by squaring: the library's pow may differ in the
// last bit between machines.
double CappedPower(double base, int32_t exponent, double cap) {
  double power = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power = std::min(power * base, cap);
    base = std::min(base * base, cap);
  }
  return power;
}

size_t Kept(int32_t a, int32_t b) {
  return a < 0 || b < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(std::max(a, b));
}

}  // namespace

void ZFunction(std::span<const int32_t> text, std::vector<int32_t>& z) {
  const size_t n = text.size();
  z.assign(n, 0);
  size_t left = 0, right = 0;  // text[left, right) equals a prefix, with the largest right so far
  for (size_t k = 1; k < n; ++k) {
    size_t match = 0;
    if (k < right) match = std::min<size_t>(right - k, z[k - left]);
    while (k + match < n && text[match] == text[k + match]) ++match;
    z[k] = static_cast<int32_t>(match);
    if (k + match > right) {
      left = k;
      right = k + match;
    }
  }
}

Repetition::Repetition(const SamplerOptions& options, size_t vocab)
    : penalties_(options.repeat_last_n != 0 &&
                 (options.repeat_penalty != 1.0f || options.presence_penalty != 0.0f ||
                  options.frequency_penalty != 0.0f)),
      dry_(options.dry_multiplier > 0.0f && options.dry_base >= 1.0f &&
           options.dry_penalty_last_n != 0),
      repeat_last_n_(penalties_ ? options.repeat_last_n : 0),
      dry_last_n_(dry_ ? options.dry_penalty_last_n : 0),
      allowed_length_(options.dry_allowed_length),
      repeat_(options.repeat_penalty),
      presence_(options.presence_penalty),
      frequency_(options.frequency_penalty),
      multiplier_(options.dry_multiplier),
      base_(options.dry_base),
      vocab_(vocab),
      keep_(Kept(repeat_last_n_, dry_last_n_)) {
  for (const auto& breaker : options.dry_breakers) {
    if (breaker.size() == 1) single_breakers_.push_back(breaker[0]);
    if (breaker.size() > 1) long_breakers_.push_back(breaker);
  }
  std::sort(single_breakers_.begin(), single_breakers_.end());
  if (penalties_) counts_.assign(vocab, 0);
  if (dry_) longest_.assign(vocab, -1);
}

void Repetition::Accept(int32_t id) {
  if (keep_ == 0 || id < 0 || static_cast<size_t>(id) >= vocab_) return;
  // Drops the older half now and then: constant time per token, and no growth once it is full.
  if (keep_ < history_.max_size() / 2 && history_.size() >= 2 * keep_) {
    history_.erase(history_.begin(), history_.end() - static_cast<ptrdiff_t>(keep_));
  }
  history_.push_back(id);
}

std::span<const int32_t> Repetition::Last(int32_t n) const {
  const size_t size = n < 0 ? history_.size() : std::min<size_t>(n, history_.size());
  return std::span(history_).last(size);
}

void Repetition::Apply(const Logits& logits) {
  if (penalties_) ApplyPenalties(logits);
  if (dry_) ApplyDry(logits);
}

void Repetition::ApplyPenalties(const Logits& logits) {
  const auto window = Last(repeat_last_n_);
  for (int32_t id : window) ++counts_[id];
  for (int32_t id : window) {
    const int32_t count = counts_[id];
    if (count == 0) continue;  // the same token earlier in this loop
    counts_[id] = 0;
    const float logit = logits.values[id];
    const float repeated = logit > 0 ? logit / repeat_ : logit * repeat_;
    logits.Set(id, repeated - (static_cast<float>(count) * frequency_ + presence_));
  }
}

bool Repetition::IsBreaker(int32_t id) const {
  return std::binary_search(single_breakers_.begin(), single_breakers_.end(), id);
}

size_t Repetition::SinceBreaker(size_t limit) const {
  const auto ends_at = [&](size_t end, const std::vector<int32_t>& breaker) {
    return breaker.size() <= end &&
           std::equal(breaker.begin(), breaker.end(), history_.begin() + (end - breaker.size()));
  };
  for (size_t since = 0; since < limit; ++since) {
    const size_t end = history_.size() - since;
    if (IsBreaker(history_[end - 1])) return since;
    for (const auto& breaker : long_breakers_) {
      if (ends_at(end, breaker)) return since;
    }
  }
  return limit;
}

void Repetition::ApplyDry(const Logits& logits) {
  const auto window = Last(dry_last_n_);
  const size_t reach = SinceBreaker(window.size());
  if (reach < static_cast<size_t>(allowed_length_)) return;
  reversed_.assign(window.rbegin(), window.rend());
  // z_[k]: how many of the last tokens also stand before the k newest; reversed_[k - 1] followed.
  ZFunction(reversed_, z_);
  const int32_t longest = static_cast<int32_t>(std::min<size_t>(reach, window.size()));
  for (size_t k = 1; k < z_.size(); ++k) {
    const int32_t match = std::min(z_[k], longest);
    int32_t& known = longest_[reversed_[k - 1]];
    if (match >= allowed_length_) known = std::max(known, match);
  }
  for (int32_t id : reversed_) {
    const int32_t match = longest_[id];
    if (match < 0) continue;
    longest_[id] = -1;
    if (IsBreaker(id)) continue;
    constexpr double kCap = std::numeric_limits<float>::max();
    const double power = CappedPower(base_, match - allowed_length_, kCap);
    const float cost = static_cast<float>(std::min(multiplier_ * power, kCap));
    logits.Set(id, logits.values[id] - cost);
  }
}

}  // namespace sluice
