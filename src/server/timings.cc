#include "src/server/timings.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "src/engine/pass_work.h"
#include "src/machine/topology.h"

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

bool AsksForCeiling(const HttpRequest& request) {
  const std::string_view asked = request.Header("X-Sluice-Ceiling");
  return asked == "1" || asked == "true";
}

boost::json::object CeilingJson(const RequestWork& work) {
  const auto shares = [](const CeilingShares& s) {
    return boost::json::object{
        {"binds", s.binds()}, {"bandwidth_ratio", s.bandwidth}, {"compute_ratio", s.compute}};
  };
  const StallTimes stalls = work.Stalls();
  boost::json::object causes;
  for (size_t i = 0; i < kCauses; ++i) {
    causes[CauseName(static_cast<Cause>(i))] = stalls.seconds[i];
  }
  boost::json::object o = shares(work.decode_shares());
  o["prefill"] = shares(work.prefill_shares());
  o["read_gb_s"] = Ratio(1e-9 * work.decode.bytes(), work.decode.seconds);
  o["read_ceiling_gb_s"] = work.ceilings.decode.read_gb_s;
  const double pass_bytes = Ratio(work.decode.bytes(), work.decode.passes);
  o["remark"] = CeilingRemark(100 * work.decode_shares().bandwidth, pass_bytes,
                              ThisMachine().LastCacheBytes());
  o["wall_s"] = stalls.sum();
  o["stalls_s"] = std::move(causes);
  o["major_faults"] = static_cast<uint64_t>(work.major_faults());
  return o;
}

std::string CeilingLog(const RequestWork& work) {
  const CeilingShares shares = work.decode_shares();
  char text[96];
  std::snprintf(text, sizeof(text),
                " bandwidth_ratio=%.2f compute_ratio=%.2f stalls=", shares.bandwidth,
                shares.compute);
  std::string line = text;
  const StallTimes stalls = work.Stalls();
  std::vector<size_t> order;
  for (size_t i = 0; i < kCauses; ++i) {
    if (stalls.seconds[i] >= 0.01 * stalls.sum() && stalls.seconds[i] > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return stalls.seconds[a] > stalls.seconds[b]; });
  if (order.empty()) return line + "-";
  for (size_t i = 0; i < order.size(); ++i) {
    std::snprintf(text, sizeof(text), "%s%s:%.0f%%", i == 0 ? "" : ",",
                  CauseName(static_cast<Cause>(order[i])),
                  100 * stalls.seconds[order[i]] / stalls.sum());
    line += text;
  }
  return line;
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
  sum->work += stats.work;
  sum->diverged_at = std::min(sum->diverged_at, stats.diverged_at);
}

}  // namespace sluice
