// Colours and bars for tables on a terminal; nothing of either in a file or a pipe.
#ifndef SLUICE_CLI_INK_H_
#define SLUICE_CLI_INK_H_

#include <cstdio>
#include <string>

namespace sluice {

// Escape sequences, all empty where there is no terminal or NO_COLOR is set.
struct Ink {
  static Ink For(std::FILE* stream);

  const char *strong = "", *dim = "", *good = "", *poor = "", *plain = "";
  bool terminal = false;

  // A bar of up to `width` columns: blocks of an eighth on a terminal, # elsewhere. `share` of 1
  // fills it. Padded to the width.
  std::string Bar(double share, int width) const;
};

// snprintf as a string; up to 400 bytes.
template <class... T>
std::string Text(const char* format, T... values) {
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

std::string HumanSeconds(double seconds);  // "12.3 ms", "4.56 s", "3 min 20 s"

}  // namespace sluice
#endif  // SLUICE_CLI_INK_H_
