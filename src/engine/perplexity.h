// Perplexity as the field measures it (llama.cpp's llama-perplexity): the
// tokens are cut into windows of the context; in each, the second half is
// scored, every token given all before it in the window. Where the vocabulary
// adds BOS, it replaces the first token of each window.
#ifndef SLUICE_SRC_ENGINE_PERPLEXITY_H_
#define SLUICE_SRC_ENGINE_PERPLEXITY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "src/base/status.h"
#include "src/engine/model_runner.h"

namespace sluice {

struct Perplexity {
  size_t windows = 0;  // done so far
  size_t scored = 0;   // tokens
  double nll_sum = 0, nll_square_sum = 0;

  double value() const;  // exp of the mean -ln p
  double error() const;  // standard error of value()
};

// `tokens` begin with BOS if `bos` is set. `window`: at least 4 tokens, at most runner.context().
// report(estimate, all windows) is called after each window; false ends early.
Result<Perplexity> MeasurePerplexity(
    ModelRunner& runner, std::span<const int32_t> tokens, std::optional<int32_t> bos, size_t window,
    const std::function<bool(const Perplexity&, size_t windows)>& report);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_PERPLEXITY_H_
