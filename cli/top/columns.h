// The columns of the table of requests: which there are, which have room, and
// the order they bring rows in. Pure; any thread.
#ifndef SLUICE_CLI_TOP_COLUMNS_H_
#define SLUICE_CLI_TOP_COLUMNS_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/top/state.h"
#include "cli/top/text.h"

namespace sluice::top {

struct Column {
  const char* title;
  size_t width;      // at least
  size_t widest;     // where there is room left
  bool left;         // aligned
  int rank;          // of those that do not fit, the highest go first
  const char* what;  // for the help
  std::string (*text)(const RequestRow&);
  Number (*number)(const RequestRow&);  // to sort by, largest first; null: by text
};

// In the order they are drawn.
std::span<const Column> AllColumns();
inline constexpr size_t kNoColumn = static_cast<size_t>(-1);

struct PlacedColumn {
  size_t index;  // into AllColumns()
  size_t width;
};
// Those that this server fills and that fit side by side, a blank before each and one at the end.
std::vector<PlacedColumn> PlaceColumns(const View& view, size_t width);

// The rows by that column; kNoColumn: in order of arrival. Equal ones stay as they came.
std::vector<const RequestRow*> SortedRows(const View& view, size_t column, bool reversed);

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_COLUMNS_H_
