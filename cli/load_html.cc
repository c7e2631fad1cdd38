// The page of `sluice load`.
#include <cstdio>

#include "cli/load_report.h"
#include "cli/svg.h"

namespace sluice::load {
namespace {

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;max-width:960px;"
    "margin:2rem auto;padding:0 1rem;color:#24292f;background:#fff}"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #d8dee4}"
    "th:first-child,td:first-child{text-align:left}.soft{color:#57606a}.bad{color:#b3261e}"
    ".wide{overflow-x:auto}svg{max-width:100%;height:auto}"
    "@media (prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}"
    "th,td{border-color:#2a313a}.soft{color:#9da7b3}.bad{color:#ff8a80}}";

template <class... T>
std::string Printf(const char* format, T... values) {
  char buffer[600];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

std::string Paragraph(const char* kind, const std::string& text) {
  return "<p class=\"" + std::string(kind) + "\">" + MarkupText(text) + "</p>\n";
}

std::string Row(const char* name, const Distribution& d) {
  std::string row = Printf("<tr><td>%s</td>", name);
  for (const double v : {d.mean, d.p50, d.p90, d.p95, d.p99, d.p999, d.most}) {
    row += d.count > 0 ? Printf("<td>%.2f</td>", 1e3 * v) : std::string("<td></td>");
  }
  return row + Printf("<td>%zu</td></tr>\n", d.count);
}

std::string StepHtml(const LoadStep& step, const Slo& slo) {
  const LoadSummary& s = step.summary;
  std::string out = "<h2>" + MarkupText(step.Name()) + "</h2>\n<div class=\"wide\"><table>\n<tr>";
  for (const char* name :
       {"milliseconds", "mean", "p50", "p90", "p95", "p99", "p99.9", "max", "values"}) {
    out += Printf("<th>%s</th>", name);
  }
  out +=
      "</tr>\n" + Row("TTFT", s.ttft) + Row("TPOT", s.tpot) + Row("ITL", s.itl) + Row("E2E", s.e2e);
  if (step.open) out += Row("TTFT from sending", s.ttft_sent) + Row("E2E from sending", s.e2e_sent);
  out += "</table></div>\n";
  out += Paragraph(
      "", Printf("%zu requests, %zu answered, %zu failed, %zu unfinished in %.2f s. "
                 "%.3f answers a second (%.3f due), %.1f output tokens and %.1f prompt "
                 "tokens a second. In flight %.1f on average, %zu at most.",
                 s.requests, s.ok, s.failed, s.unfinished, s.duration_s, s.achieved, s.offered,
                 s.output_tok_s, s.prompt_tok_s, s.mean_running, s.most_running));
  if (slo.any()) {
    out += Paragraph("", Printf("Goodput %.3f answers a second: %.1f %% of the requests within ",
                                s.goodput, 100 * s.attainment()) +
                             slo.Text() + ".");
  }
  for (const auto& [kind, error] : s.errors) {
    out += Paragraph("bad", Printf("%zu failed: ", error.count) + kind + ": " + error.first);
  }
  return out;
}

}  // namespace

std::string LoadHtml(const LoadResult& r) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>sluice load: " +
      MarkupText(r.url) + "</title>\n<style>" + kStyle + "</style>\n<h1>Load on " +
      MarkupText(r.url) + "</h1>\n";
  out +=
      Paragraph("soft", r.time + ", " + r.dialect + (r.model.empty() ? "" : ", model " + r.model) +
                            ", sluice " + r.version);
  out += Paragraph("", r.prompts);
  if (r.interrupted) out += Paragraph("bad", "It was interrupted.");
  for (const std::string& note : r.notes) out += Paragraph("soft", note);
  if (const std::string knee = KneeText(r); !knee.empty()) out += Paragraph("", knee);
  out += LoadSvg(r);
  for (const LoadStep& step : r.steps) out += StepHtml(step, r.slo);
  out += Paragraph("soft",
                   "TTFT: to the first event with text. TPOT: from it to the last, by tokens less "
                   "one. ITL: between events with text. E2E: to the last byte. An open loop counts "
                   "from when a request was due. Percentiles are of all values, between two of "
                   "them on the line.");
  return out + "</html>\n";
}

}  // namespace sluice::load
