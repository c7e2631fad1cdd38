// What has been said so far, and how it lowers the logits of saying it again:
// the repeat, presence and frequency penalties and DRY ("don't repeat
// yourself"). One per sequence, inside its Sampler; one thread at a time.
#ifndef SLUICE_SRC_ENGINE_REPETITION_H_
#define SLUICE_SRC_ENGINE_REPETITION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/engine/sampler_options.h"
#include "src/model/logits.h"

namespace sluice {

// For each k >= 1 of `text`, the length of the longest common prefix of text and text[k..]; [0] is
// 0. Linear time (the Z function: Gusfield, "Algorithms on Strings, Trees and Sequences", 1.3-1.4).
void ZFunction(std::span<const int32_t> text, std::vector<int32_t>& z);

class Repetition {
 public:
  Repetition(const SamplerOptions& options, size_t vocab);

  // The next token of the sequence, prompt included. Ids outside of the vocabulary are ignored.
  void Accept(int32_t id);

  // In this order, to logits of `vocab`:
  // - penalties: for every token seen in the last repeat_last_n: its logit is divided by
  //   repeat_penalty if positive, else multiplied (Keskar et al., CTRL, 2019, with the sign
  //   mended); then less presence_penalty, less times seen x frequency_penalty (OpenAI's
  //   definition).
  // - DRY: a token that would extend a repetition, that is, which followed an earlier copy of the
  //   n last tokens, n >= dry_allowed_length, loses dry_multiplier x dry_base^(n - allowed length)
  //   for its longest n. Neither the repeat nor the token itself may contain a breaker.
  void Apply(const Logits& logits);

 private:
  void ApplyPenalties(const Logits& logits);
  void ApplyDry(const Logits& logits);
  // How many of the last tokens, at most `limit`, come after the last breaker.
  size_t SinceBreaker(size_t limit) const;
  bool IsBreaker(int32_t id) const;
  std::span<const int32_t> Last(int32_t n) const;  // n < 0: all that is kept

  const bool penalties_, dry_;
  const int32_t repeat_last_n_, dry_last_n_, allowed_length_;
  const float repeat_, presence_, frequency_, multiplier_, base_;
  const size_t vocab_;
  const size_t keep_;  // tokens of history that any of the two looks at; SIZE_MAX: all

  std::vector<int32_t> single_breakers_;             // sorted
  std::vector<std::vector<int32_t>> long_breakers_;  // of two or more tokens
  std::vector<int32_t> history_;
  // Scratch, zero between calls. [vocab]: times seen; longest repetition the token would extend.
  std::vector<int32_t> counts_, longest_;
  std::vector<int32_t> reversed_, z_;  // [window]
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_REPETITION_H_
