// The picture of `sluice plan --svg`. Plain SVG without a script; its colours follow the
// viewer's light or dark scheme.
#include <algorithm>
#include <cmath>

#include "cli/ink.h"
#include "cli/plan_report.h"
#include "cli/svg.h"

namespace sluice {
namespace {

constexpr double kWidth = 820, kHeight = 460, kLeft = 70, kRight = 150, kTop = 60, kBottom = 54;

std::string Label(size_t tokens) {
  return tokens >= 1024 ? Text("%zuk", tokens / 1024) : std::to_string(tokens);
}

// A round number of tok/s at or above `most`, and the step of its grid lines.
double Step(double most) {
  const double decade = std::pow(10, std::floor(std::log10(std::max(most, 1e-6))));
  for (const double step : {0.2, 0.5, 1.0, 2.0}) {
    if (most / (step * decade) <= 6) return step * decade;
  }
  return 2 * decade;
}

}  // namespace

std::string PlanSvg(const PlanReport& report, const std::vector<size_t>& contexts,
                    const std::vector<PlanCurve>& curves) {
  double most = 0;
  for (const PlanCurve& c : curves)
    most = std::max(most, *std::max_element(c.tok_s.begin(), c.tok_s.end()));
  most = std::max(most, curves[0].roof_tok_s[0]);
  const double step = Step(most), top = std::ceil(most / step) * step;
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  const auto x = [&](size_t i) {
    const auto last = static_cast<double>(std::max<size_t>(1, contexts.size() - 1));
    return kLeft + (right - kLeft) * static_cast<double>(i) / last;
  };
  const auto y = [&](double tok_s) { return bottom - (bottom - kTop) * tok_s / top; };
  std::string out = Text(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" role=\"img\">\n",
      kWidth, kHeight, kWidth, kHeight);
  const size_t slash = report.model.rfind('/');
  const std::string name = report.model.substr(slash == std::string::npos ? 0 : slash + 1);
  const std::string title = MarkupText(name) + " on " + MarkupText(report.where);
  out += "<title>Decode speed: " + title + "</title>\n<style>" + SvgStyle() + "</style>\n";
  out += Text("<rect class=\"page\" width=\"%.0f\" height=\"%.0f\"/>\n", kWidth, kHeight);
  out += Text("<text class=\"text\" x=\"%.0f\" y=\"26\" style=\"font-size:15px;font-weight:600\">",
              kLeft) +
         title + "</text>\n";
  out += Text(
      "<text class=\"soft\" x=\"%.0f\" y=\"45\">decode of %zu sequence%s, %s keys and values, "
      "%.1f GB/s; dashed: the ceiling</text>\n",
      kLeft, report.workload.concurrency, report.workload.concurrency == 1 ? "" : "s",
      KvTypeName(report.workload.kv_type), report.now.read_gb_s);
  for (double tok_s = 0; tok_s <= top * 1.001; tok_s += step) {
    out += Text("<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kLeft,
                y(tok_s), right, y(tok_s));
    out += Text("<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                kLeft - 8, y(tok_s) + 4, tok_s);
  }
  for (size_t i = 0; i < contexts.size(); ++i) {
    out += Text("<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                x(i), bottom + 18, Label(contexts[i]).c_str());
  }
  out += Text(
      "<text class=\"text\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">tokens in the "
      "context</text>\n",
      (kLeft + right) / 2, kHeight - 14);
  out += Text(
      "<text class=\"text\" text-anchor=\"middle\" transform=\"translate(20 %.1f) "
      "rotate(-90)\">tokens per second</text>\n",
      (kTop + bottom) / 2);
  const auto curve = [&](const std::vector<double>& tok_s, size_t colour, const char* more) {
    out += Text("<polyline class=\"s%zu\" stroke-width=\"2\"%s points=\"", colour, more);
    for (size_t i = 0; i < tok_s.size(); ++i) out += Text("%.1f,%.1f ", x(i), y(tok_s[i]));
    out += "\"/>\n";
  };
  curve(curves[0].roof_tok_s, 0, " stroke-dasharray=\"4 4\"");
  // Names at the ends, none on top of another.
  std::vector<std::pair<double, size_t>> ends;
  for (size_t i = 0; i < curves.size(); ++i) {
    curve(curves[i].tok_s, i % kSvgColours, "");
    ends.emplace_back(y(curves[i].tok_s.back()) + 4, i);
  }
  std::sort(ends.begin(), ends.end());
  for (size_t i = 1; i < ends.size(); ++i) {
    ends[i].first = std::max(ends[i].first, ends[i - 1].first + 15);
  }
  const double over = ends.back().first - (bottom + 4);
  for (const auto& [at, i] : ends) {
    out += Text("<text class=\"f%zu\" x=\"%.1f\" y=\"%.1f\">", i % kSvgColours, right + 8,
                at - std::max(0.0, over)) +
           MarkupText(curves[i].label) + "</text>\n";
  }
  return out + "</svg>\n";
}

}  // namespace sluice
