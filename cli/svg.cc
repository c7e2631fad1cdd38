#include "cli/svg.h"

#include <cstdio>
#include <iterator>

namespace sluice {
namespace {

// Of the light and the dark scheme: after Okabe and Ito's, which the colour-blind can tell apart.
struct Colour {
  const char *light, *dark;
};
constexpr Colour kSeriesColours[] = {{"#0072b2", "#56b4e9"}, {"#d55e00", "#ff9b4a"},
                                     {"#009e73", "#2fd6a3"}, {"#aa4499", "#e08ad0"},
                                     {"#997700", "#e6c84f"}, {"#333333", "#d0d0d0"}};
static_assert(std::size(kSeriesColours) == kSvgColours);

std::string SeriesStyle(size_t i, const char* colour) {
  char buffer[100];
  std::snprintf(buffer, sizeof(buffer), ".s%zu{stroke:%s;fill:none}.f%zu{fill:%s}", i, colour, i,
                colour);
  return buffer;
}

}  // namespace

std::string SvgStyle() {
  std::string light =
      ".page{fill:#ffffff}.text{fill:#24292f}.soft{fill:#57606a}"
      ".grid{stroke:#d8dee4}.axis{stroke:#57606a}";
  std::string dark =
      ".page{fill:#0d1117}.text{fill:#e6edf3}.soft{fill:#9da7b3}"
      ".grid{stroke:#2a313a}.axis{stroke:#9da7b3}";
  for (size_t i = 0; i < kSvgColours; ++i) {
    light += SeriesStyle(i, kSeriesColours[i].light);
    dark += SeriesStyle(i, kSeriesColours[i].dark);
  }
  return "text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}\n" + light +
         "\n@media (prefers-color-scheme:dark){" + dark + "}\n";
}

std::string MarkupText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

}  // namespace sluice
