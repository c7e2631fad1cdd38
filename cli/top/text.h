// Numbers as `sluice top` writes them, and lines made of styled pieces that never
// grow past their width. Pure; any thread.
#ifndef SLUICE_CLI_TOP_TEXT_H_
#define SLUICE_CLI_TOP_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/top/state.h"

namespace sluice::top {

// What a piece of text is, not how it looks: the screen chooses.
enum class Style : uint8_t {
  kPlain,
  kDim,
  kStrong,
  kHeader,  // of the table
  kSorted,  // the header that the table is sorted by
  kGood,    // of decode, and of bars
  kBusy,    // of prefill
  kWarn,
  kBad,
};
inline constexpr size_t kStyles = 9;

struct Line {
  std::vector<std::pair<std::string, Style>> pieces;
  bool selected = false;  // the row that the cursor is on
};

// Columns a text takes; all its characters are one column wide.
size_t Columns(std::string_view utf8);
// Text from outside, one printable ASCII character for every byte or character of it.
std::string Ascii(std::string_view text);
// Cut with an ellipsis, or filled with blanks.
std::string Fit(std::string text, size_t columns, bool left, bool utf8);

std::string CountText(Number count);       // "120", "12.3k"
std::string RateText(Number per_second);   // "41.2"
std::string PercentText(Number share);     // "71 %"
std::string SecondsText(Number seconds);   // "1.23 s", "12m05"
std::string PerSecondText(Number number);  // "0 /s", "0.4 /s"

struct BarPart {
  double share;  // of the whole bar
  Style style;
  size_t glyph = 0;  // 0: full; 1: half, for what is there but not in use
};

class LineBuilder {
 public:
  LineBuilder(size_t width, bool utf8) : width_(width), utf8_(utf8) {}

  size_t left() const { return width_ - used_; }
  // Cut where the line ends.
  LineBuilder& Add(std::string_view text, Style style = Style::kPlain);
  LineBuilder& PadTo(size_t column);
  // The parts side by side, what they leave in a pale tone.
  LineBuilder& AddBar(size_t cells, std::span<const BarPart> parts);
  Line Take() { return std::move(line_); }

 private:
  const size_t width_;
  const bool utf8_;
  size_t used_ = 0;
  Line line_;
};

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_TEXT_H_
