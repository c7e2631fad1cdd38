// A small chart: lines or points over two axes, each linear or logarithmic. Several of them make
// the picture of `sluice load`.
#ifndef SLUICE_CLI_CHART_H_
#define SLUICE_CLI_CHART_H_

#include <string>
#include <utility>
#include <vector>

namespace sluice {

struct ChartSeries {
  std::string name;  // in the legend; empty: not there
  std::vector<std::pair<double, double>> points;
  bool line = true, dots = false;
  size_t colour = 0;
};

struct Chart {
  std::string title, x_title, y_title;
  bool x_log = false, y_log = false;
  double y_least = 0, y_most = 0;  // of a linear axis; both 0: what the points need, from 0 on
  std::vector<ChartSeries> series;
};

constexpr double kChartWidth = 450, kChartHeight = 320;

// A <g> of that size with its corner at (x, y), for an <svg> with SvgStyle.
std::string DrawChart(const Chart& chart, double x, double y);

}  // namespace sluice
#endif  // SLUICE_CLI_CHART_H_
