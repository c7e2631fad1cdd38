#include "cli/wrap.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace sluice {

size_t ColumnsOf(std::FILE* stream, size_t otherwise) {
  const int fd = fileno(stream);
  if (isatty(fd) != 1) return otherwise;
  struct winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

size_t TextColumns(std::string_view text) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<uint8_t>(text[i]) & 0xC0) != 0x80) {
      ++columns;
    }
  }
  return columns;
}

std::string Wrapped(std::string_view text, size_t indent, size_t columns) {
  constexpr size_t kLeastRoom = 20;
  const size_t room = columns > indent + kLeastRoom ? columns - indent : SIZE_MAX;
  constexpr const char* kBlanks = " \n";
  std::string out;
  size_t used = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find_first_not_of(kBlanks, at), text.size());
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    if (begin == end) break;
    std::string gap(text.substr(at, begin - at));
    std::replace(gap.begin(), gap.end(), '\n', ' ');
    const std::string_view word = text.substr(begin, end - begin);
    const size_t wide = TextColumns(word);
    if (used > 0 && used + gap.size() + wide > room) {
      gap = "\n" + std::string(indent, ' ');
      used = 0;
    } else if (used == 0) {
      gap.clear();
    } else {
      used += gap.size();
    }
    out.append(gap).append(word);
    used += wide;
    at = end;
  }
  return out;
}

std::vector<bool> ShownColumns(const std::vector<TableColumn>& columns, size_t room) {
  std::vector<bool> shown(columns.size(), true);
  size_t width = 0;
  for (const TableColumn& c : columns) width += c.width;
  while (width > room) {
    size_t next = columns.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      const int best = next < columns.size() ? columns[next].rank : 0;
      if (shown[i] && columns[i].rank > best) next = i;
    }
    if (next == columns.size()) break;
    shown[next] = false;
    width -= columns[next].width;
  }
  return shown;
}

}  // namespace sluice
