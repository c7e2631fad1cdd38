#include "cli/plan_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/ink.h"
#include "cli/progress.h"
#include "cli/wrap.h"
#include "src/base/printable.h"
#include "src/engine/bench_statistics.h"

namespace sluice {
namespace {

std::string Bytes(double bytes) { return HumanBytes(static_cast<uint64_t>(std::max(0.0, bytes))); }

// "1.2M", "1234", "56.7", "3.21"; "-" for what is not known.
std::string Rate(double value) {
  if (!(value > 0) || !std::isfinite(value)) return "-";
  if (value >= 999999.5) return Text("%.1fM", 1e-6 * value);
  return Text(value >= 1000 ? "%.0f" : value >= 10 ? "%.1f" : "%.2f", value);
}

constexpr size_t kLabelColumns = 12;

void Line(const Ink& ink, const char* label, const std::string& text) {
  const size_t indent = kLabelColumns + 1;
  std::printf("%s%-*s%s %s\n", ink.dim, static_cast<int>(kLabelColumns), label, ink.plain,
              Wrapped(text, indent, ColumnsOf(stdout)).c_str());
}

std::string Of(const char* what, const std::string& text, const char* colour, const char* plain) {
  return std::string(colour) + text + plain + what;
}

void PrintMemory(const PlanReport& r, const Ink& ink) {
  const MemoryPlan& m = r.memory;
  const bool known = m.room_bytes < 1e15;
  Line(ink, "memory",
       Of(" resident: ", Bytes(m.resident_bytes), ink.strong, ink.plain) + "weights " +
           Bytes(m.weights_bytes) + ", KV " +
           Bytes(m.resident_bytes - m.weights_bytes - m.workspace_bytes - m.program_bytes) +
           ", a pass " + Bytes(m.workspace_bytes) + ", the rest about " + Bytes(m.program_bytes));
  if (known) {
    const double share = m.resident_bytes / m.room_bytes;
    std::string text = ink.Bar(share, 32) + Text(" %.0f %% of ", 100 * share) +
                       Bytes(m.room_bytes) + (m.fits() ? "" : ": does not fit");
    if (r.available_bytes > 0) text += ", " + Bytes(r.available_bytes) + " free now";
    Line(ink, "", text);
  }
  std::string kv = Text("%.4g KiB", m.kv_token_bytes / 1024) + " a token (" +
                   KvTypeName(r.workload.kv_type) + "), " + Bytes(m.kv_sequence_bytes) +
                   Text(" a sequence of %zu", r.workload.positions());
  if (known) kv += Text("; %zu fit beside the rest", m.sequences_fit);
  Line(ink, "KV", kv);
}

void PrintPrediction(const PlanReport& r, const Ink& ink) {
  const Prediction& p = r.prediction;
  const Workload& w = r.workload;
  const auto range = [&](double now, double best) {
    const bool same = best >= now * 0.995;
    return HumanSeconds(now) + (same ? "" : " (" + HumanSeconds(best) + " at the machine's best)");
  };
  Line(ink, "TTFT",
       Of(" = ", range(p.ttft_s, r.best.ttft_s), ink.strong, ink.plain) +
           (p.queue_s > 0 ? "queue " + HumanSeconds(p.queue_s) + " + " : "") +
           std::to_string(w.prompt) + " tokens at " + Rate(p.prefill_tok_s) + " tok/s" +
           (w.concurrency > 1 ? "; the last of " + std::to_string(w.concurrency) + " after " +
                                    HumanSeconds(p.last_ttft_s)
                              : ""));
  if (w.output > 1) {
    Line(ink, "per token",
         Of("", range(p.token_s, r.best.token_s), ink.strong, ink.plain) + ", " +
             Rate(1 / p.token_s) + " tok/s" + (w.concurrency > 1 ? " each" : ""));
  }
  Line(ink, "total",
       HumanSeconds(p.total_s) + Text(" for %zu x %zu tokens", w.concurrency, w.output));
  const double step = p.step_s > 0 ? p.step_s : 1;
  std::string parts = "weights " + HumanSeconds(p.step.weights_s) + ", attention " +
                      HumanSeconds(p.step.attention_s) + ", rows " + HumanSeconds(p.step.rows_s) +
                      ", barriers " + HumanSeconds(p.step.barriers_s);
  Line(ink, "a step",
       HumanSeconds(p.step_s) + (r.here ? ": " + parts : "") + "; reads " +
           TrafficBytes(p.bytes_per_step) + " = " + Rate(1e-9 * p.bytes_per_step / step) + " GB/s");
  const double roof = r.best.decode_roof_tok_s;
  Line(ink, "ceiling",
       "decode " + Rate(roof) + " tok/s (" +
           (p.decode_compute_binds ? "arithmetic" : Rate(r.good.read_gb_s) + " GB/s") +
           (r.here ? ", this machine's best" : "") + "), expected " +
           Of("", Text("%.0f %%", 100 * p.decode_tok_s / roof), ink.good, ink.plain) +
           "; prefill " + Rate(r.best.prefill_roof_tok_s) + " tok/s, expected " +
           Text("%.0f %%", 100 * p.prefill_tok_s / r.best.prefill_roof_tok_s));
}

void PrintRows(const char* title, const std::vector<PlanRow>& rows, const Ink& ink) {
  if (rows.empty()) return;
  double most = 0;
  size_t wide = 10;
  for (const PlanRow& row : rows) {
    most = std::max(most, row.prediction.decode_tok_s);
    wide = std::max(wide, row.label.size());
  }
  const int width = static_cast<int>(wide);
  constexpr int kOthers = 56, kBar = 14;  // columns
  const int bar = std::clamp(static_cast<int>(ColumnsOf(stdout)) - kOthers - width, 0, kBar);
  std::printf("\n%s%-*s %10s %6s %7s %10s %16s%s\n", ink.dim, width, title, "resident", "seqs",
              "prefill", "TTFT", "decode tok/s", ink.plain);
  std::printf("%s%-*s %10s %6s %7s %10s %8s %7s%s\n", ink.dim, width, "", "", "fit", "tok/s", "",
              "expected", "ceiling", ink.plain);
  for (const PlanRow& row : rows) {
    const Prediction& p = row.prediction;
    const MemoryPlan& m = row.memory;
    const std::string fit = m.room_bytes >= 1e15 ? "-"
                            : m.sequences_fit < 1000000
                                ? std::to_string(m.sequences_fit)
                                : Rate(static_cast<double>(m.sequences_fit));
    std::printf("%s%-*s %10s %s%6s%s %7s %10s %8s %7s  %s%s%s\n", row.current ? ink.strong : "",
                width, row.label.c_str(), Bytes(m.resident_bytes).c_str(), m.fits() ? "" : ink.poor,
                m.fits() ? fit.c_str() : "no", row.current ? ink.strong : ink.plain,
                Rate(p.prefill_tok_s).c_str(), HumanSeconds(p.ttft_s).c_str(),
                Rate(p.decode_tok_s).c_str(), Rate(p.decode_roof_tok_s).c_str(), ink.good,
                ink.Bar(p.decode_tok_s / most, bar).c_str(), ink.plain);
  }
}

boost::json::object WorkloadJson(const Workload& w) {
  return {{"prompt", w.prompt},
          {"output", w.output},
          {"concurrency", w.concurrency},
          {"max_num_seqs", w.max_sequences > 0 ? w.max_sequences : w.concurrency},
          {"context", w.positions()},
          {"chunk", w.chunk},
          {"max_stall_ms", 1e3 * w.max_stall_s},
          {"kv_type", KvTypeName(w.kv_type)}};
}

// Not a number where nothing is known of a device's arithmetic.
boost::json::value Known(double value) {
  if (!std::isfinite(value) || value <= 0) return nullptr;
  return value;
}

boost::json::object PredictionJson(const Prediction& p) {
  return {{"ttft_s", Known(p.ttft_s)},
          {"last_ttft_s", Known(p.last_ttft_s)},
          {"queue_s", p.queue_s},
          {"prefill_s", Known(p.prefill_s)},
          {"token_s", p.token_s},
          {"total_s", p.total_s},
          {"step_s", p.step_s},
          {"step", boost::json::object{{"weights_s", p.step.weights_s},
                                       {"attention_s", p.step.attention_s},
                                       {"rows_s", p.step.rows_s},
                                       {"barriers_s", p.step.barriers_s}}},
          {"decode_tok_s", Known(p.decode_tok_s)},
          {"decode_ceiling_tok_s", Known(p.decode_roof_tok_s)},
          {"decode_bound_by", p.decode_compute_binds ? "compute" : "bandwidth"},
          {"prefill_tok_s", Known(p.prefill_tok_s)},
          {"prefill_ceiling_tok_s", Known(p.prefill_roof_tok_s)},
          {"bytes_per_step", p.bytes_per_step},
          {"weight_bytes_per_step", p.weight_bytes_per_step},
          {"macs_per_step", p.macs_per_step}};
}

boost::json::object MemoryJson(const MemoryPlan& m) {
  const bool known = m.room_bytes < 1e15;
  return {{"resident_bytes", static_cast<uint64_t>(m.resident_bytes)},
          {"weights_bytes", static_cast<uint64_t>(m.weights_bytes)},
          {"workspace_bytes", static_cast<uint64_t>(m.workspace_bytes)},
          {"program_bytes", static_cast<uint64_t>(m.program_bytes)},
          {"kv_bytes_per_token", static_cast<uint64_t>(m.kv_token_bytes)},
          {"kv_bytes_per_sequence", static_cast<uint64_t>(m.kv_sequence_bytes)},
          {"room_bytes", known ? boost::json::value(static_cast<uint64_t>(m.room_bytes)) : nullptr},
          {"sequences_fit", known ? boost::json::value(m.sequences_fit) : nullptr},
          {"fits", m.fits()}};
}

boost::json::array RowsJson(const std::vector<PlanRow>& rows, const char* label) {
  boost::json::array list;
  for (const PlanRow& row : rows) {
    boost::json::object o{{label, row.label}};
    o["memory"] = MemoryJson(row.memory);
    o["prediction"] = PredictionJson(row.prediction);
    list.push_back(std::move(o));
  }
  return list;
}

// The bandwidth measured now, and what earlier measurements say of it.
std::string ReadsNow(const PlanReport& r) {
  constexpr double kAlike = 0.98, kDisturbed = 0.75;
  const double now = r.now.read_gb_s, best = r.good.read_gb_s;
  std::string text = Text(", reads %.1f GB/s now", now);
  if (now < kAlike * best) text += Text(", %.1f at its best", best);
  if (now < kDisturbed * best) text += ": something disturbs it (sluice doctor)";
  return text;
}

}  // namespace

void PrintPlan(const PlanReport& r) {
  const Ink ink = Ink::For(stdout);
  const Workload& w = r.workload;
  Line(ink, "model", Printable(r.model, 4096) + ", " + r.quantisation);
  Line(ink, "on",
       Of("", r.where, ink.strong, ink.plain) +
           (r.here ? ReadsNow(r)
                   : Text(", %.0f GB/s published; expected: %.0f %% of it, %.0f %% of "
                          "its arithmetic",
                          r.good.read_gb_s, 100 * kDeviceReadShare, 100 * kDeviceComputeShare)));
  Line(ink, "work",
       Text("%zu request%s, prompt %zu, output %zu", w.concurrency,
            w.concurrency == 1 ? "" : "s at once", w.prompt, w.output));
  PrintMemory(r, ink);
  PrintPrediction(r, ink);
  PrintRows("context", r.contexts, ink);
  PrintRows("format", r.formats, ink);
  PrintRows("on", r.devices, ink);
}

boost::json::object PlanJson(const PlanReport& r) {
  boost::json::object o{{"model", Printable(r.model, 4096)},
                        {"quantisation", r.quantisation},
                        {"on", r.where},
                        {"measured", r.here},
                        {"read_gb_s", r.now.read_gb_s},
                        {"read_gb_s_p95", r.good.read_gb_s}};
  o["workload"] = WorkloadJson(r.workload);
  o["memory"] = MemoryJson(r.memory);
  o["prediction"] = PredictionJson(r.prediction);
  o["best"] = PredictionJson(r.best);
  o["contexts"] = RowsJson(r.contexts, "context");
  o["formats"] = RowsJson(r.formats, "format");
  if (!r.devices.empty()) o["devices"] = RowsJson(r.devices, "device");
  return o;
}

// ---- Advice -------------------------------------------------------------------------------------

void PrintAdvice(const PlanReport& r, const Goal& goal, const std::vector<Advice>& advice) {
  const Ink ink = Ink::For(stdout);
  const Workload& w = r.workload;
  std::string wanted;
  if (goal.ttft_s) wanted = "TTFT of everybody within " + HumanSeconds(*goal.ttft_s);
  if (goal.token_s) {
    wanted += (wanted.empty() ? "" : ", ") + Rate(1 / *goal.token_s) + " tok/s for each";
  }
  Line(ink, "goal",
       Of("", wanted, ink.strong, ink.plain) +
           Text(": %zu request%s at once, prompt %zu, output %zu", w.concurrency,
                w.concurrency == 1 ? "" : "s", w.prompt, w.output) +
           (w.context > w.prompt + w.output ? Text(", context %zu", w.context) : ""));
  Line(ink, "on", r.where + (r.here ? ReadsNow(r) : ""));
  const auto print = [&](const Advice& a) {
    const char* mark = a.meets() ? (ink.terminal ? "✔" : "yes") : (ink.terminal ? "✘" : "no ");
    constexpr size_t kChange = 38;  // the column where it begins
    const std::string change = a.change + (a.memory.fits() ? "" : " (does not fit)");
    std::printf("%s%s%s%s %10s  %8s  %10s  %s\n", a.meets() ? ink.good : ink.poor, mark, ink.plain,
                ink.terminal ? "  " : "", HumanSeconds(a.prediction.last_ttft_s).c_str(),
                Rate(1 / a.prediction.token_s).c_str(), Bytes(a.memory.resident_bytes).c_str(),
                Wrapped(change, kChange, ColumnsOf(stdout)).c_str());
  };
  std::printf("\n%s    %10s  %8s  %10s  change%s\n", ink.dim, "TTFT", "tok/s", "resident",
              ink.plain);
  std::printf("%s    %10s  %8s%s\n", ink.dim, "of all", "of each", ink.plain);
  print(advice[0]);
  if (advice[0].meets()) {
    std::printf("%sThe goal is met as it is.%s\n", ink.dim, ink.plain);
    return;
  }
  if (advice.size() == 1) {
    std::printf("%sNo single change of settings, format or a known machine comes nearer.%s\n",
                ink.dim, ink.plain);
    return;
  }
  std::printf("%schanges that help:%s\n", ink.dim, ink.plain);
  for (size_t i = 1; i < advice.size(); ++i) print(advice[i]);
}

boost::json::array AdviceJson(const std::vector<Advice>& advice) {
  boost::json::array list;
  for (const Advice& a : advice) {
    boost::json::object o{
        {"what", a.what}, {"change", a.change}, {"meets", a.meets()}, {"distance", a.distance}};
    o["prediction"] = PredictionJson(a.prediction);
    o["memory"] = MemoryJson(a.memory);
    list.push_back(std::move(o));
  }
  return list;
}

// ---- Check --------------------------------------------------------------------------------------

CheckSummary Summarise(const std::vector<CheckSample>& samples) {
  CheckSummary s;
  std::vector<double> predicted_ttft, ttft, predicted_token, token, ttft_error, token_error, read;
  for (const CheckSample& c : samples) {
    predicted_ttft.push_back(c.predicted.ttft_s);
    ttft.push_back(c.ttft_s);
    ttft_error.push_back(c.predicted.ttft_s / c.ttft_s - 1);
    predicted_token.push_back(c.predicted.token_s);
    token.push_back(c.token_s);
    token_error.push_back(c.token_s > 0 ? c.predicted.token_s / c.token_s - 1 : 0);
    read.push_back(c.read_gb_s);
  }
  s.pairs = samples.size();
  s.predicted_ttft_s = Median(predicted_ttft);
  s.ttft_s = Median(ttft);
  s.ttft_error = Median(ttft_error);
  s.predicted_token_s = Median(predicted_token);
  s.token_s = Median(token);
  s.token_error = Median(token_error);
  s.read_gb_s = Median(read);
  return s;
}

void PrintCheck(const Workload& w, const CheckSummary& s) {
  const Ink ink = Ink::For(stdout);
  std::printf("%s%zu request%s, prompt %zu, output %zu; medians of %zu pairs, %.1f GB/s%s\n",
              ink.dim, w.concurrency, w.concurrency == 1 ? "" : "s at once", w.prompt, w.output,
              s.pairs, s.read_gb_s, ink.plain);
  std::printf("%s            predicted   measured   error of a pair%s\n", ink.dim, ink.plain);
  const auto print = [&](const char* label, double predicted, double measured, double error,
                         double allowed) {
    std::printf("%-10s %10s %10s  %s%+6.1f %%%s\n", label, HumanSeconds(predicted).c_str(),
                HumanSeconds(measured).c_str(), std::fabs(error) <= allowed ? ink.good : ink.poor,
                100 * error, ink.plain);
  };
  print("TTFT", s.predicted_ttft_s, s.ttft_s, s.ttft_error, 0.15);
  if (w.output > 1) print("per token", s.predicted_token_s, s.token_s, s.token_error, 0.10);
}

boost::json::object CheckJson(const Workload& w, const CheckSummary& s,
                              const std::vector<CheckSample>& samples) {
  boost::json::object o{{"pairs", s.pairs},
                        {"read_gb_s", s.read_gb_s},
                        {"predicted_ttft_s", s.predicted_ttft_s},
                        {"ttft_s", s.ttft_s},
                        {"ttft_error", s.ttft_error},
                        {"predicted_token_s", s.predicted_token_s},
                        {"token_s", s.token_s},
                        {"token_error", s.token_error}};
  o["workload"] = WorkloadJson(w);
  boost::json::array list;
  for (const CheckSample& c : samples) {
    list.push_back(boost::json::object{{"predicted_ttft_s", c.predicted.ttft_s},
                                       {"ttft_s", c.ttft_s},
                                       {"last_ttft_s", c.last_ttft_s},
                                       {"predicted_token_s", c.predicted.token_s},
                                       {"token_s", c.token_s},
                                       {"total_s", c.total_s},
                                       {"predicted_step", PredictionJson(c.predicted).at("step")},
                                       {"read_gb_s", c.read_gb_s}});
  }
  o["samples"] = std::move(list);
  return o;
}

}  // namespace sluice
