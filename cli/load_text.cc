// `sluice load` as text.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cli/load_report.h"
#include "cli/wrap.h"
#include "src/base/printable.h"

namespace sluice::load {
namespace {

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kGreen = "\x1b[32m";
constexpr const char* kPlain = "\x1b[0m";
constexpr size_t kBars = 12;
constexpr size_t kLatencyColumns = 79;  // of the table of latencies, without bars

template <class... T>
std::string Printf(const char* format, T... values) {
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

std::string In(bool colour, const char* code, const std::string& text) {
  return colour ? code + text + kPlain : text;
}

// Four digits or so.
std::string Number(double v) {
  const double size = std::fabs(v);
  return Printf(size < 9.995 ? "%.3f" : size < 99.95 ? "%.2f" : size < 999.5 ? "%.1f" : "%.0f", v);
}

// Where the values lie between the least and the p99, as twelve bars.
std::string Bars(std::vector<double> values) {
  static const char* const kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.size() < kBars) return "";
  std::sort(values.begin(), values.end());
  const double low = values.front(), high = Percentile(values, 0.99);
  if (high <= low) return "";
  std::vector<size_t> counts(kBars);
  for (const double v : values) {
    if (v > high) break;
    const auto bar = static_cast<size_t>((v - low) / (high - low) * kBars);
    ++counts[std::min(bar, kBars - 1)];
  }
  const size_t most = *std::max_element(counts.begin(), counts.end());
  std::string text;
  for (const size_t n : counts) text += kBlocks[(n * 8 + most - 1) / most];
  return text;
}

std::string LatencyRow(const char* name, const Distribution& d, const std::string& bars,
                       const char* code) {
  if (d.count == 0) return Printf("%-16s no values\n", name);
  std::string row = Printf("%-16s", name);
  for (const double v : {d.mean, d.p50, d.p90, d.p95, d.p99, d.p999, d.most}) {
    row += Printf(" %8s", Number(1e3 * v).c_str());
  }
  if (code != nullptr) row = code + row + kPlain;
  return row + (bars.empty() ? "" : "  " + bars) + "\n";
}

std::vector<double> Collect(const LoadStep& step, double (*value)(const LoadSample&)) {
  std::vector<double> values;
  for (const LoadSample& s : step.samples) {
    if (s.ok() && value(s) >= 0) values.push_back(value(s));
  }
  return values;
}

std::string Latencies(const LoadStep& step, bool colour) {
  const LoadSummary& s = step.summary;
  std::string head = Printf("%-16s", "milliseconds");
  for (const char* name : {"mean", "p50", "p90", "p95", "p99", "p99.9", "max"}) {
    head += Printf(" %8s", name);
  }
  std::string out = In(colour, kBold, head) + "\n";
  const bool wide = colour && ColumnsOf(stdout) > kLatencyColumns + 2 + kBars;
  const auto bars = [&](double (*value)(const LoadSample&)) {
    return wide ? Bars(Collect(step, value)) : std::string();
  };
  std::vector<double> gaps;
  for (const LoadSample& sample : step.samples) {
    for (size_t i = 1; wide && sample.ok() && i < sample.text_s.size(); ++i) {
      gaps.push_back(sample.text_s[i] - sample.text_s[i - 1]);
    }
  }
  const char* dim = colour ? kDim : nullptr;
  out += LatencyRow("TTFT", s.ttft, bars([](const LoadSample& x) { return x.ttft_s(); }), nullptr);
  if (step.open) out += LatencyRow("  from sending", s.ttft_sent, "", dim);
  out += LatencyRow("TPOT", s.tpot, bars([](const LoadSample& x) { return x.tpot_s(); }), nullptr);
  out += LatencyRow("ITL", s.itl, Bars(std::move(gaps)), nullptr);
  out += LatencyRow("E2E", s.e2e, bars([](const LoadSample& x) { return x.e2e_s(); }), nullptr);
  if (step.open) out += LatencyRow("  from sending", s.e2e_sent, "", dim);
  return out;
}

std::string Errors(const LoadSummary& s, bool colour) {
  std::string out;
  for (const auto& [kind, error] : s.errors) {
    out += In(colour, kRed, Printf("failed     %zu x ", error.count) + Printable(kind)) +
           (error.first.empty() ? "" : ": " + Printable(error.first, 160)) + "\n";
  }
  if (s.unfinished > 0) {
    out += Printf("unfinished %zu requests were cut off by the end of the run\n", s.unfinished);
  }
  return out;
}

}  // namespace

std::string LoadHead(const LoadResult& r, bool colour) {
  std::string out = In(colour, kBold, Printable(r.url, 200)) + ", " + r.dialect +
                    (r.model.empty() ? "" : ", model " + Printable(r.model)) + "\n" + r.prompts +
                    "\n";
  for (const std::string& note : r.notes) out += "note: " + note + "\n";
  return out;
}

std::string LoadStepText(const LoadStep& step, const Slo& slo, bool colour) {
  const LoadSummary& s = step.summary;
  const std::string rate =
      step.open
          ? ", open loop" +
                (step.clients > 0 ? Printf(", at most %zu in flight", step.clients) : std::string())
          : ", closed loop";
  std::string out =
      "\n" + In(colour, kBold, step.Name()) + rate +
      Printf(": %zu requests, %zu answered in %.2f s\n\n", s.requests, s.ok, s.duration_s);
  if (s.ok > 0) {
    out += Latencies(step, colour) + "\n";
    out += Printf("rate       %s answers a second", Number(s.achieved).c_str());
    if (s.offered > 0 && step.open) {
      out += Printf(", %s due; %.0f %% of what arrived was answered meanwhile",
                    Number(s.offered).c_str(), 100 * s.kept_up);
    }
    out += Printf("\ntokens     %s output a second, %s of prompts", Number(s.output_tok_s).c_str(),
                  Number(s.prompt_tok_s).c_str());
    out += Printf("\nper answer %s prompt tokens, %s output tokens",
                  Number(s.prompt_tokens.mean).c_str(), Number(s.output_tokens.mean).c_str());
    if (s.prompt_asked > 0) {
      out += Printf(" (%s and %s asked for)", Number(s.prompt_asked).c_str(),
                    Number(s.output_asked).c_str());
    } else {
      out += Printf(" (%s asked for)", Number(s.output_asked).c_str());
    }
    out += s.counted ? ", as the server counts" : "; not counted by the server: events are taken";
    if (s.cached_tokens > 0) {
      out +=
          Printf(", %s from its cache",
                 Number(static_cast<double>(s.cached_tokens) / static_cast<double>(s.ok)).c_str());
    }
    out += "\n";
    if (slo.any()) {
      out += In(colour, s.attainment() >= 0.9 ? kGreen : kRed,
                Printf("goodput    %s answers a second within %s: %.1f %% of the requests",
                       Number(s.goodput).c_str(), slo.Text().c_str(), 100 * s.attainment())) +
             "\n";
    }
  }
  out += Printf("in flight  %.1f on average, %zu at most, over %zu new connections", s.mean_running,
                s.most_running, step.connections);
  if (step.open && s.requests > 0) {
    out += Printf("; sent p99 %s ms after they were due", Number(1e3 * s.send_lag.p99).c_str());
  }
  return out + "\n" + Errors(s, colour);
}

namespace {

// A column of the table of steps; `rank`: see TableColumn.
struct StepColumn {
  const char* head;
  int width, rank;
  std::string (*value)(const LoadStep& step);
};

std::string Ms(double seconds) { return Number(1e3 * seconds); }

constexpr int kNameColumns = 14;
constexpr StepColumn kStepColumns[] = {
    {"due/s", 8, 5,
     [](const LoadStep& step) {
       return step.open && step.summary.offered > 0 ? Number(step.summary.offered)
                                                    : std::string("-");
     }},
    {"done/s", 8, 0, [](const LoadStep& step) { return Number(step.summary.achieved); }},
    {"tok/s", 8, 2, [](const LoadStep& step) { return Number(step.summary.output_tok_s); }},
    {"TTFT p50", 9, 0, [](const LoadStep& step) { return Ms(step.summary.ttft.p50); }},
    {"p99 ms", 9, 0, [](const LoadStep& step) { return Ms(step.summary.ttft.p99); }},
    {"TPOT p50", 9, 1, [](const LoadStep& step) { return Ms(step.summary.tpot.p50); }},
    {"p99 ms", 9, 3, [](const LoadStep& step) { return Ms(step.summary.tpot.p99); }},
    {"E2E p50", 9, 4, [](const LoadStep& step) { return Ms(step.summary.e2e.p50); }},
    {"failed", 7, 0, [](const LoadStep& step) { return std::to_string(step.summary.failed); }},
};
constexpr int kGoodput = 9, kAttained = 7;

// Those for which the terminal has room.
std::vector<StepColumn> StepColumns(const Slo& slo) {
  std::vector<TableColumn> sizes;
  for (const StepColumn& c : kStepColumns) {
    sizes.push_back({static_cast<size_t>(c.width) + 1, c.rank});
  }
  sizes.push_back({kNameColumns, 0});
  if (slo.any()) sizes.push_back({kGoodput + 1 + kAttained + 1, 0});
  const std::vector<bool> shown = ShownColumns(sizes, ColumnsOf(stdout, SIZE_MAX));
  std::vector<StepColumn> columns;
  for (size_t i = 0; i < std::size(kStepColumns); ++i) {
    if (shown[i]) columns.push_back(kStepColumns[i]);
  }
  return columns;
}

}  // namespace

std::string LoadTableHead(const Slo& slo, bool colour) {
  std::string head = Printf("%-*s", kNameColumns, "");
  for (const StepColumn& c : StepColumns(slo)) head += Printf(" %*s", c.width, c.head);
  if (slo.any()) head += Printf(" %*s %*s", kGoodput, "goodput/s", kAttained, "in SLO");
  return "\n" + In(colour, kBold, head) + "\n";
}

std::string LoadTableRow(const LoadStep& step, const Slo& slo, bool colour) {
  const LoadSummary& s = step.summary;
  std::string row = Printf("%-*s", kNameColumns, step.Name().c_str());
  for (const StepColumn& c : StepColumns(slo)) {
    row += Printf(" %*s", c.width, c.value(step).c_str());
  }
  if (slo.any()) {
    row +=
        Printf(" %*s ", kGoodput, Number(s.goodput).c_str()) +
        In(colour, s.attainment() >= 0.9 ? kGreen : kRed, Printf("%5.1f %%", 100 * s.attainment()));
  }
  return row + "\n";
}

std::string KneeText(const LoadResult& r) {
  if (r.knee_reason.empty()) return "";
  if (r.knee_rate <= 0) return "knee: none found: " + r.knee_reason + "\n";
  return "knee: " + Number(r.knee_rate) + " req/s; " + r.knee_reason + "\n";
}

std::string ComparisonText(const std::string& a, const std::string& b, const Comparison& comparison,
                           bool colour) {
  std::string out = "A = " + Printable(a, 200) + "\nB = " + Printable(b, 200) + "\n";
  for (const ComparedStep& step : comparison.steps) {
    const std::string name = step.a == step.b ? step.a : step.a + " and " + step.b;
    out += "\n" + In(colour, kBold, name) + "\n" +
           In(colour, kBold,
              Printf("%-16s %10s %10s %8s %18s", "", "A", "B", "B/A", "95 % interval")) +
           "\n";
    for (const ComparedFigure& f : step.figures) {
      const RatioEstimate& e = f.estimate;
      if (e.a <= 0 && e.b <= 0) continue;
      std::string interval = "too few requests", verdict;
      if (e.sure) {
        interval = Printf("[%.3f, %.3f]", e.low, e.high);
        const bool better = (e.low > 1) == f.more_is_better;
        verdict = !e.differs()
                      ? "noise"
                      : In(colour, better ? kGreen : kRed, better ? "B is better" : "B is worse");
      }
      out += Printf("%-10s %-5s %10s %10s %8.3f %18s  ", f.name.c_str(), f.unit.c_str(),
                    Number(e.a).c_str(), Number(e.b).c_str(), e.ratio(), interval.c_str()) +
             verdict + "\n";
    }
  }
  if (!comparison.doubts.empty()) out += "\n";
  for (const std::string& doubt : comparison.doubts)
    out += "doubtful: " + Printable(doubt, 200) + "\n";
  return out;
}

}  // namespace sluice::load
