#include "cli/top/state.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <utility>

namespace sluice::top {

namespace json = boost::json;

namespace {

Number Ratio(Number a, Number b) {
  if (!a || !b || *b <= 0) return std::nullopt;
  return *a / *b;
}

Number Minus(Number a, Number b) { return a && b ? Number(*a - *b) : std::nullopt; }

Number First(Number a, Number b) { return a ? a : b; }

const json::object* ObjectOf(const json::object& parent, std::string_view key) {
  const json::value* value = parent.if_contains(key);
  if (value == nullptr) return nullptr;
  // Of late llama-server wraps next_token in an array.
  const json::array* array = value->if_array();
  if (array != nullptr && !array->empty()) value = &array->front();
  return value->if_object();
}

Number NumberOf(const json::object* object, std::string_view key) {
  const json::value* value = object == nullptr ? nullptr : object->if_contains(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

std::string StringOf(const json::object* object, std::string_view key) {
  const json::value* value = object == nullptr ? nullptr : object->if_contains(key);
  if (value == nullptr || !value->is_string()) return "";
  return std::string(value->get_string());
}

bool BoolOf(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

// What llama-server says of a slot that works. The prompt's own length is not among it:
// n_prompt_tokens grows with what is generated.
void ReadLlamaSlot(const json::object& slot, RequestRow* row) {
  const json::object* next = ObjectOf(slot, "next_token");
  row->name = "task " + std::to_string(row->order);
  row->generated_tokens = NumberOf(next, "n_decoded");
  const bool decoding = row->generated_tokens.value_or(0) > 0;
  row->phase = decoding ? "decode" : "prefill";
  row->cached_tokens = NumberOf(&slot, "n_prompt_tokens_cache");
  if (const Number computed = NumberOf(&slot, "n_prompt_tokens_processed")) {
    row->processed_tokens = *computed + row->cached_tokens.value_or(0);
  }
  row->prompt_tokens = decoding ? row->processed_tokens : NumberOf(&slot, "n_prompt_tokens");
}

void ReadSluiceSlot(const json::object& ours, RequestRow* row) {
  row->request_id = StringOf(&ours, "request_id");
  row->name = row->request_id;
  row->phase = StringOf(&ours, "phase");
  row->prompt_tokens = NumberOf(&ours, "prompt_tokens");
  row->cached_tokens = NumberOf(&ours, "cached_tokens");
  row->processed_tokens = NumberOf(&ours, "processed_tokens");
  row->generated_tokens = NumberOf(&ours, "generated_tokens");
  row->queue_s = NumberOf(&ours, "queue_s");
  row->prefill_s = NumberOf(&ours, "prefill_s");
  row->decode_s = NumberOf(&ours, "decode_s");
  row->prefill_tok_s = NumberOf(&ours, "prefill_tok_s");
  row->decode_tok_s = NumberOf(&ours, "decode_tok_s");
  // Zero until something was decoded, or where no ceiling was measured.
  row->ceiling = NumberOf(&ours, "ceiling_ratio");
  if (row->ceiling.value_or(0) <= 0) row->ceiling.reset();
}

// Nothing: a free slot, or not a slot at all.
std::optional<RequestRow> ReadSlot(const json::value& value, const std::string& model) {
  const json::object* slot = value.if_object();
  if (slot == nullptr) return std::nullopt;
  const json::object* ours = ObjectOf(*slot, "sluice");
  if (ours == nullptr && !BoolOf(*slot, "is_processing")) return std::nullopt;
  RequestRow row;
  row.model = model;
  const Number id = NumberOf(slot, "id"), task = NumberOf(slot, "id_task");
  if (id && *id >= 0) row.slot = id;
  constexpr double kMost = 9e15;  // that a double counts to
  row.order = static_cast<uint64_t>(std::clamp(First(task, id).value_or(0), 0.0, kMost));
  row.key = model + "/" + std::to_string(row.order);
  if (ours != nullptr) {
    ReadSluiceSlot(*ours, &row);
  } else {
    ReadLlamaSlot(*slot, &row);
  }
  const Number left = NumberOf(ObjectOf(*slot, "next_token"), "n_remain");
  if (left && *left >= 0 && row.generated_tokens) row.max_tokens = *left + *row.generated_tokens;
  return row;
}

}  // namespace

ServerKind KindOf(const MetricsText& metrics) {
  // sluice has the names of the others too.
  if (metrics.HasPrefix("sluice:")) return ServerKind::kSluice;
  if (metrics.HasPrefix("llamacpp:")) return ServerKind::kLlamaServer;
  if (metrics.HasPrefix("vllm:")) return ServerKind::kVllm;
  return ServerKind::kUnknown;
}

const char* ServerKindName(ServerKind kind) {
  switch (kind) {
    case ServerKind::kSluice:
      return "sluice";
    case ServerKind::kLlamaServer:
      return "llama-server";
    case ServerKind::kVllm:
      return "vLLM";
    case ServerKind::kUnknown:
      return "server";
  }
  return "";
}

Number RequestRow::tok_s() const {
  if (phase == "queued") return std::nullopt;
  return phase == "prefill" ? prefill_tok_s : decode_tok_s;
}

Number RequestRow::cached() const { return Ratio(cached_tokens, prompt_tokens); }

Number RequestRow::whole_s() const {
  if (!queue_s && !prefill_s && !decode_s) return std::nullopt;
  return queue_s.value_or(0) + prefill_s.value_or(0) + decode_s.value_or(0);
}

Number RequestRow::progress() const {
  if (phase == "queued") return std::nullopt;
  return phase == "prefill" ? Ratio(processed_tokens, prompt_tokens)
                            : Ratio(generated_tokens, max_tokens);
}

void TopState::Add(const Scrape& scrape) {
  error_ = scrape.error;
  if (!error_.empty()) {
    seconds_ = at_s_ = 0;  // rates begin anew: it may be another process that answers next
    generated_.clear();
    has_rates_ = false;
    return;
  }
  before_ = std::move(now_);
  now_ = scrape.metrics;
  seconds_ = at_s_ > 0 ? scrape.at_s - at_s_ : 0;
  at_s_ = scrape.at_s;
  has_rates_ = seconds_ > 0;
  view_ = View();
  view_.kind = KindOf(now_);
  view_.slots_error = scrape.slots_error;
  for (const auto& [name, value] : now_.SumBy("vllm:num_requests_running", "model_name")) {
    view_.models.push_back(name);
  }
  ReadRequests(scrape.slots);
  ReadTotals();
  ReadMemory();
  ReadStalls();
  ReadPool();
  MeasureRequests();
  if (view_.decode_tok_s) {
    history_.push_back(*view_.decode_tok_s);
    if (history_.size() > kHistory) history_.pop_front();
  }
}

// Of a counter since the last look; nothing as well after it began anew.
Number TopState::Increase(std::string_view name) const {
  if (seconds_ <= 0) return std::nullopt;
  const Number increase = Minus(now_.Sum(name), before_.Sum(name));
  return increase.value_or(-1) < 0 ? std::nullopt : increase;
}

Number TopState::PerSecond(std::string_view name) const { return Ratio(Increase(name), seconds_); }

void TopState::ReadRequests(const std::vector<SlotsBody>& bodies) {
  for (const SlotsBody& slots : bodies) {
    boost::system::error_code error;
    const json::value value = json::parse(slots.body, error);
    const json::array* array = error ? nullptr : value.if_array();
    if (array == nullptr) continue;
    view_.lists_requests = true;
    std::string model = slots.model;
    if (model.empty() && view_.models.size() == 1) model = view_.models.front();
    for (const json::value& slot : *array) {
      if (std::optional<RequestRow> row = ReadSlot(slot, model)) {
        view_.requests.push_back(*std::move(row));
      }
    }
  }
  if (view_.kind == ServerKind::kUnknown && view_.lists_requests) {
    view_.kind = ServerKind::kLlamaServer;  // which has /metrics only if it was told so
  }
  std::stable_sort(view_.requests.begin(), view_.requests.end(),
                   [](const RequestRow& a, const RequestRow& b) { return a.order < b.order; });
}

void TopState::ReadTotals() {
  const auto with_phase = [&](bool queued) -> Number {
    if (!view_.lists_requests) return std::nullopt;
    return static_cast<double>(
        std::count_if(view_.requests.begin(), view_.requests.end(),
                      [&](const RequestRow& row) { return (row.phase == "queued") == queued; }));
  };
  view_.running =
      First(First(now_.Sum("vllm:num_requests_running"), now_.Sum("llamacpp:requests_processing")),
            with_phase(false));
  view_.waiting =
      First(First(now_.Sum("vllm:num_requests_waiting"), now_.Sum("llamacpp:requests_deferred")),
            with_phase(true));
  view_.prefill_tok_s =
      First(PerSecond("vllm:prompt_tokens_total"), PerSecond("llamacpp:prompt_tokens_total"));
  // llama-server counts when a request ends: its slots know sooner (MeasureRequests).
  if (view_.kind != ServerKind::kLlamaServer) {
    view_.decode_tok_s = PerSecond("vllm:generation_tokens_total");
  }
  view_.cache_hits =
      Ratio(now_.Sum("vllm:prefix_cache_hits_total"), now_.Sum("vllm:prefix_cache_queries_total"));
}

// The gauges are of the last second of work; without work nothing is read.
void TopState::ReadMemory() {
  if (view_.kind != ServerKind::kSluice) return;
  const Number steps = Increase("sluice:steps_total");
  view_.idle = steps && *steps == 0;
  const double active = view_.idle ? 0 : 1;
  const auto ceilings = now_.SumBy("sluice:node_read_ceiling_bytes_per_second", "node");
  for (const auto& [node, bytes_s] : now_.SumBy("sluice:node_read_bytes_per_second", "node")) {
    const auto ceiling = ceilings.find(node);
    view_.nodes.push_back(
        {node, bytes_s * active, ceiling == ceilings.end() ? 0 : ceiling->second});
  }
  std::stable_sort(view_.nodes.begin(), view_.nodes.end(), [](const auto& a, const auto& b) {
    return a.node.size() != b.node.size() ? a.node.size() < b.node.size() : a.node < b.node;
  });
  view_.read_ceiling_bytes_s = now_.Largest("sluice:read_bandwidth_bytes_per_second");
  if (view_.read_ceiling_bytes_s.value_or(0) <= 0) view_.read_ceiling_bytes_s.reset();
  if (!view_.nodes.empty()) {
    double read = 0;
    for (const NodeLoad& node : view_.nodes) read += node.read_bytes_s;
    view_.read_bytes_s = read;
  } else if (view_.idle) {
    view_.read_bytes_s = 0;
  } else {
    view_.read_bytes_s =
        Ratio(Increase("sluice:decode_read_bytes_total"), Increase("sluice:decode_seconds_total"));
  }
  view_.bandwidth = First(now_.Largest("sluice:bandwidth_ceiling_ratio"),
                          Ratio(view_.read_bytes_s, view_.read_ceiling_bytes_s));
  view_.compute = now_.Largest("sluice:compute_ceiling_ratio");
  if (view_.idle && view_.bandwidth) view_.bandwidth = 0;
  if (view_.idle && view_.compute) view_.compute = 0;
}

void TopState::ReadStalls() {
  if (seconds_ <= 0) return;
  const auto before = before_.SumBy("sluice:stall_seconds_total", "cause");
  double sum = 0;
  for (const auto& [cause, seconds] : now_.SumBy("sluice:stall_seconds_total", "cause")) {
    const auto old = before.find(cause);
    const double increase = old == before.end() ? 0 : seconds - old->second;
    if (increase <= 0) continue;
    view_.stalls.push_back({cause, increase});
    sum += increase;
  }
  for (StallShare& stall : view_.stalls) stall.share /= sum;
  std::stable_sort(view_.stalls.begin(), view_.stalls.end(),
                   [](const StallShare& a, const StallShare& b) { return a.share > b.share; });
}

void TopState::ReadPool() {
  const Number pages = now_.Sum("sluice:kv_pages"), kept = now_.Sum("sluice:kv_pages_kept");
  view_.kv_pages = pages;
  view_.kv_kept = Ratio(kept, pages);
  view_.kv_used = Ratio(Minus(Minus(pages, now_.Sum("sluice:kv_pages_free")), kept), pages);
  for (const char* name :
       {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "llamacpp:kv_cache_usage_ratio"}) {
    view_.kv_used = First(view_.kv_used, now_.Largest(name));
  }
  view_.major_faults = now_.Sum("sluice:major_faults_total");
  view_.major_faults_s = PerSecond("sluice:major_faults_total");
  view_.throttled = now_.Largest("sluice:throttled_periods_total");
  view_.throttled_s = PerSecond("sluice:throttled_periods_total");
  view_.preemptions = now_.Sum("vllm:num_preemptions_total");
  view_.preemptions_s = PerSecond("vllm:num_preemptions_total");
  view_.weights_resident = now_.Largest("sluice:weights_resident_ratio");
  view_.resident_bytes = now_.Sum("sluice:resident_bytes");
}

// Speeds of requests whose server only counts their tokens.
void TopState::MeasureRequests() {
  std::map<std::string, double> generated;
  Number sum;
  for (RequestRow& row : view_.requests) {
    if (!row.generated_tokens) continue;
    generated[row.key] = *row.generated_tokens;
    const auto before = generated_.find(row.key);
    if (row.decode_tok_s || before == generated_.end() || seconds_ <= 0) continue;
    row.decode_tok_s = std::max(0.0, *row.generated_tokens - before->second) / seconds_;
    sum = sum.value_or(0) + *row.decode_tok_s;
  }
  generated_ = std::move(generated);
  if (view_.decode_tok_s || seconds_ <= 0 || !view_.lists_requests) return;
  view_.decode_tok_s = sum.value_or(0);
}

namespace {

// Counts without a fraction or an exponent.
json::value OrNull(Number number) {
  if (!number) return nullptr;
  const bool whole = std::abs(*number) < 9e15 && *number == std::floor(*number);
  return whole ? json::value(static_cast<int64_t>(*number)) : json::value(*number);
}

json::object RowJson(const RequestRow& row) {
  return {{"request_id", row.request_id},
          {"name", row.name},
          {"model", row.model},
          {"phase", row.phase},
          {"slot", OrNull(row.slot)},
          {"prompt_tokens", OrNull(row.prompt_tokens)},
          {"cached_tokens", OrNull(row.cached_tokens)},
          {"processed_tokens", OrNull(row.processed_tokens)},
          {"generated_tokens", OrNull(row.generated_tokens)},
          {"max_tokens", OrNull(row.max_tokens)},
          {"queue_s", OrNull(row.queue_s)},
          {"prefill_s", OrNull(row.prefill_s)},
          {"decode_s", OrNull(row.decode_s)},
          {"prefill_tok_s", OrNull(row.prefill_tok_s)},
          {"decode_tok_s", OrNull(row.decode_tok_s)},
          {"ceiling_ratio", OrNull(row.ceiling)}};
}

}  // namespace

json::object ViewJson(const View& view) {
  json::array models, requests, nodes;
  for (const std::string& model : view.models) models.emplace_back(model);
  for (const RequestRow& row : view.requests) requests.push_back(RowJson(row));
  for (const NodeLoad& node : view.nodes) {
    nodes.push_back({{"node", node.node},
                     {"read_bytes_per_second", node.read_bytes_s},
                     {"read_ceiling_bytes_per_second", node.ceiling_bytes_s}});
  }
  json::object stalls;
  for (const StallShare& stall : view.stalls) stalls[stall.cause] = stall.share;
  return {{"server", ServerKindName(view.kind)},
          {"models", std::move(models)},
          {"running", OrNull(view.running)},
          {"waiting", OrNull(view.waiting)},
          {"decode_tok_s", OrNull(view.decode_tok_s)},
          {"prefill_tok_s", OrNull(view.prefill_tok_s)},
          {"read_bytes_per_second", OrNull(view.read_bytes_s)},
          {"read_ceiling_bytes_per_second", OrNull(view.read_ceiling_bytes_s)},
          {"bandwidth_ceiling_ratio", OrNull(view.bandwidth)},
          {"compute_ceiling_ratio", OrNull(view.compute)},
          {"nodes", std::move(nodes)},
          {"stall_shares", std::move(stalls)},
          {"kv_pages", OrNull(view.kv_pages)},
          {"kv_used_ratio", OrNull(view.kv_used)},
          {"kv_kept_ratio", OrNull(view.kv_kept)},
          {"cache_hit_ratio", OrNull(view.cache_hits)},
          {"major_faults_total", OrNull(view.major_faults)},
          {"major_faults_per_second", OrNull(view.major_faults_s)},
          {"throttled_periods_total", OrNull(view.throttled)},
          {"throttled_periods_per_second", OrNull(view.throttled_s)},
          {"preemptions_total", OrNull(view.preemptions)},
          {"weights_resident_ratio", OrNull(view.weights_resident)},
          {"resident_bytes", OrNull(view.resident_bytes)},
          {"requests", std::move(requests)}};
}

}  // namespace sluice::top
