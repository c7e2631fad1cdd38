#include "cli/top/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sluice::top {

namespace {

template <class... Args>
std::string Format(const char* format, Args... args) {
  char text[64];
  std::snprintf(text, sizeof(text), format, args...);
  return text;
}

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The first so many characters.
std::string_view Prefix(std::string_view text, size_t columns) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    if (!Continues(text[bytes]) && columns-- == 0) break;
    ++bytes;
  }
  return text.substr(0, bytes);
}

std::string Repeat(std::string_view glyph, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += glyph;
  return out;
}

}  // namespace

size_t Columns(std::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return !Continues(c); }));
}

std::string Ascii(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!Continues(c)) out += ' ' <= c && c <= '~' ? c : '?';
  }
  return out;
}

std::string Fit(std::string text, size_t columns, bool left, bool utf8) {
  const size_t is = Columns(text);
  if (is > columns) {
    const std::string_view end = utf8 ? "…" : "~";
    return columns == 0 ? "" : std::string(Prefix(text, columns - 1)).append(end);
  }
  const std::string blanks(columns - is, ' ');
  return left ? text + blanks : blanks + text;
}

std::string CountText(Number count) {
  if (!count) return "-";
  if (*count < 99999.5) return Format("%.0f", *count);
  if (*count < 999.5e3) return Format("%.0fk", *count / 1e3);
  return *count < 999.5e6 ? Format("%.1fM", *count / 1e6) : Format("%.1fG", *count / 1e9);
}

std::string RateText(Number per_second) {
  if (!per_second) return "-";
  return Format(*per_second < 9999.5 ? "%.1f" : "%.0f", *per_second);
}

std::string PercentText(Number share) { return share ? Format("%.0f %%", *share * 100) : "-"; }

std::string SecondsText(Number seconds) {
  if (!seconds) return "-";
  if (*seconds < 99.995) return Format("%.2f s", *seconds);
  const auto s = static_cast<unsigned long long>(std::min(*seconds, 1e9));
  if (s < 3600) return Format("%llum%02llu", s / 60, s % 60);
  return Format("%lluh%02llu", s / 3600, s / 60 % 60);
}

std::string PerSecondText(Number number) {
  if (!number) return "-";
  const bool whole = *number == std::floor(*number);
  return Format(whole ? "%.0f /s" : "%.1f /s", *number);
}

LineBuilder& LineBuilder::Add(std::string_view text, Style style) {
  const std::string_view fits = Prefix(text, left());
  if (fits.empty()) return *this;
  used_ += Columns(fits);
  if (!line_.pieces.empty() && line_.pieces.back().second == style) {
    line_.pieces.back().first += fits;
  } else {
    line_.pieces.emplace_back(fits, style);
  }
  return *this;
}

LineBuilder& LineBuilder::PadTo(size_t column) {
  return column > used_ ? Add(std::string(column - used_, ' ')) : *this;
}

LineBuilder& LineBuilder::AddBar(size_t cells, std::span<const BarPart> parts) {
  static constexpr const char* kGlyphs[2][3] = {{"#", "=", "."}, {"█", "▒", "░"}};
  const auto& glyphs = kGlyphs[utf8_ ? 1 : 0];
  double share = 0;
  size_t drawn = 0;
  for (const BarPart& part : parts) {
    share += std::max(part.share, 0.0);
    const double end = std::round(std::min(share, 1.0) * static_cast<double>(cells));
    const size_t until = std::max(drawn, static_cast<size_t>(end));
    Add(Repeat(glyphs[part.glyph], until - drawn), part.style);
    drawn = until;
  }
  return Add(Repeat(glyphs[2], cells - drawn), Style::kDim);
}

}  // namespace sluice::top
