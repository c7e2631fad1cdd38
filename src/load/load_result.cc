#include "src/load/load_result.h"

#include <cmath>
#include <cstdio>

#include "src/base/printable.h"

namespace sluice::load {

namespace json = boost::json;

namespace {

constexpr const char* kFormat = "sluice-load-1";

json::object InMilliseconds(const Distribution& d) {
  return {{"count", d.count},     {"mean", 1e3 * d.mean}, {"sd", 1e3 * d.deviation},
          {"min", 1e3 * d.least}, {"p50", 1e3 * d.p50},   {"p90", 1e3 * d.p90},
          {"p95", 1e3 * d.p95},   {"p99", 1e3 * d.p99},   {"p99.9", 1e3 * d.p999},
          {"max", 1e3 * d.most}};
}

json::object Plain(const Distribution& d) {
  return {{"mean", d.mean}, {"min", d.least}, {"p50", d.p50}, {"max", d.most}};
}

// f("name", member) for what a request's JSON has, whichever way it goes; `Sample` may be const.
template <class Sample, class F>
void ForFields(Sample& s, const F& f) {
  f("index", s.index);
  f("intended_s", s.intended_s);
  f("sent_s", s.sent_s);
  f("end_s", s.end_s);
  f("prompt_asked", s.prompt_asked);
  f("output_asked", s.output_asked);
  f("prompt_tokens", s.prompt_tokens);
  f("output_tokens", s.output_tokens);
  f("cached_tokens", s.cached_tokens);
  f("counted", s.counted);
}

// The same of a whole result.
template <class Whole, class F>
void ForTexts(Whole& r, const F& f) {
  f("version", r.version);
  f("time", r.time);
  f("url", r.url);
  f("dialect", r.dialect);
  f("model", r.model);
  f("prompts", r.prompts);
}

json::object RequestJson(const LoadSample& s) {
  json::object o;
  ForFields(s, [&](const char* name, const auto& value) { o[name] = value; });
  o["text_s"] = json::array(s.text_s.begin(), s.text_s.end());
  if (!s.ok()) {
    o["error"] = s.error;
    o["detail"] = s.detail;
  }
  return o;
}

json::value Rate(double rate) { return std::isinf(rate) ? json::value("inf") : json::value(rate); }

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

// Members of what may be any JSON.
const json::value* Find(const json::object& o, std::string_view key) { return o.if_contains(key); }
double Number(const json::object& o, std::string_view key) {
  const json::value* v = Find(o, key);
  return v != nullptr && v->is_number() ? v->to_number<double>() : 0;
}
size_t Count(const json::object& o, std::string_view key) {
  const double n = Number(o, key);
  return n > 0 && n < 1e15 ? static_cast<size_t>(n) : 0;
}
std::string String(const json::object& o, std::string_view key) {
  const json::value* v = Find(o, key);
  return v != nullptr && v->is_string() ? std::string(v->get_string()) : std::string();
}
bool Bool(const json::object& o, std::string_view key) {
  const json::value* v = Find(o, key);
  return v != nullptr && v->is_bool() && v->get_bool();
}

void Read(const json::object& o, std::string_view key, double* to) { *to = Number(o, key); }
void Read(const json::object& o, std::string_view key, size_t* to) { *to = Count(o, key); }
void Read(const json::object& o, std::string_view key, bool* to) { *to = Bool(o, key); }

LoadSample SampleOf(const json::object& o) {
  LoadSample s;
  ForFields(s, [&](const char* name, auto& value) { Read(o, name, &value); });
  s.error = String(o, "error");
  s.detail = String(o, "detail");
  if (const json::value* times = Find(o, "text_s"); times != nullptr && times->is_array()) {
    for (const json::value& t : times->get_array()) {
      if (t.is_number()) s.text_s.push_back(t.to_number<double>());
    }
  }
  if (s.ok() && s.text_s.empty()) s.error = "no text";
  return s;
}

}  // namespace

std::string LoadStep::Name() const {
  char text[64];
  if (!open) {
    std::snprintf(text, sizeof(text), "%zu client%s", clients, clients == 1 ? "" : "s");
  } else if (std::isinf(rate)) {
    std::snprintf(text, sizeof(text), "all at once");
  } else if (rate == 0) {
    std::snprintf(text, sizeof(text), "trace");
  } else {
    std::snprintf(text, sizeof(text), "%.4g req/s", rate);
  }
  return text;
}

json::object SummaryJson(const LoadSummary& s, bool slo) {
  json::object errors;
  for (const auto& [kind, error] : s.errors) {
    errors[kind] = json::object{{"count", error.count}, {"first", error.first}};
  }
  json::object o{{"requests", s.requests},
                 {"ok", s.ok},
                 {"failed", s.failed},
                 {"unfinished", s.unfinished},
                 {"errors", std::move(errors)},
                 {"duration_s", s.duration_s},
                 {"offered_req_s", s.offered},
                 {"achieved_req_s", s.achieved},
                 {"kept_up", s.kept_up},
                 {"output_tok_s", s.output_tok_s},
                 {"prompt_tok_s", s.prompt_tok_s},
                 {"ttft_ms", InMilliseconds(s.ttft)},
                 {"tpot_ms", InMilliseconds(s.tpot)},
                 {"itl_ms", InMilliseconds(s.itl)},
                 {"e2e_ms", InMilliseconds(s.e2e)},
                 {"ttft_from_send_ms", InMilliseconds(s.ttft_sent)},
                 {"e2e_from_send_ms", InMilliseconds(s.e2e_sent)},
                 {"send_lag_ms", InMilliseconds(s.send_lag)},
                 {"prompt_tokens", Plain(s.prompt_tokens)},
                 {"output_tokens", Plain(s.output_tokens)},
                 {"prompt_tokens_asked", s.prompt_asked},
                 {"output_tokens_asked", s.output_asked},
                 {"cached_tokens", s.cached_tokens},
                 {"tokens_counted_by_server", s.counted},
                 {"mean_in_flight", s.mean_running},
                 {"most_in_flight", s.most_running}};
  if (slo) {
    o["good"] = s.good;
    o["goodput_req_s"] = s.goodput;
    o["slo_attainment"] = s.attainment();
  }
  return o;
}

json::object ResultJson(const LoadResult& r, bool with_requests) {
  json::array steps;
  for (const LoadStep& step : r.steps) {
    json::object o{{"name", step.Name()},
                   {"mode", step.open ? "open" : "closed"},
                   {"rate", Rate(step.rate)},
                   {"clients", step.clients},
                   {"connections", step.connections},
                   {"summary", SummaryJson(step.summary, r.slo.any())}};
    if (with_requests) {
      json::array requests;
      for (const LoadSample& s : step.samples) requests.push_back(RequestJson(s));
      o["requests"] = std::move(requests);
    }
    steps.push_back(std::move(o));
  }
  json::object o{{"format", kFormat}};
  ForTexts(r, [&](const char* name, const std::string& text) { o[name] = text; });
  o["settings"] = r.settings;
  o["slo"] = r.slo.Text();
  o["notes"] = json::array(r.notes.begin(), r.notes.end());
  o["interrupted"] = r.interrupted;
  if (!r.knee_reason.empty()) {
    o["knee"] = json::object{{"rate", r.knee_rate}, {"reason", r.knee_reason}};
  }
  o["steps"] = std::move(steps);
  return o;
}

std::string ResultCsv(const LoadResult& result) {
  std::string out =
      "step,index,intended_s,sent_s,end_s,ttft_ms,tpot_ms,e2e_ms,prompt_asked,prompt_tokens,"
      "cached_tokens,output_asked,output_tokens,events,good,error\n";
  char line[400];
  for (const LoadStep& step : result.steps) {
    for (const LoadSample& s : step.samples) {
      std::string latencies = ",,";
      if (s.ok()) {
        std::snprintf(line, sizeof(line), "%.6f,%.6f,%.6f", 1e3 * s.ttft_s(), 1e3 * s.tpot_s(),
                      1e3 * s.e2e_s());
        latencies = line;
        if (s.tpot_s() < 0) {
          std::snprintf(line, sizeof(line), "%.6f,,%.6f", 1e3 * s.ttft_s(), 1e3 * s.e2e_s());
          latencies = line;
        }
      }
      std::snprintf(line, sizeof(line), ",%zu,%.6f,%.6f,%.6f,", s.index, s.intended_s, s.sent_s,
                    s.end_s);
      out += Quoted(step.Name()) + line + latencies;
      std::snprintf(line, sizeof(line), ",%zu,%zu,%zu,%zu,%zu,%zu,%d,", s.prompt_asked,
                    s.prompt_tokens, s.cached_tokens, s.output_asked, s.output_tokens,
                    s.text_s.size(), result.slo.Met(s) ? 1 : 0);
      out += line + (s.ok() ? std::string() : Quoted(s.error)) + "\n";
    }
  }
  return out;
}

Result<LoadResult> ParseResult(const std::string& name, const std::string& text) {
  const Status wrong(StatusCode::kInvalidArgument,
                     name + ": expected a result that sluice load wrote with --output FILE.json");
  boost::system::error_code error;
  const json::value v = json::parse(text, error);
  if (error || !v.is_object() || String(v.get_object(), "format") != kFormat) return wrong;
  const json::object& o = v.get_object();
  LoadResult r;
  ForTexts(r, [&](const char* name, std::string& text) { text = String(o, name); });
  if (const json::value* s = Find(o, "settings"); s && s->is_object()) r.settings = s->get_object();
  if (const std::string slo = String(o, "slo"); !slo.empty()) {
    ASSIGN_OR_RETURN(r.slo, ParseSlo(slo));
  }
  const json::value* steps = Find(o, "steps");
  if (steps == nullptr || !steps->is_array()) return wrong;
  for (const json::value& each : steps->get_array()) {
    if (!each.is_object()) return wrong;
    const json::object& from = each.get_object();
    LoadStep step;
    step.open = String(from, "mode") == "open";
    step.rate = String(from, "rate") == "inf" ? INFINITY : Number(from, "rate");
    step.clients = Count(from, "clients");
    step.connections = Count(from, "connections");
    const json::value* requests = Find(from, "requests");
    if (requests == nullptr || !requests->is_array()) return wrong;
    for (const json::value& request : requests->get_array()) {
      if (!request.is_object()) return wrong;
      step.samples.push_back(SampleOf(request.get_object()));
    }
    step.summary = Summarise(step.samples, r.slo);
    r.steps.push_back(std::move(step));
  }
  return r;
}

}  // namespace sluice::load
