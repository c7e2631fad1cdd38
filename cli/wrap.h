// Text that fits a terminal: how wide one is, and lines broken between words, tables
// without what has no room. Stateless.
#ifndef SLUICE_CLI_WRAP_H_
#define SLUICE_CLI_WRAP_H_

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

constexpr size_t kUsualColumns = 80;

// Of the terminal that the stream is; `otherwise` where it is none.
size_t ColumnsOf(std::FILE* stream, size_t otherwise = kUsualColumns);

// Columns that UTF-8 text takes; escape sequences of colours take none.
size_t TextColumns(std::string_view text);

// The words of `text` in lines of at most `columns`. The first line goes on where `indent` columns
// are taken already, the others begin with as many blanks; no newline at the end. A newline counts
// as a blank, a longer word stands alone. One line where hardly any room would be left, so also
// with 0 columns.
std::string Wrapped(std::string_view text, size_t indent, size_t columns);

// A column of a table: how wide it is with what is between it and the next; `rank` 0: always shown.
struct TableColumn {
  size_t width = 0;
  int rank = 0;
};
// Whether each is shown in a line of at most `room`: those of the highest rank go first.
std::vector<bool> ShownColumns(const std::vector<TableColumn>& columns, size_t room);

}  // namespace sluice
#endif  // SLUICE_CLI_WRAP_H_
