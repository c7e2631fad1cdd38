// Logits of known tokens, for whoever judges a model: `eval`, `perplexity`,
// tests against oracles. One sequence, in chunks; no sampling.
#ifndef SLUICE_SRC_ENGINE_EVALUATE_H_
#define SLUICE_SRC_ENGINE_EVALUATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "src/engine/model_runner.h"

namespace sluice {

// Called with the position of a token and the logits [vocab] that follow it, in ascending order.
using LogitSink = std::function<void(size_t position, std::span<const float> logits)>;

class Evaluator {
 public:
  explicit Evaluator(ModelRunner& runner);

  // Appends tokens to the sequence; logits are made for its positions >= logits_from. `total`: the
  // length the sequence will reach (0: after these tokens), which decides LongRoPE's factors.
  Status Append(std::span<const int32_t> tokens, size_t logits_from, const LogitSink& sink,
                size_t total = 0);
  size_t length() const { return tokens_.size(); }
  void Clear();

 private:
  Status Pass(size_t begin, size_t end, size_t logits_from, const LogitSink& sink);

  ModelRunner& runner_;
  std::unique_ptr<KvSequence> kv_;
  std::vector<int32_t> tokens_, logit_rows_;
  std::vector<float> logits_;
};

// ids in [0, vocab), or an error naming the first that is not.
Status CheckTokens(std::span<const int32_t> tokens, size_t vocab);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_EVALUATE_H_
