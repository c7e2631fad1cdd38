#include "cli/roofline_svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/svg.h"

namespace sluice {
namespace {

constexpr double kWidth = 860, kHeight = 540;
constexpr double kLeft = 76, kRight = 24, kTop = 64, kBottom = 58;
constexpr double kLetter = 6.6;  // a letter's width, about
constexpr double kLine = 16;     // between lines of text

template <class... T>
std::string Printf(const char* format, T... values) {
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

// A logarithmic axis over whole decades.
struct Axis {
  int low = 0, high = 1;    // powers of ten
  double from = 0, to = 1;  // pixels

  double At(double value) const {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
};

Axis AxisFor(double least, double most, double from, double to) {
  Axis axis;
  axis.low = static_cast<int>(std::floor(std::log10(least)));
  axis.high = static_cast<int>(std::ceil(std::log10(most)));
  if (axis.high == axis.low) ++axis.high;
  axis.from = from;
  axis.to = to;
  return axis;
}

struct Series {
  std::string name;
  double bandwidth = 0, compute = 0;  // the best of its points
};

std::vector<Series> SeriesOf(std::span<const RooflinePoint> points) {
  std::vector<Series> all;
  for (const RooflinePoint& p : points) {
    auto found =
        std::find_if(all.begin(), all.end(), [&](const Series& s) { return s.name == p.series; });
    if (found == all.end()) found = all.insert(all.end(), {p.series});
    found->bandwidth = std::max(found->bandwidth, p.bandwidth_gb_s);
    found->compute = std::max(found->compute, p.compute_gmac_s);
  }
  return all;
}

class Drawing {
 public:
  Drawing(const std::string& title, std::span<const RooflinePoint> points)
      : points_(points), series_(SeriesOf(points)) {
    double x_low = 1e300, x_high = 0, y_low = 1e300, y_high = 0;
    const auto cover = [&](double x, double y) {
      x_low = std::min(x_low, x);
      x_high = std::max(x_high, x);
      y_low = std::min(y_low, y);
      y_high = std::max(y_high, y);
    };
    for (const RooflinePoint& p : points) cover(p.mac_per_byte, p.gmac_s);
    for (const Series& s : series_) {
      if (s.bandwidth > 0 && s.compute > 0) cover(s.compute / s.bandwidth, s.compute * 1.2);
    }
    x_ = AxisFor(x_low / 1.3, x_high * 1.3, kLeft, kWidth - kRight);
    y_ = AxisFor(y_low / 1.3, y_high, kHeight - kBottom, kTop);
    Frame(title);
  }

  std::string Finish() {
    for (size_t i = 0; i < series_.size(); ++i) Roof(i);
    Points();
    if (series_.size() > 1) {
      Legend();
    } else {
      Write("soft", kLeft, 46, series_[0].name);
    }
    return out_ + "</svg>\n";
  }

 private:
  void Line(const char* kind, double x1, double y1, double x2, double y2, const char* more = "") {
    out_ += Printf("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"%s/>\n", kind,
                   x1, y1, x2, y2, more);
  }
  void Write(const char* kind, double x, double y, const std::string& text, const char* more = "") {
    out_ += Printf("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\"%s>", kind, x, y, more) +
            MarkupText(text) + "</text>\n";
  }
  std::string ColourClass(size_t series, const char* kind) const {
    return Printf("%s%zu", kind, series % kSvgColours);
  }

  void Frame(const std::string& title) {
    out_ = Printf(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
        "height=\"%.0f\" role=\"img\">\n",
        kWidth, kHeight, kWidth, kHeight);
    out_ +=
        "<title>Roofline: " + MarkupText(title) + "</title>\n<style>" + SvgStyle() + "</style>\n";
    out_ += Printf("<rect class=\"page\" width=\"%.0f\" height=\"%.0f\"/>\n", kWidth, kHeight);
    Write("text", kLeft, 26, title, " style=\"font-size:15px;font-weight:600\"");
    const double right = kWidth - kRight, bottom = kHeight - kBottom;
    for (int decade = x_.low; decade <= x_.high; ++decade) {
      const double x = x_.At(std::pow(10, decade));
      Line("grid", x, kTop, x, bottom);
      Write("soft", x, bottom + 18, Printf("%g", std::pow(10, decade)), " text-anchor=\"middle\"");
    }
    for (int decade = y_.low; decade <= y_.high; ++decade) {
      const double y = y_.At(std::pow(10, decade));
      Line("grid", kLeft, y, right, y);
      Write("soft", kLeft - 8, y + 4, Printf("%g", std::pow(10, decade)), " text-anchor=\"end\"");
    }
    Line("axis", kLeft, bottom, right, bottom);
    Line("axis", kLeft, kTop, kLeft, bottom);
    Write("text", (kLeft + right) / 2, kHeight - 16, "multiply-adds per byte read",
          " text-anchor=\"middle\"");
    Write("text", 0, 0, "10\u2079 multiply-adds per second",
          Printf(" text-anchor=\"middle\" transform=\"translate(20 %.1f) rotate(-90)\"",
                 (kTop + bottom) / 2)
              .c_str());
  }

  void Roof(size_t i) {
    const Series& s = series_[i];
    if (s.bandwidth <= 0 || s.compute <= 0) return;
    const double left = std::pow(10, x_.low), knee = s.compute / s.bandwidth;
    // The slope starts at the left edge or at the bottom one, whichever it meets first.
    const double start = std::max(left, std::pow(10, y_.low) / s.bandwidth);
    const double x0 = x_.At(start), y0 = y_.At(start * s.bandwidth);
    const double xk = x_.At(knee), yk = y_.At(s.compute), right = kWidth - kRight;
    out_ += Printf(
        "<polyline class=\"%s\" stroke-width=\"2\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
        ColourClass(i, "s").c_str(), x0, y0, xk, yk, std::max(xk, right), yk);
    if (i > 0) return;  // the others are named in the legend
    const std::string kind = ColourClass(i, "f");
    const double angle = std::atan2(yk - y0, xk - x0) * 180 / M_PI;
    Write(kind.c_str(), 0, 0, Printf("reads %.1f GB/s", s.bandwidth),
          Printf(" text-anchor=\"middle\" transform=\"translate(%.1f %.1f) rotate(%.1f) "
                 "translate(0 -8)\"",
                 x0 + 0.3 * (xk - x0), y0 + 0.3 * (yk - y0), angle)
              .c_str());
    Write(kind.c_str(), right - 4, yk - 8,
          Printf("kernels %.0f\u00b710\u2079 multiply-adds per second", s.compute),
          " text-anchor=\"end\"");
  }

  struct Label {
    double x, y, text_y;
    bool to_left;
    size_t series;
    std::string text;

    double Width() const { return 24 + kLetter * static_cast<double>(text.size()); }
    double Left() const { return to_left ? x - Width() : x; }
    double Right() const { return to_left ? x : x + Width(); }
  };

  void Points() {
    std::vector<Label> labels;
    for (const RooflinePoint& p : points_) {
      size_t i = 0;
      while (series_[i].name != p.series) ++i;
      const double x = x_.At(p.mac_per_byte), y = y_.At(p.gmac_s);
      const double slope = p.bandwidth_gb_s * p.mac_per_byte;
      const double roof = slope <= 0             ? p.compute_gmac_s
                          : p.compute_gmac_s > 0 ? std::min(slope, p.compute_gmac_s)
                                                 : slope;
      if (roof > 0) {
        const double top = std::max(kTop, y_.At(roof));
        const std::string kind = ColourClass(i, "s");
        Line(kind.c_str(), x, y, x, top, " stroke-dasharray=\"1.5 3\"");
        Line(kind.c_str(), x - 5, top, x + 5, top);
      }
      out_ += Printf("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n",
                     ColourClass(i, "f").c_str(), x, y);
      const double share = roof > 0 ? 100 * p.gmac_s / roof : 0;
      labels.push_back({x, y, y + 4, x > kLeft + 0.7 * (kWidth - kLeft - kRight), i,
                        p.label + (roof > 0 ? Printf(" (%.0f %%)", share) : "")});
    }
    SpreadLabels(&labels);
    for (const Label& l : labels) {
      const double side = l.to_left ? -1 : 1;
      if (std::fabs(l.text_y - 4 - l.y) > 6) {
        Line("axis", l.x + side * 5, l.y, l.x + side * 16, l.text_y - 4, " stroke-width=\"0.6\"");
      }
      Write("text", l.x + side * 18, l.text_y, l.text, l.to_left ? " text-anchor=\"end\"" : "");
    }
  }

  // From the top down, each label below those near it; the whole then moves up if it ran out of the
  // frame.
  static void SpreadLabels(std::vector<Label>* labels) {
    std::stable_sort(labels->begin(), labels->end(),
                     [](const Label& a, const Label& b) { return a.y < b.y; });
    const double lowest = kHeight - kBottom - 4;
    const auto near = [](const Label& a, const Label& b) {
      return a.Left() < b.Right() && b.Left() < a.Right();
    };
    for (size_t i = 0; i < labels->size(); ++i) {
      Label& l = (*labels)[i];
      for (size_t j = 0; j < i; ++j) {
        const Label& above = (*labels)[j];
        if (near(l, above)) l.text_y = std::max(l.text_y, above.text_y + kLine);
      }
    }
    for (size_t i = labels->size(); i-- > 0;) {
      Label& l = (*labels)[i];
      l.text_y = std::min(l.text_y, lowest);
      for (size_t j = i + 1; j < labels->size(); ++j) {
        const Label& below = (*labels)[j];
        if (near(l, below)) l.text_y = std::min(l.text_y, below.text_y - kLine);
      }
    }
  }

  void Legend() {
    double y = kHeight - kBottom - 12 - kLine * static_cast<double>(series_.size() - 1);
    const double x = kWidth - kRight - 300;
    for (size_t i = 0; i < series_.size(); ++i, y += kLine) {
      out_ += Printf("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n",
                     ColourClass(i, "f").c_str(), x, y - 4);
      Write("text", x + 12, y, series_[i].name);
    }
  }

  const std::span<const RooflinePoint> points_;
  const std::vector<Series> series_;
  Axis x_, y_;
  std::string out_;
};

}  // namespace

std::string RooflineSvg(const std::string& title, std::span<const RooflinePoint> points) {
  return Drawing(title, points).Finish();
}

}  // namespace sluice
