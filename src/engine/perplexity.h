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
#include <vector>

#include "src/base/status.h"
#include "src/engine/model_runner.h"
#include "src/engine/saved_logits.h"

namespace sluice {

struct Perplexity {
  size_t windows = 0;  // done so far
  size_t scored = 0;   // tokens
  double nll_sum = 0, nll_square_sum = 0;

  double value() const;  // exp of the mean -ln p
  double error() const;  // standard error of value()
};

// The tokens of every whole window, as they are evaluated.
std::vector<int32_t> WindowTokens(std::span<const int32_t> tokens, std::optional<int32_t> bos,
                                  size_t window);

// `tokens` begin with BOS if `bos` is set. `window`: at least 4 tokens, at most runner.context().
// report(estimate, all windows) is called after each window; false ends early. With `save`, every
// scored position's logits go there.
Result<Perplexity> MeasurePerplexity(
    ModelRunner& runner, std::span<const int32_t> tokens, std::optional<int32_t> bos, size_t window,
    const std::function<bool(const Perplexity&, size_t windows)>& report,
    SavedLogits* save = nullptr);

// How far the logits of one configuration are from exact ones: the Kullback-Leibler divergence of
// its distribution from the exact one, over the positions that the perplexity scores.
struct Divergence {
  size_t windows = 0, scored = 0;
  double sum = 0, square_sum = 0;  // of KL(exact || judged), in nats
  size_t same_top = 0;             // positions with the same most likely token

  double mean() const;
  double error() const;  // standard error of mean()
  double top_share() const;
};

// As MeasurePerplexity; both runners hold the same model and a context of at least `window`.
Result<Divergence> MeasureDivergence(
    ModelRunner& judged, ModelRunner& exact, std::span<const int32_t> tokens,
    std::optional<int32_t> bos, size_t window,
    const std::function<bool(const Divergence&, size_t windows)>& report);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_PERPLEXITY_H_
