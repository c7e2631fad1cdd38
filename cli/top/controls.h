// What the keys of `sluice top` do: the state of the screen that is not the
// server's. Pure; the thread that draws owns it.
#ifndef SLUICE_CLI_TOP_CONTROLS_H_
#define SLUICE_CLI_TOP_CONTROLS_H_

#include <cstdint>
#include <string>

#include "cli/top/columns.h"
#include "cli/top/state.h"

namespace sluice::top {

enum class Pane : uint8_t { kList, kDetail, kHelp };

// A letter is itself; what has no letter has a name.
struct Key {
  enum Kind : uint8_t {
    kNone,
    kLetter,
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kEscape,
    kResize
  };
  Kind kind = kNone;
  char letter = 0;
};

struct Controls {
  Pane pane = Pane::kList;
  size_t sort = kNoColumn;  // into AllColumns()
  bool reversed = false;
  std::string selected;  // RequestRow::key; empty: the first
  double interval_s = 1;
  bool paused = false;
  std::string asking;   // the request_id whose cancelling waits for y or n
  std::string message;  // shown until the next key
  size_t help_top = 0;  // line of the help that is shown first

  enum class Action : uint8_t { kNone, kQuit, kCancel };
  // `width` of the screen, `page` rows of what it shows. kCancel: of `asking` as it was.
  struct Outcome {
    Action action = Action::kNone;
    std::string request_id;
  };
  Outcome Press(Key key, const View& view, size_t width, size_t page);

  // The row the cursor is on; null: there are none.
  const RequestRow* Selected(const View& view) const;

 private:
  Outcome Answer(Key key);
  void PressLetter(char letter, const View& view, size_t width);
  void Move(const View& view, int64_t by);
  void Scroll(int64_t by, const View& view, size_t width, size_t page);
  void NextSort(const View& view, size_t width, int64_t by);
  void AskToCancel(const View& view);
  void ChangeInterval(int by);
};

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_CONTROLS_H_
