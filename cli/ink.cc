#include "cli/ink.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace sluice {

Ink Ink::For(std::FILE* stream) {
  Ink ink;
  if (isatty(fileno(stream)) != 1) return ink;
  ink.terminal = true;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != 0) return ink;
  ink.strong = "\033[1;36m";
  ink.dim = "\033[2m";
  ink.good = "\033[32m";
  ink.poor = "\033[33m";
  ink.plain = "\033[0m";
  return ink;
}

std::string Ink::Bar(double share, int width) const {
  share = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
  if (!terminal) {
    const int full = static_cast<int>(std::lround(share * width));
    return std::string(static_cast<size_t>(full), '#') +
           std::string(static_cast<size_t>(width - full), ' ');
  }
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(share * width * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  const int drawn = eighths / 8 + (eighths % 8 != 0);
  return bar + std::string(static_cast<size_t>(width - drawn), ' ');
}

std::string HumanSeconds(double s) {
  if (s < 0.9995e-3) return Text("%.0f us", 1e6 * s);
  if (s < 0.09995) return Text("%.2f ms", 1e3 * s);
  if (s < 0.9995) return Text("%.0f ms", 1e3 * s);
  if (s < 99.95) return Text("%.2f s", s);
  if (s < 7200) return Text("%.0f min %02.0f s", std::floor(s / 60), std::fmod(s, 60));
  return Text("%.1f h", s / 3600);
}

}  // namespace sluice
