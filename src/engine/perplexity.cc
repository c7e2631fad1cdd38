#include "src/engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "simd/vector_ops.h"
#include "src/engine/evaluate.h"

namespace sluice {

namespace {

// Standard error of the mean of n values.
double MeanError(double sum, double square_sum, size_t count) {
  const double n = static_cast<double>(count), mean = sum / n;
  const double variance = square_sum / n - mean * mean;
  return n > 1 && variance > 0 ? std::sqrt(variance / (n - 1)) : 0;
}

// Calls run(tokens of a window) for each window until one fails or report(windows done, all)
// refuses.
Status ForWindows(std::span<const int32_t> tokens, std::optional<int32_t> bos, size_t window,
                  const std::function<Status(std::span<const int32_t>)>& run,
                  const std::function<bool(size_t done, size_t windows)>& report) {
  const size_t windows = tokens.size() / window;
  if (windows == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "the text has " + std::to_string(tokens.size()) + " tokens, one window needs " +
                      std::to_string(window) + "; give a longer text or a smaller --ctx-size");
  }
  const std::vector<int32_t> all = WindowTokens(tokens, bos, window);
  for (size_t i = 0; i < windows; ++i) {
    RETURN_IF_ERROR(run(std::span(all).subspan(i * window, window)));
    if (!report(i + 1, windows)) break;
  }
  return Status();
}

// The logits of this position of a window are the first to be scored, those of window - 2 the last.
size_t FirstScored(size_t window) { return window / 2; }

// KL(p || q) of the soft-max distributions of two rows of logits.
double RowDivergence(std::span<const float> p, std::span<const float> q) {
  const double p_norm = LogSumExp(p.data(), p.size()), q_norm = LogSumExp(q.data(), q.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_norm;
    sum += std::exp(log_p) * (log_p - (q[i] - q_norm));
  }
  return sum;
}

}  // namespace

double Perplexity::value() const { return std::exp(nll_sum / static_cast<double>(scored)); }
double Perplexity::error() const { return value() * MeanError(nll_sum, nll_square_sum, scored); }

double Divergence::mean() const { return sum / static_cast<double>(scored); }
double Divergence::error() const { return MeanError(sum, square_sum, scored); }
double Divergence::top_share() const {
  return static_cast<double>(same_top) / static_cast<double>(scored);
}

std::vector<int32_t> WindowTokens(std::span<const int32_t> tokens, std::optional<int32_t> bos,
                                  size_t window) {
  const size_t whole = tokens.size() / window * window;
  std::vector<int32_t> all(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(whole));
  for (size_t i = 0; bos && i < whole; i += window) all[i] = *bos;
  return all;
}

Result<Perplexity> MeasurePerplexity(
    ModelRunner& runner, std::span<const int32_t> tokens, std::optional<int32_t> bos, size_t window,
    const std::function<bool(const Perplexity&, size_t windows)>& report, SavedLogits* save) {
  Perplexity result;
  Status saved;
  Evaluator evaluator(runner);
  RETURN_IF_ERROR(ForWindows(
      tokens, bos, window,
      [&](std::span<const int32_t> part) {
        evaluator.Clear();
        RETURN_IF_ERROR(evaluator.Append(
            part, FirstScored(window), [&](size_t position, std::span<const float> l) {
              if (position + 1 >= window) return;
              const double nll = LogSumExp(l.data(), l.size()) -
                                 static_cast<double>(l[static_cast<size_t>(part[position + 1])]);
              result.nll_sum += nll;
              result.nll_square_sum += nll * nll;
              ++result.scored;
              if (save != nullptr && saved.ok()) saved = save->Add(l);
            }));
        return saved;
      },
      [&](size_t done, size_t windows) {
        result.windows = done;
        return report(result, windows);
      }));
  return result;
}

Result<Divergence> MeasureDivergence(
    ModelRunner& judged, ModelRunner& exact, std::span<const int32_t> tokens,
    std::optional<int32_t> bos, size_t window,
    const std::function<bool(const Divergence&, size_t windows)>& report) {
  // Rows of exact logits that wait for the other runner: 64 rows of a 262k vocabulary are 67 MB.
  constexpr size_t kStep = 64;
  Divergence result;
  Evaluator judge(judged), reference(exact);
  const size_t vocab = judged.config().vocab;
  std::vector<float> rows(std::min(kStep, window) * vocab);
  const auto compare = [&](std::span<const float> p, std::span<const float> q) {
    const double kl = RowDivergence(p, q);
    result.sum += kl;
    result.square_sum += kl * kl;
    result.same_top += ArgMax(p.data(), vocab) == ArgMax(q.data(), vocab);
    ++result.scored;
  };
  const auto run = [&](std::span<const int32_t> part) -> Status {
    judge.Clear();
    reference.Clear();
    const size_t first = FirstScored(window), end = window - 1;
    for (size_t at = 0, n; at < end; at += n) {
      n = at < first ? first - at : std::min(kStep, end - at);
      const std::span<const int32_t> step = part.subspan(at, n);
      RETURN_IF_ERROR(reference.Append(
          step, first,
          [&](size_t position, std::span<const float> l) {
            std::copy(l.begin(), l.end(), rows.data() + (position - at) * vocab);
          },
          window));
      RETURN_IF_ERROR(judge.Append(
          step, first,
          [&](size_t position, std::span<const float> l) {
            compare({rows.data() + (position - at) * vocab, vocab}, l);
          },
          window));
    }
    return Status();
  };
  RETURN_IF_ERROR(ForWindows(tokens, bos, window, run, [&](size_t done, size_t windows) {
    result.windows = done;
    return report(result, windows);
  }));
  return result;
}

}  // namespace sluice
