#include "src/server/timings.h"

#include <algorithm>

namespace sluice {

namespace {

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

}  // namespace

boost::json::object Timings(const SequenceStats& stats, const std::string& diverged_text) {
  const size_t prompt_n = stats.prompt_tokens - std::min(stats.prompt_tokens, stats.cached_tokens);
  const double prompt_ms = stats.prefill_s * 1e3, predicted_ms = stats.decode_s * 1e3;
  const auto rows = static_cast<double>(prompt_n);
  // The first token comes from the prompt's last pass, so it is not one of decode's.
  const auto passes = static_cast<double>(stats.decode_passes);
  boost::json::object timings{{"cache_n", stats.cached_tokens},
                              {"prompt_n", prompt_n},
                              {"prompt_ms", prompt_ms},
                              {"prompt_per_token_ms", Ratio(prompt_ms, rows)},
                              {"prompt_per_second", Ratio(rows, stats.prefill_s)},
                              {"predicted_n", stats.generated_tokens},
                              {"predicted_ms", predicted_ms},
                              {"predicted_per_token_ms", Ratio(predicted_ms, passes)},
                              {"predicted_per_second", Ratio(passes, stats.decode_s)}};
  if (stats.diverged_at != SIZE_MAX) {
    timings["cache"] = {{"diverged_at", stats.diverged_at}, {"text", diverged_text}};
  }
  return timings;
}

void AddStats(const SequenceStats& stats, SequenceStats* sum) {
  sum->prompt_tokens += stats.prompt_tokens;
  sum->cached_tokens += stats.cached_tokens;
  sum->generated_tokens += stats.generated_tokens;
  sum->prefill_rows += stats.prefill_rows;
  sum->decode_passes += stats.decode_passes;
  sum->preemptions += stats.preemptions;
  sum->queue_s = std::max(sum->queue_s, stats.queue_s);
  sum->prefill_s += stats.prefill_s;
  sum->decode_s += stats.decode_s;
  sum->decode_bytes += stats.decode_bytes;
  sum->diverged_at = std::min(sum->diverged_at, stats.diverged_at);
}

}  // namespace sluice
