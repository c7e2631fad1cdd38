// The text that scrapers read: types, labels, buckets.
#include "src/server/metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace sluice {
namespace {

// name{labels} -> value, and the families' types; fails on a line that is neither.
struct Scrape {
  std::map<std::string, double> samples;
  std::map<std::string, std::string> types;

  explicit Scrape(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("# HELP ")) continue;
      if (line.starts_with("# TYPE ")) {
        const size_t blank = line.rfind(' ');
        EXPECT_TRUE(types.emplace(line.substr(7, blank - 7), line.substr(blank + 1)).second)
            << line;
        continue;
      }
      const size_t blank = line.rfind(' ');
      EXPECT_NE(blank, std::string::npos) << line;
      if (blank == std::string::npos) continue;
      EXPECT_TRUE(samples.emplace(line.substr(0, blank), std::stod(line.substr(blank))).second)
          << line;
    }
  }
  double At(const std::string& name) const {
    const auto found = samples.find(name);
    EXPECT_NE(found, samples.end()) << name;
    return found == samples.end() ? -1 : found->second;
  }
};

constexpr char kLabels[] = "{engine=\"0\",model_name=\"m\"";

Metrics& WithTwoRequests(Metrics& metrics) {
  SequenceStats stats;
  stats.prompt_tokens = 12;
  stats.prefill_rows = 5;
  stats.generated_tokens = 3;
  stats.queue_s = 0.4;
  metrics.Ended("m", stats, FinishReason::kStop, 100, {0.03, 1.5, {0.012f, 0.3f}});
  metrics.Ended("m", stats, FinishReason::kCancelled, SIZE_MAX, {-1, 0.1, {}});
  return metrics;
}

TEST(Metrics, HistogramsHaveCumulativeFloatBuckets) {
  Metrics metrics;
  const std::string text = WithTwoRequests(metrics).Text({}, {});
  const Scrape s(text);
  const auto bucket = [&](const std::string& family, const std::string& le) {
    return s.At(family + "_bucket" + kLabels + ",le=\"" + le + "\"}");
  };
  EXPECT_EQ(s.types.at("vllm:time_to_first_token_seconds"), "histogram");
  EXPECT_EQ(bucket("vllm:time_to_first_token_seconds", "0.02"), 0);
  EXPECT_EQ(bucket("vllm:time_to_first_token_seconds", "0.04"), 1);
  EXPECT_EQ(bucket("vllm:time_to_first_token_seconds", "1.0"), 1);
  EXPECT_EQ(bucket("vllm:time_to_first_token_seconds", "+Inf"), 1);
  EXPECT_EQ(bucket("vllm:inter_token_latency_seconds", "0.025"), 1);
  EXPECT_EQ(bucket("vllm:inter_token_latency_seconds", "0.4"), 2);
  EXPECT_EQ(bucket("vllm:e2e_request_latency_seconds", "0.3"), 1);
  EXPECT_EQ(bucket("vllm:e2e_request_latency_seconds", "2.0"), 2);
  EXPECT_EQ(s.At(std::string("vllm:request_prompt_tokens_sum") + kLabels + "}"), 24);
  EXPECT_EQ(s.At(std::string("vllm:request_params_max_tokens_count") + kLabels + "}"), 1);
  EXPECT_EQ(text.find("le=\"1\""), std::string::npos);
}

TEST(Metrics, RequestsByReason) {
  Metrics metrics;
  WithTwoRequests(metrics).Refused("m", "queue_full");
  const Scrape s(metrics.Text({}, {}));
  EXPECT_EQ(s.types.at("vllm:request_success_total"), "counter");
  EXPECT_EQ(s.At("vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name="
                 "\"m\"}"),
            1);
  EXPECT_EQ(s.At("vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name="
                 "\"m\"}"),
            1);
  EXPECT_EQ(s.At("sluice:requests_refused_total{model_name=\"m\",reason=\"queue_full\"}"), 1);
}

TEST(Metrics, GaugesOfTheEngine) {
  ModelGauges gauges;
  gauges.model = "a \"b\"\n";
  gauges.engine.running = 3;
  gauges.engine.pages = 100;
  gauges.engine.free_pages = 50;
  gauges.engine.kept_pages = 25;
  gauges.engine.decode_bytes = 40'000'000'000;
  gauges.engine.decode_s = 2;
  gauges.engine.read_bandwidth_gb_s = 25;
  gauges.macs_per_token = 3e8;
  gauges.engine.row_s = 2e-3;
  gauges.engine.step_sizes = {7, 2, 0, 1};
  gauges.engine.stalls[Cause::kBarrier] = 0.75;
  gauges.engine.recent = {0.9, 0.3};
  gauges.engine.recent_read_gb_s = 20;
  gauges.engine.throttled_periods = 6;
  gauges.weights_resident = 0.5;
  gauges.nodes.weights = {0.25, 0.75};
  gauges.nodes.workers = {0.5, 0.5};
  HttpCounters http;
  http.slow_readers = 4;
  const Scrape s(Metrics().Text({gauges}, http));
  const std::string labels = "{model_name=\"a \\\"b\\\"\\n\",engine=\"0\"";
  EXPECT_EQ(s.At("vllm:num_requests_running" + labels + "}"), 3);
  EXPECT_EQ(s.At("vllm:kv_cache_usage_perc" + labels + "}"), 0.25);
  EXPECT_DOUBLE_EQ(s.At("sluice:decode_ceiling_ratio" + labels + "}"), 0.8);
  EXPECT_EQ(s.At("sluice:stall_seconds_total" + labels + ",cause=\"barrier\"}"), 0.75);
  EXPECT_EQ(s.At("sluice:stall_seconds_total" + labels + ",cause=\"weight_stream\"}"), 0);
  EXPECT_EQ(s.types.at("sluice:stall_seconds_total"), "counter");
  EXPECT_EQ(s.At("sluice:bandwidth_ceiling_ratio" + labels + "}"), 0.9);
  EXPECT_DOUBLE_EQ(s.At("sluice:compute_ceiling_macs_per_second" + labels + "}"), 1.5e11);
  EXPECT_EQ(s.At("sluice:compute_ceiling_ratio" + labels + "}"), 0.3);
  EXPECT_EQ(s.At("sluice:weights_resident_ratio" + labels + "}"), 0.5);
  EXPECT_EQ(s.At("sluice:throttled_periods_total" + labels + "}"), 6);
  EXPECT_EQ(s.At("sluice:node_read_bytes_per_second" + labels + ",node=\"1\"}"), 15e9);
  EXPECT_EQ(s.At("sluice:node_read_ceiling_bytes_per_second" + labels + ",node=\"0\"}"), 12.5e9);
  EXPECT_EQ(s.At("vllm:iteration_tokens_total_bucket" + labels + ",le=\"1.0\"}"), 7);
  EXPECT_EQ(s.At("vllm:iteration_tokens_total_bucket" + labels + ",le=\"8.0\"}"), 10);
  EXPECT_EQ(s.At("vllm:iteration_tokens_total_bucket" + labels + ",le=\"+Inf\"}"), 10);
  EXPECT_EQ(s.At("sluice:limits_hit_total{limit=\"slow_reader\"}"), 4);
  EXPECT_EQ(s.types.at("llamacpp:requests_processing"), "gauge");
  EXPECT_GT(s.At("sluice:resident_bytes"), 1e6);
}

}  // namespace
}  // namespace sluice
