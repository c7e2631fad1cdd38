#include "src/engine/perplexity.h"

#include <cmath>
#include <string>
#include <vector>

#include "simd/vector_ops.h"
#include "src/engine/evaluate.h"

namespace sluice {

double Perplexity::value() const { return std::exp(nll_sum / static_cast<double>(scored)); }

double Perplexity::error() const {
  const double n = static_cast<double>(scored), mean = nll_sum / n;
  const double variance = nll_square_sum / n - mean * mean;
  return n > 1 && variance > 0 ? value() * std::sqrt(variance / (n - 1)) : 0;
}

Result<Perplexity> MeasurePerplexity(
    ModelRunner& runner, std::span<const int32_t> tokens, std::optional<int32_t> bos, size_t window,
    const std::function<bool(const Perplexity&, size_t windows)>& report) {
  const size_t windows = tokens.size() / window;
  if (windows == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "the text has " + std::to_string(tokens.size()) + " tokens, one window needs " +
                      std::to_string(window) + "; give a longer text or a smaller --ctx-size");
  }
  Perplexity result;
  Evaluator evaluator(runner);
  const size_t first = window / 2;  // the logits of this position are the first to be scored
  for (size_t i = 0; i < windows; ++i) {
    std::vector<int32_t> part(tokens.begin() + static_cast<ptrdiff_t>(i * window),
                              tokens.begin() + static_cast<ptrdiff_t>((i + 1) * window));
    if (bos) part[0] = *bos;
    evaluator.Clear();
    RETURN_IF_ERROR(evaluator.Append(part, first, [&](size_t position, std::span<const float> l) {
      if (position + 1 >= window) return;
      const double nll = LogSumExp(l.data(), l.size()) -
                         static_cast<double>(l[static_cast<size_t>(part[position + 1])]);
      result.nll_sum += nll;
      result.nll_square_sum += nll * nll;
      ++result.scored;
    }));
    result.windows = i + 1;
    if (!report(result, windows)) break;
  }
  return result;
}

}  // namespace sluice
