#include "cli/top/controls.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cli/top/help.h"

namespace sluice::top {

namespace {

constexpr double kIntervals[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60};
constexpr int64_t kFar = INT32_MAX;

// How far a key moves; 0: it does something else.
int64_t LinesOf(Key::Kind kind, int64_t page) {
  switch (kind) {
    case Key::kUp:
      return -1;
    case Key::kDown:
      return 1;
    case Key::kPageUp:
      return -page;
    case Key::kPageDown:
      return page;
    case Key::kHome:
      return -kFar;
    case Key::kEnd:
      return kFar;
    default:
      return 0;
  }
}

}  // namespace

const RequestRow* Controls::Selected(const View& view) const {
  const std::vector<const RequestRow*> rows = SortedRows(view, sort, reversed);
  if (rows.empty()) return nullptr;
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const RequestRow* row) { return row->key == selected; });
  return found == rows.end() ? rows.front() : *found;
}

Controls::Outcome Controls::Press(Key key, const View& view, size_t width, size_t page) {
  if (key.kind == Key::kNone || key.kind == Key::kResize) return {};
  message.clear();
  if (!asking.empty()) return Answer(key);
  const auto rows = static_cast<int64_t>(std::max<size_t>(page, 1));
  if (const int64_t by = LinesOf(key.kind, rows); by != 0) {
    pane == Pane::kHelp ? Scroll(by, view, width, page) : Move(view, by);
    return {};
  }
  switch (key.kind) {
    case Key::kLeft:
      NextSort(view, width, -1);
      break;
    case Key::kRight:
      NextSort(view, width, 1);
      break;
    case Key::kEnter:
      if (const RequestRow* row = Selected(view); row != nullptr && pane == Pane::kList) {
        selected = row->key;  // the detail stays with it
        pane = Pane::kDetail;
      } else {
        pane = Pane::kList;
      }
      break;
    case Key::kEscape:
      pane = Pane::kList;
      break;
    default:
      if (key.letter == 'q' && pane == Pane::kList) return {Action::kQuit, ""};
      PressLetter(key.letter, view, width);
  }
  return {};
}

Controls::Outcome Controls::Answer(Key key) {
  const std::string id = std::exchange(asking, "");
  if (key.kind == Key::kLetter && (key.letter == 'y' || key.letter == 'Y')) {
    message = "cancelling " + id;
    return {Action::kCancel, id};
  }
  message = "not cancelled";
  return {};
}

void Controls::PressLetter(char letter, const View& view, size_t width) {
  switch (letter) {
    case 'q':
      pane = Pane::kList;
      break;
    case 's':
      NextSort(view, width, 1);
      break;
    case 'r':
      reversed = !reversed;
      break;
    case 'k':
    case 'c':
      AskToCancel(view);
      break;
    case 'h':
    case '?':
      pane = pane == Pane::kHelp ? Pane::kList : Pane::kHelp;
      help_top = 0;
      break;
    case ' ':
      paused = !paused;
      break;
    case '+':
    case '=':
      ChangeInterval(1);
      break;
    case '-':
      ChangeInterval(-1);
      break;
    default:
      message = "no such key: h shows them";
  }
}

void Controls::Move(const View& view, int64_t by) {
  const std::vector<const RequestRow*> rows = SortedRows(view, sort, reversed);
  if (rows.empty()) return;
  const auto is = std::find(rows.begin(), rows.end(), Selected(view)) - rows.begin();
  const int64_t last = static_cast<int64_t>(rows.size()) - 1;
  selected = rows[static_cast<size_t>(std::clamp<int64_t>(is + by, 0, last))]->key;
}

void Controls::Scroll(int64_t by, const View& view, size_t width, size_t page) {
  const size_t lines = HelpLines(view, width).size();
  const auto last = static_cast<int64_t>(lines - std::min(lines, page));
  help_top = static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(help_top) + by, 0, last));
}

// Through the columns that are seen, and no column.
void Controls::NextSort(const View& view, size_t width, int64_t by) {
  const std::vector<PlacedColumn> columns = PlaceColumns(view, width);
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const PlacedColumn& c) { return c.index == sort; });
  const auto count = static_cast<int64_t>(columns.size());
  // 0 is no column.
  const int64_t is = found == columns.end() ? 0 : found - columns.begin() + 1;
  const int64_t next = (is + by + count + 1) % (count + 1);
  sort = next == 0 ? kNoColumn : columns[static_cast<size_t>(next - 1)].index;
  message =
      next == 0 ? "in order of arrival" : std::string("sorted by ") + AllColumns()[sort].title;
}

void Controls::AskToCancel(const View& view) {
  const RequestRow* row = Selected(view);
  if (row == nullptr) {
    message = "there is no request to cancel";
  } else if (pane == Pane::kDetail && row->key != selected) {
    message = "this request has ended";
  } else if (row->request_id.empty()) {
    message =
        std::string("requests of ") + ServerKindName(view.kind) + " cannot be cancelled from here";
  } else {
    asking = row->request_id;
  }
}

void Controls::ChangeInterval(int by) {
  const auto above = std::upper_bound(std::begin(kIntervals), std::end(kIntervals), interval_s);
  const auto from = std::lower_bound(std::begin(kIntervals), std::end(kIntervals), interval_s);
  if (by > 0 && above != std::end(kIntervals)) interval_s = *above;
  if (by < 0 && from != std::begin(kIntervals)) interval_s = *(from - 1);
}

}  // namespace sluice::top
