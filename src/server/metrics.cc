#include "src/server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "src/machine/memory_use.h"
#include "src/server/dialects.h"

namespace sluice {

namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Buckets = Histogram::BucketBoundaries;

// The bounds that vLLM's dashboards know.
const Buckets kFirstToken = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                             1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const Buckets kTokenGap = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                           0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const Buckets kWhole = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                        30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
// Small models on fast machines answer within the first of those.
const Buckets kFineGap = {0.0005, 0.001, 0.002, 0.003, 0.004, 0.005, 0.0075, 0.01,
                          0.015,  0.02,  0.03,  0.05,  0.1,   0.2,   0.5,    1};
const Buckets kTokens = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                         1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};

// A number as Python's client prints it: "1.0", "0.05", "+Inf".
std::string Number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::isnan(value)) return "NaN";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value);
  std::string number(text, end.ptr);
  if (number.find_first_of(".e") == std::string::npos) number += ".0";
  return number;
}

std::string Escaped(const std::string& value) {
  std::string out;
  for (char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

using Labels = std::vector<std::pair<std::string, std::string>>;

class Exposition {
 public:
  void Head(const std::string& name, const char* type, const std::string& help) {
    text_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  void Sample(const std::string& name, const Labels& labels, double value) {
    text_ += name;
    for (size_t i = 0; i < labels.size(); ++i) {
      text_ += (i == 0 ? "{" : ",") + labels[i].first + "=\"" + Escaped(labels[i].second) + "\"";
    }
    text_ += (labels.empty() ? " " : "} ") + Number(value) + "\n";
  }
  // The library's own writer prints le="1" where scrapers of vLLM look for le="1.0".
  void Add(const MetricFamily& family) {
    const bool histogram = family.type == MetricType::Histogram;
    Head(family.name, histogram ? "histogram" : "counter", family.help);
    for (const auto& metric : family.metric) {
      Labels labels;
      for (const auto& label : metric.label) labels.emplace_back(label.name, label.value);
      if (!histogram) {
        Sample(family.name, labels, metric.counter.value);
        continue;
      }
      for (const auto& bucket : metric.histogram.bucket) {
        Labels with = labels;
        with.emplace_back("le", Number(bucket.upper_bound));
        Sample(family.name + "_bucket", with, static_cast<double>(bucket.cumulative_count));
      }
      Sample(family.name + "_sum", labels, metric.histogram.sample_sum);
      Sample(family.name + "_count", labels, static_cast<double>(metric.histogram.sample_count));
    }
  }
  // One value of every model.
  template <class Value>
  void PerModel(const std::string& name, const char* type, const char* help,
                const std::vector<ModelGauges>& models, const Value& value) {
    Head(name, type, help);
    for (const ModelGauges& m : models) {
      Sample(name, {{"model_name", m.model}, {"engine", "0"}}, value(m));
    }
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;

  Family<Counter>& Count(const char* name, const char* help) {
    return BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Histogram>& Spread(const char* name, const char* help) {
    return BuildHistogram().Name(name).Help(help).Register(registry);
  }

  Family<Counter>& ended =
      Count("vllm:request_success_total", "Requests that ended, by how they did.");
  Family<Histogram>& first_token =
      Spread("vllm:time_to_first_token_seconds", "From a request's arrival to its first token.");
  Family<Histogram>& gap = Spread("vllm:inter_token_latency_seconds", "Between two tokens.");
  Family<Histogram>& gap_old =
      Spread("vllm:time_per_output_token_seconds", "The same under its older name.");
  Family<Histogram>& mean_gap = Spread("vllm:request_time_per_output_token_seconds",
                                       "Mean time between the tokens of a request.");
  Family<Histogram>& fine_gap =
      Spread("sluice:inter_token_latency_seconds", "Between two tokens, in finer steps.");
  Family<Histogram>& whole =
      Spread("vllm:e2e_request_latency_seconds", "From a request's arrival to its end.");
  Family<Histogram>& queue =
      Spread("vllm:request_queue_time_seconds", "From a request's arrival to its first pass.");
  Family<Histogram>& inference =
      Spread("vllm:request_inference_time_seconds", "From a request's first pass to its end.");
  Family<Histogram>& prefill =
      Spread("vllm:request_prefill_time_seconds", "Computing a request's prompt.");
  Family<Histogram>& decode =
      Spread("vllm:request_decode_time_seconds", "Generating a request's tokens.");
  Family<Histogram>& prompt_tokens =
      Spread("vllm:request_prompt_tokens", "Tokens of a request's prompt.");
  Family<Histogram>& generated_tokens =
      Spread("vllm:request_generation_tokens", "Tokens generated for a request.");
  Family<Histogram>& computed_tokens =
      Spread("vllm:request_prefill_kv_computed_tokens", "Prompt tokens that were not cached.");
  Family<Histogram>& most_tokens =
      Spread("vllm:request_params_max_tokens", "Tokens a request asked for at most.");
  Family<Counter>& refused = Count("sluice:requests_refused_total", "Requests refused, by reason.");
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::Ended(const std::string& model, const SequenceStats& stats, FinishReason reason,
                    size_t max_tokens, const RequestTimes& times) {
  Families& f = *families_;
  const prometheus::Labels labels = {{"model_name", model}, {"engine", "0"}};
  prometheus::Labels with_reason = labels;
  with_reason["finished_reason"] =
      reason == FinishReason::kCancelled ? "abort" : FinishReasonName(reason);
  f.ended.Add(with_reason).Increment();
  const auto observe = [&](Family<Histogram>& family, const Buckets& buckets, double value) {
    family.Add(labels, buckets).Observe(value);
  };
  if (times.first_token_s >= 0) observe(f.first_token, kFirstToken, times.first_token_s);
  double sum = 0;
  for (float gap : times.token_gaps_s) {
    observe(f.gap, kTokenGap, gap);
    observe(f.gap_old, kTokenGap, gap);
    observe(f.fine_gap, kFineGap, gap);
    sum += gap;
  }
  if (!times.token_gaps_s.empty()) {
    observe(f.mean_gap, kTokenGap, sum / static_cast<double>(times.token_gaps_s.size()));
  }
  observe(f.whole, kWhole, times.whole_s);
  observe(f.queue, kWhole, stats.queue_s);
  observe(f.inference, kWhole, std::max(times.whole_s - stats.queue_s, 0.0));
  observe(f.prefill, kWhole, stats.prefill_s);
  observe(f.decode, kWhole, stats.decode_s);
  observe(f.prompt_tokens, kTokens, static_cast<double>(stats.prompt_tokens));
  observe(f.generated_tokens, kTokens, static_cast<double>(stats.generated_tokens));
  if (max_tokens != SIZE_MAX) observe(f.most_tokens, kTokens, static_cast<double>(max_tokens));
  observe(f.computed_tokens, kTokens, static_cast<double>(stats.prefill_rows));
}

void Metrics::Refused(const std::string& model, const std::string& why) {
  families_->refused.Add({{"model_name", model}, {"reason", why}}).Increment();
}

namespace {

using Snapshot = EngineSnapshot;

double UsedShare(const Snapshot& s) {
  if (s.pages == 0) return 0;
  return static_cast<double>(s.pages - s.free_pages - s.kept_pages) / static_cast<double>(s.pages);
}

double Rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

void AddVllm(const std::vector<ModelGauges>& models, Exposition& out) {
  out.PerModel("vllm:num_requests_running", "gauge", "Requests in the running batch.", models,
               [](const ModelGauges& m) { return m.engine.running; });
  out.PerModel("vllm:num_requests_waiting", "gauge", "Requests that wait.", models,
               [](const ModelGauges& m) { return m.engine.waiting; });
  out.PerModel("vllm:kv_cache_usage_perc", "gauge",
               "Share of the memory for keys and values in use; 1 is all.", models,
               [](const ModelGauges& m) { return UsedShare(m.engine); });
  out.PerModel("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up.", models,
               [](const ModelGauges& m) { return m.engine.cache_queries; });
  out.PerModel("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found.", models,
               [](const ModelGauges& m) { return m.engine.cache_hits; });
  out.PerModel("vllm:num_preemptions_total", "counter",
               "Times a sequence was put off and computed again.", models,
               [](const ModelGauges& m) { return m.engine.preemptions; });
  out.PerModel("vllm:prompt_tokens_total", "counter", "Prompt tokens computed.", models,
               [](const ModelGauges& m) { return m.engine.prefill_tokens; });
  out.PerModel("vllm:generation_tokens_total", "counter", "Tokens generated.", models,
               [](const ModelGauges& m) { return m.engine.generated_tokens; });
}

// Tokens of a pass, as a histogram.
void AddStepSizes(const std::vector<ModelGauges>& models, Exposition& out) {
  const std::string name = "vllm:iteration_tokens_total";
  out.Head(name, "histogram", "Tokens of a pass.");
  for (const ModelGauges& m : models) {
    const Labels labels{{"model_name", m.model}, {"engine", "0"}};
    uint64_t count = 0;
    for (size_t i = 0; i < kStepSizes; ++i) {
      count += m.engine.step_sizes[i];
      Labels with = labels;
      with.emplace_back("le",
                        i + 1 < kStepSizes ? Number(std::ldexp(1.0, static_cast<int>(i))) : "+Inf");
      out.Sample(name + "_bucket", with, static_cast<double>(count));
    }
    out.Sample(name + "_sum", labels,
               static_cast<double>(m.engine.prefill_tokens + m.engine.generated_tokens));
    out.Sample(name + "_count", labels, static_cast<double>(count));
  }
}

// What does not change while a model is loaded.
void AddConfig(const std::vector<ModelGauges>& models, Exposition& out) {
  out.Head("vllm:cache_config_info", "gauge", "The memory for keys and values.");
  for (const ModelGauges& m : models) {
    out.Sample("vllm:cache_config_info",
               {{"model_name", m.model},
                {"engine", "0"},
                {"block_size", std::to_string(kSpan)},
                {"pages", std::to_string(m.engine.pages)},
                {"max_num_seqs", std::to_string(m.engine.max_sequences)}},
               1);
  }
}

// llama-server's have no labels: sums over the models.
void AddLlama(const std::vector<ModelGauges>& models, Exposition& out) {
  Snapshot sum;
  for (const ModelGauges& m : models) {
    const Snapshot& s = m.engine;
    sum.prefill_tokens += s.prefill_tokens;
    sum.generated_tokens += s.generated_tokens;
    sum.prefill_s += s.prefill_s;
    sum.decode_s += s.decode_s;
    sum.steps += s.steps;
    sum.running += s.running;
    sum.waiting += s.waiting;
  }
  const auto one = [&](const char* name, const char* type, const char* help, double value) {
    out.Head(std::string("llamacpp:") + name, type, help);
    out.Sample(std::string("llamacpp:") + name, {}, value);
  };
  const auto prompt = static_cast<double>(sum.prefill_tokens);
  const auto generated = static_cast<double>(sum.generated_tokens);
  one("prompt_tokens_total", "counter", "Prompt tokens computed.", prompt);
  one("prompt_seconds_total", "counter", "Time of passes with prompt tokens.", sum.prefill_s);
  one("tokens_predicted_total", "counter", "Tokens generated.", generated);
  one("tokens_predicted_seconds_total", "counter", "Time of pure decode passes.", sum.decode_s);
  one("n_decode_total", "counter", "Passes.", static_cast<double>(sum.steps));
  one("prompt_tokens_seconds", "gauge", "Mean prompt tokens per second.",
      Rate(prompt, sum.prefill_s));
  one("predicted_tokens_seconds", "gauge", "Mean tokens generated per second.",
      Rate(generated, sum.decode_s));
  one("requests_processing", "gauge", "Requests that run.", static_cast<double>(sum.running));
  one("requests_deferred", "gauge", "Requests that wait.", static_cast<double>(sum.waiting));
}

void AddOurs(const std::vector<ModelGauges>& models, Exposition& out) {
  out.PerModel("sluice:steps_total", "counter", "Passes.", models,
               [](const ModelGauges& m) { return m.engine.steps; });
  out.PerModel("sluice:prefill_seconds_total", "counter", "Time of passes with prompt tokens.",
               models, [](const ModelGauges& m) { return m.engine.prefill_s; });
  out.PerModel("sluice:decode_seconds_total", "counter", "Time of pure decode passes.", models,
               [](const ModelGauges& m) { return m.engine.decode_s; });
  out.PerModel("sluice:last_step_seconds", "gauge", "The last pass.", models,
               [](const ModelGauges& m) { return m.engine.last_step_s; });
  out.PerModel("sluice:last_step_tokens", "gauge", "Tokens of the last pass.", models,
               [](const ModelGauges& m) { return m.engine.last_step_tokens; });
  out.PerModel("sluice:weight_bytes_per_token", "gauge", "Weights that one token reads.", models,
               [](const ModelGauges& m) { return m.weight_bytes_per_token; });
  out.PerModel("sluice:macs_per_token", "gauge", "Multiply-adds of one token in the matrices.",
               models, [](const ModelGauges& m) { return m.macs_per_token; });
  out.PerModel("sluice:decode_read_bytes_total", "counter",
               "Weights, keys and values read by pure decode passes.", models,
               [](const ModelGauges& m) { return m.engine.decode_bytes; });
  out.PerModel("sluice:read_bandwidth_bytes_per_second", "gauge",
               "What the decode threads read at most, of as many bytes as a token reads: the "
               "ceiling.",
               models, [](const ModelGauges& m) { return m.engine.read_bandwidth_gb_s * 1e9; });
  out.PerModel("sluice:compute_ceiling_macs_per_second", "gauge",
               "Multiply-adds of the matrices that the kernels do at most: the other ceiling.",
               models, [](const ModelGauges& m) { return Rate(m.macs_per_token, m.engine.row_s); });
  out.PerModel("sluice:decode_ceiling_ratio", "gauge",
               "Share of the ceiling that decode has reached so far; 1 is all.", models,
               [](const ModelGauges& m) {
                 const double reached =
                     Rate(static_cast<double>(m.engine.decode_bytes), m.engine.decode_s);
                 return Rate(reached, m.engine.read_bandwidth_gb_s * 1e9);
               });
  out.PerModel("sluice:kv_pages", "gauge", "Pages of the memory for keys and values.", models,
               [](const ModelGauges& m) { return m.engine.pages; });
  out.PerModel("sluice:kv_pages_free", "gauge", "Of these, empty.", models,
               [](const ModelGauges& m) { return m.engine.free_pages; });
  out.PerModel("sluice:kv_pages_kept", "gauge", "Of these, kept for later requests only.", models,
               [](const ModelGauges& m) { return m.engine.kept_pages; });
  out.PerModel("sluice:prefix_cache_evictions_total", "counter", "Blocks given up for room.",
               models, [](const ModelGauges& m) { return m.engine.cache_evictions; });
}

// Where the time went, and how near the limits it ran.
void AddStalls(const std::vector<ModelGauges>& models, Exposition& out) {
  const char* name = "sluice:stall_seconds_total";
  out.Head(name, "counter",
           "Time of steps by what held them up, and of requests in the queue (docs/why-slow.md).");
  for (const ModelGauges& m : models) {
    for (size_t i = 0; i < kCauses; ++i) {
      const auto cause = static_cast<Cause>(i);
      out.Sample(name, {{"model_name", m.model}, {"engine", "0"}, {"cause", CauseName(cause)}},
                 m.engine.stalls[cause]);
    }
  }
  out.PerModel("sluice:bandwidth_ceiling_ratio", "gauge",
               "Share of the read bandwidth that the last second of passes reached; 1 is all.",
               models, [](const ModelGauges& m) { return m.engine.recent.bandwidth; });
  out.PerModel("sluice:compute_ceiling_ratio", "gauge",
               "Share of the kernels' own speed that the last second of passes reached.", models,
               [](const ModelGauges& m) { return m.engine.recent.compute; });
  out.PerModel("sluice:weights_resident_ratio", "gauge", "Share of the weights in RAM.", models,
               [](const ModelGauges& m) { return m.weights_resident; });
  out.PerModel("sluice:throttled_periods_total", "counter",
               "Periods in which a CPU quota stopped a pass.", models,
               [](const ModelGauges& m) { return m.engine.throttled_periods; });
}

// Of the whole, by the share of the weights that lie on a node and of the workers on it.
void AddNodes(const std::vector<ModelGauges>& models, Exposition& out) {
  const auto per_node = [&](const std::string& name, const char* help,
                            const std::vector<double> NodeAudit::* shares, auto whole) {
    out.Head(name, "gauge", help);
    for (const ModelGauges& m : models) {
      const std::vector<double>& share = m.nodes.*shares;
      for (size_t node = 0; node < share.size(); ++node) {
        out.Sample(name, {{"model_name", m.model}, {"engine", "0"}, {"node", std::to_string(node)}},
                   1e9 * whole(m.engine) * share[node]);
      }
    }
  };
  per_node("sluice:node_read_bytes_per_second", "Read from a memory node in the last second.",
           &NodeAudit::weights, [](const Snapshot& s) { return s.recent_read_gb_s; });
  per_node("sluice:node_read_ceiling_bytes_per_second",
           "What the workers of a memory node read at most.", &NodeAudit::workers,
           [](const Snapshot& s) { return s.read_bandwidth_gb_s; });
}

void AddProcess(Exposition& out) {
  const MemoryUse use = ThisProcessMemory();
  out.Head("sluice:resident_bytes", "gauge", "Memory of the process in RAM.");
  out.Sample("sluice:resident_bytes", {}, static_cast<double>(use.rss_bytes));
  out.Head("sluice:major_faults_total", "counter", "Page faults that read a disk.");
  out.Sample("sluice:major_faults_total", {}, static_cast<double>(use.major_faults));
}

void AddHttp(const HttpCounters& http, Exposition& out) {
  const auto one = [&](const char* name, const char* type, const char* help, uint64_t value) {
    out.Head(std::string("sluice:http_") + name, type, help);
    out.Sample(std::string("sluice:http_") + name, {}, static_cast<double>(value));
  };
  one("connections_total", "counter", "Connections accepted.", http.connections);
  one("connections_open", "gauge", "Connections open now.", http.open_connections);
  one("requests_total", "counter", "Requests read.", http.requests);
  one("bad_requests_total", "counter", "Requests that were no HTTP.", http.bad_requests);
  one("unauthorized_total", "counter", "Requests without a valid key.", http.unauthorized);
  one("disconnects_total", "counter", "Clients gone before their answer.", http.disconnects);
  out.Head("sluice:limits_hit_total", "counter", "Requests that met a limit, by which.");
  const std::pair<const char*, uint64_t> limits[] = {{"connections", http.refused_connections},
                                                     {"body", http.body_too_large},
                                                     {"headers", http.headers_too_large},
                                                     {"time", http.timeouts},
                                                     {"slow_reader", http.slow_readers}};
  for (const auto& [name, value] : limits) {
    out.Sample("sluice:limits_hit_total", {{"limit", name}}, static_cast<double>(value));
  }
}

}  // namespace

std::string Metrics::Text(const std::vector<ModelGauges>& models, const HttpCounters& http) const {
  Exposition out;
  AddVllm(models, out);
  AddStepSizes(models, out);
  AddConfig(models, out);
  for (const MetricFamily& family : families_->registry.Collect()) out.Add(family);
  AddLlama(models, out);
  AddOurs(models, out);
  AddStalls(models, out);
  AddNodes(models, out);
  AddProcess(out);
  AddHttp(http, out);
  return std::move(out).text();
}

std::vector<Route> MetricsRoutes(const ServerContext& context) {
  Route route;
  route.method = "GET";
  route.path = "/metrics";
  route.access = Access::kMetrics;
  route.polled = true;
  route.handler = [context](std::shared_ptr<Exchange> exchange) {
    std::vector<ModelGauges> models;
    for (const LoadedModel& loaded : context.host->Loaded()) {
      ServedModel& model = *loaded.model;
      models.push_back({model.name(), model.engine().snapshot(),
                        static_cast<double>(model.runner().model().WeightBytesPerToken()),
                        model.macs_per_token(), model.residency().Share(), model.nodes()});
    }
    exchange->Respond({200,
                       "text/plain; version=0.0.4; charset=utf-8",
                       context.metrics->Text(models, context.http()),
                       {}});
  };
  return {std::move(route)};
}

}  // namespace sluice
