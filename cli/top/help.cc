#include "cli/top/help.h"

#include "cli/top/columns.h"

namespace sluice::top {

std::vector<HelpLine> HelpLines(const View& view, size_t width) {
  std::vector<HelpLine> lines = {
      {"up, down", "choose a request (also page up, page down, home, end)"},
      {"s, left, right", "sort by another column; r turns the order around"},
      {"Enter", "all about the chosen request; Enter or Esc: back"},
      {"k, c", "cancel the chosen request (asks first)"},
      {"space", "stand still, go on"},
      {"+, -", "look less often, more often"},
      {"h, q", "this help, which up and down scroll; quit"},
      {"", ""},
  };
  for (const PlacedColumn& column : PlaceColumns(view, width)) {
    lines.push_back({AllColumns()[column.index].title, AllColumns()[column.index].what});
  }
  // No blank line here: on 80x24 the last line would not be seen.
  lines.push_back({"bandwidth", "bytes read per second, of the most these threads can read"});
  lines.push_back({"compute", "multiply-adds per second, of what the kernels reach at most"});
  lines.push_back({"stalls", "what the time of the last passes went to"});
  lines.push_back({"KV pool", "keys and values in use, and kept for prompts that begin alike"});
  return lines;
}

}  // namespace sluice::top
