// The roofline of a benchmark as a picture: multiply-adds per byte read across,
// multiply-adds per second up, both logarithmic. The slope is the measured read
// bandwidth, the flat part the kernels' own rate; each row is a point, and a
// dotted line goes up from it to the roof that held when it was measured.
// (Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009.)
// Plain SVG without a script; its colours follow the viewer's light or dark scheme.
#ifndef SLUICE_CLI_ROOFLINE_SVG_H_
#define SLUICE_CLI_ROOFLINE_SVG_H_

#include <span>
#include <string>
#include <vector>

namespace sluice {

struct RooflinePoint {
  std::string label;        // "tg128"
  std::string series;       // points of one series share a colour and a roof: the configuration
  double mac_per_byte = 1;  // > 0
  double gmac_s = 1;        // > 0
  double bandwidth_gb_s = 0, compute_gmac_s = 0;  // the roofs; 0: not known
};

// `title` stands above: the CPU. At least one point.
std::string RooflineSvg(const std::string& title, std::span<const RooflinePoint> points);

}  // namespace sluice
#endif  // SLUICE_CLI_ROOFLINE_SVG_H_
