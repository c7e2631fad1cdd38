#include "cli/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/svg.h"

namespace sluice {
namespace {

constexpr double kLeft = 58, kRight = 14, kTop = 34, kBottom = 46;
constexpr double kLine = 15;     // between lines of the legend
constexpr double kLetter = 6.6;  // a letter's width, about

template <class... T>
std::string Printf(const char* format, T... values) {
  char buffer[300];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

struct Axis {
  bool logarithmic = false;
  double low = 0, high = 1;  // values
  double from = 0, to = 1;   // pixels
  std::vector<double> ticks;

  double At(double v) const {
    const double share = logarithmic ? std::log(std::max(v, low) / low) / std::log(high / low)
                                     : (v - low) / (high - low);
    return from + std::clamp(share, 0.0, 1.0) * (to - from);
  }
};

// Ends at 1, 2 or 5 times a power of ten around the values.
Axis LogAxis(double least, double most) {
  static constexpr double kSteps[] = {1, 2, 5};
  Axis axis;
  axis.logarithmic = true;
  std::vector<double> marks;
  for (int decade = -9; decade < 12; ++decade) {
    for (const double s : kSteps) marks.push_back(s * std::pow(10, decade));
  }
  const auto above = std::upper_bound(marks.begin(), marks.end(), least * 0.999);
  const auto low = above == marks.begin() ? above : above - 1;
  auto high = std::lower_bound(marks.begin(), marks.end(), most * 0.999);
  if (high == marks.end()) --high;
  if (high <= low) high = low + 1;
  axis.low = *low;
  axis.high = *high;
  const bool many = high - low > 7;  // then only powers of ten
  for (auto m = low; m <= high; ++m) {
    if (!many || std::fabs(std::log10(*m) - std::round(std::log10(*m))) < 1e-6) {
      axis.ticks.push_back(*m);
    }
  }
  return axis;
}

Axis LinearAxis(double least, double most) {
  Axis axis;
  axis.low = least;
  const double span = most > least ? most - least : 1;
  const double raw = span / 5, decade = std::pow(10, std::floor(std::log10(raw)));
  const double step = decade * (raw / decade <= 1   ? 1
                                : raw / decade <= 2 ? 2
                                : raw / decade <= 5 ? 5
                                                    : 10);
  axis.high = least + step * std::ceil(span / step - 1e-9);
  for (double t = least; t <= axis.high + step / 2; t += step) axis.ticks.push_back(t);
  return axis;
}

class Drawing {
 public:
  Drawing(const Chart& chart, double left, double top) : chart_(chart) {
    double x_low = 1e300, x_high = -1e300, y_low = 1e300, y_high = -1e300;
    for (const ChartSeries& s : chart.series) {
      for (const auto& [x, y] : s.points) {
        if ((chart.x_log && x <= 0) || (chart.y_log && y <= 0)) continue;
        x_low = std::min(x_low, x);
        x_high = std::max(x_high, x);
        y_low = std::min(y_low, y);
        y_high = std::max(y_high, y);
      }
    }
    empty_ = x_high < x_low;
    if (empty_) x_low = y_low = 1, x_high = y_high = 2;
    x_ = chart.x_log ? LogAxis(x_low, x_high) : LinearAxis(std::min(0.0, x_low), x_high);
    const bool fixed = chart.y_most > chart.y_least;
    y_ = chart.y_log ? LogAxis(y_low, y_high)
         : fixed     ? LinearAxis(chart.y_least, chart.y_most)
                     : LinearAxis(0, y_high);
    x_.from = kLeft;
    x_.to = kChartWidth - kRight;
    y_.from = kChartHeight - kBottom;
    y_.to = kTop;
    out_ = Printf("<g transform=\"translate(%.1f %.1f)\">\n", left, top);
  }

  std::string Draw() {
    Frame();
    if (empty_) Write("soft", kChartWidth / 2, kChartHeight / 2, "nothing to show", "middle");
    for (const ChartSeries& s : chart_.series) Series(s);
    Legend();
    return out_ + "</g>\n";
  }

 private:
  void Line(const char* kind, double x1, double y1, double x2, double y2) {
    out_ += Printf("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kind,
                   x1, y1, x2, y2);
  }
  void Write(const char* kind, double x, double y, const std::string& text,
             const char* anchor = "start", const char* more = "") {
    out_ += Printf("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", kind, x, y,
                   anchor, more) +
            MarkupText(text) + "</text>\n";
  }

  void Frame() {
    Write("text", kLeft, 20, chart_.title, "start", " style=\"font-size:14px;font-weight:600\"");
    for (const double t : x_.ticks) {
      Line("grid", x_.At(t), y_.to, x_.At(t), y_.from);
      Write("soft", x_.At(t), y_.from + 16, Printf("%.10g", t), "middle");
    }
    for (const double t : y_.ticks) {
      Line("grid", x_.from, y_.At(t), x_.to, y_.At(t));
      Write("soft", x_.from - 6, y_.At(t) + 4, Printf("%.10g", t), "end");
    }
    Line("axis", x_.from, y_.from, x_.to, y_.from);
    Line("axis", x_.from, y_.from, x_.from, y_.to);
    Write("soft", (x_.from + x_.to) / 2, kChartHeight - 10, chart_.x_title, "middle");
    Write("soft", 0, 0, chart_.y_title, "middle",
          Printf(" transform=\"translate(14 %.1f) rotate(-90)\"", (y_.from + y_.to) / 2).c_str());
  }

  void Series(const ChartSeries& s) {
    const size_t colour = s.colour % kSvgColours;
    std::string line;
    for (const auto& [x, y] : s.points) {
      if ((chart_.x_log && x <= 0) || (chart_.y_log && y <= 0)) continue;
      line += Printf("%.1f,%.1f ", x_.At(x), y_.At(y));
      if (s.dots) {
        out_ += Printf("<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/>\n", colour,
                       x_.At(x), y_.At(y), s.line ? "3.5" : "2");
      }
    }
    if (s.line && !line.empty()) {
      out_ += Printf("<polyline class=\"s%zu\" stroke-width=\"1.8\" points=\"", colour) + line +
              "\"/>\n";
    }
  }

  // In the upper left corner, over what lines are there.
  void Legend() {
    std::vector<const ChartSeries*> named;
    size_t longest = 0;
    for (const ChartSeries& s : chart_.series) {
      if (s.name.empty()) continue;
      named.push_back(&s);
      longest = std::max(longest, s.name.size());
    }
    if (named.empty()) return;
    out_ += Printf(
        "<rect class=\"page\" fill-opacity=\"0.85\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
        "height=\"%.1f\"/>\n",
        kLeft + 4, kTop + 2, 24 + kLetter * static_cast<double>(longest),
        4 + kLine * static_cast<double>(named.size()));
    double y = kTop + 14;
    for (const ChartSeries* s : named) {
      const size_t colour = s->colour % kSvgColours;
      out_ += Printf("<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", colour,
                     kLeft + 12, y - 4);
      Write("text", kLeft + 21, y, s->name);
      y += kLine;
    }
  }

  const Chart& chart_;
  Axis x_, y_;
  bool empty_ = false;
  std::string out_;
};

}  // namespace

std::string DrawChart(const Chart& chart, double x, double y) {
  return Drawing(chart, x, y).Draw();
}

}  // namespace sluice
