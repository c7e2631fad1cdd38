// The picture of `sluice load`: four charts.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/chart.h"
#include "cli/load_report.h"
#include "cli/svg.h"

namespace sluice::load {
namespace {

constexpr size_t kMostPoints = 300;  // of a line; beyond them it shows no more
constexpr size_t kPieces = 40;       // of a run's time

std::vector<double> Values(const LoadStep& step, bool gaps) {
  std::vector<double> values;
  for (const LoadSample& s : step.samples) {
    if (!s.ok()) continue;
    if (!gaps) values.push_back(1e3 * s.ttft_s());
    for (size_t i = 1; gaps && i < s.text_s.size(); ++i) {
      values.push_back(1e3 * (s.text_s[i] - s.text_s[i - 1]));
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

// Which steps get a line of their own: as many as there are colours, the first and last among them.
std::vector<size_t> Shown(size_t steps) {
  std::vector<size_t> shown;
  const size_t count = std::min(steps, kSvgColours);
  for (size_t i = 0; i < count; ++i) {
    shown.push_back(count == 1 ? 0 : i * (steps - 1) / (count - 1));
  }
  return shown;
}

Chart Titled(const char* title, const char* x_title, const char* y_title) {
  Chart chart;
  chart.title = title;
  chart.x_title = x_title;
  chart.y_title = y_title;
  return chart;
}

Chart Cumulative(const LoadResult& result, bool gaps) {
  Chart chart = Titled(gaps ? "Gaps between tokens" : "Time to the first token", "milliseconds",
                       "% of all, at most so long");
  chart.x_log = true;
  chart.y_most = 100;
  for (const size_t i : Shown(result.steps.size())) {
    const std::vector<double> values = Values(result.steps[i], gaps);
    ChartSeries series;
    series.name = result.steps.size() > 1 ? result.steps[i].Name() : "";
    series.colour = chart.series.size();
    const size_t points = std::min(values.size(), kMostPoints);
    for (size_t p = 0; p < points; ++p) {
      const double share =
          points == 1 ? 1 : static_cast<double>(p) / static_cast<double>(points - 1);
      series.points.emplace_back(Percentile(values, share), 100 * share);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart LatencyOverTime(const LoadStep& step) {
  Chart chart = Titled("Each request, by when it was due", "seconds of the run", "milliseconds");
  chart.y_log = true;
  ChartSeries whole{"end to end", {}, false, true, 1}, first{"first token", {}, false, true, 0};
  for (const LoadSample& s : step.samples) {
    if (!s.ok()) continue;
    whole.points.emplace_back(s.intended_s, 1e3 * s.e2e_s());
    first.points.emplace_back(s.intended_s, 1e3 * s.ttft_s());
  }
  chart.series = {whole, first};
  return chart;
}

Chart TokensOverTime(const LoadStep& step) {
  Chart chart = Titled("Output tokens a second", "seconds of the run", "tok/s");
  double end = 0;
  for (const LoadSample& s : step.samples) end = std::max(end, s.ok() ? s.end_s : 0);
  std::vector<double> tokens(kPieces);
  const double piece_s = end / kPieces;
  for (const LoadSample& s : step.samples) {
    if (!s.ok() || piece_s <= 0) continue;
    const double each = static_cast<double>(s.output_tokens) / static_cast<double>(s.text_s.size());
    for (const double t : s.text_s) {
      tokens[std::min(static_cast<size_t>(std::max(0.0, t / piece_s)), kPieces - 1)] += each;
    }
  }
  ChartSeries series;
  for (size_t i = 0; i < kPieces && piece_s > 0; ++i) {
    series.points.emplace_back((static_cast<double>(i) + 0.5) * piece_s, tokens[i] / piece_s);
  }
  chart.series = {series};
  return chart;
}

std::vector<const LoadStep*> Ascending(const LoadResult& result) {
  std::vector<const LoadStep*> steps;
  for (const LoadStep& s : result.steps) {
    if (s.summary.ok > 0) steps.push_back(&s);
  }
  std::stable_sort(steps.begin(), steps.end(), [](const LoadStep* a, const LoadStep* b) {
    return a->open ? a->summary.offered < b->summary.offered : a->clients < b->clients;
  });
  return steps;
}

Chart LatencyByThroughput(const LoadResult& result) {
  Chart chart = Titled("Latency by throughput", "answers a second", "milliseconds");
  chart.y_log = true;
  ChartSeries p50{"first token, p50", {}, true, true, 0},
      p99{"first token, p99", {}, true, true, 1}, tpot{"per token, p50", {}, true, true, 2};
  for (const LoadStep* s : Ascending(result)) {
    p50.points.emplace_back(s->summary.achieved, 1e3 * s->summary.ttft.p50);
    p99.points.emplace_back(s->summary.achieved, 1e3 * s->summary.ttft.p99);
    tpot.points.emplace_back(s->summary.achieved, 1e3 * s->summary.tpot.p50);
  }
  chart.series = {p50, p99, tpot};
  return chart;
}

Chart ThroughputByLoad(const LoadResult& result) {
  const bool open = result.steps[0].open;
  Chart chart = Titled("Throughput by load", open ? "requests a second that were due" : "clients",
                       "answers a second");
  ChartSeries done{"answered", {}, true, true, 0}, all{"as many as were due", {}, true, false, 5},
      good{"within the SLO", {}, true, true, 2};
  for (const LoadStep* s : Ascending(result)) {
    const double x = s->open ? s->summary.offered : static_cast<double>(s->clients);
    done.points.emplace_back(x, s->summary.achieved);
    good.points.emplace_back(x, s->summary.goodput);
    if (s->open) all.points.emplace_back(x, x);
  }
  if (open) chart.series.push_back(all);
  chart.series.push_back(done);
  if (result.slo.any()) chart.series.push_back(good);
  return chart;
}

}  // namespace

std::string LoadSvg(const LoadResult& result) {
  constexpr double kHead = 34, kWidth = 2 * kChartWidth, kHeight = kHead + 2 * kChartHeight;
  const std::string title =
      "sluice load: " + (result.model.empty() ? result.url : result.model) + ", " + result.time;
  char head[200];
  std::snprintf(head, sizeof(head),
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                "width=\"%.0f\" height=\"%.0f\" role=\"img\">\n",
                kWidth, kHeight, kWidth, kHeight);
  std::string out =
      head + ("<title>" + MarkupText(title) + "</title>\n<style>") + SvgStyle() + "</style>\n";
  std::snprintf(head, sizeof(head), "<rect class=\"page\" width=\"%.0f\" height=\"%.0f\"/>\n",
                kWidth, kHeight);
  out += head;
  out += "<text class=\"text\" x=\"16\" y=\"24\" style=\"font-size:15px;font-weight:600\">" +
         MarkupText(title) + "</text>\n";
  std::vector<Chart> charts = {Cumulative(result, false), Cumulative(result, true)};
  if (result.steps.size() > 1) {
    charts.push_back(LatencyByThroughput(result));
    charts.push_back(ThroughputByLoad(result));
  } else if (!result.steps.empty()) {
    charts.push_back(LatencyOverTime(result.steps[0]));
    charts.push_back(TokensOverTime(result.steps[0]));
  }
  for (size_t i = 0; i < charts.size(); ++i) {
    out += DrawChart(charts[i], i % 2 == 0 ? 0 : kChartWidth, kHead + (i < 2 ? 0 : kChartHeight));
  }
  return out + "</svg>\n";
}

}  // namespace sluice::load
