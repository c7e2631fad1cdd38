#include "cli/top/screen.h"

#include <langinfo.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#define NCURSES_NOMACROS
#include <curses.h>
#include <term.h>  // whose macros have names such as `lines`

namespace sluice::top {

namespace {

// What a handler of a crash needs to give the terminal back: no allocation, no ncurses.
struct Restore {
  termios before{};
  char bytes[256] = {};
  size_t count = 0;
};
Restore restore;
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT};

void GiveBackAndDie(int signal) {
  (void)!write(STDOUT_FILENO, restore.bytes, restore.count);
  tcsetattr(STDOUT_FILENO, TCSANOW, &restore.before);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Remember(const char* capability) {
  const char* bytes = tigetstr(capability);
  if (bytes == nullptr || bytes == reinterpret_cast<const char*>(-1)) return;
  const size_t count = std::strlen(bytes);
  if (restore.count + count > sizeof(restore.bytes)) return;
  std::memcpy(restore.bytes + restore.count, bytes, count);
  restore.count += count;
}

void WatchCrashes() {
  restore.count = 0;
  for (const char* capability : {"sgr0", "rmkx", "cnorm", "rmcup"}) Remember(capability);
  struct sigaction action = {};
  action.sa_handler = GiveBackAndDie;
  sigemptyset(&action.sa_mask);
  for (int signal : kCrashes) sigaction(signal, &action, nullptr);
}

// Pairs are numbered by style; 0 is the terminal's own.
void StartColours() {
  start_color();
  use_default_colors();
  const auto pair = [](Style style, short colour) {
    init_pair(static_cast<short>(style), colour, -1);
  };
  pair(Style::kGood, COLOR_GREEN);
  pair(Style::kBusy, COLOR_CYAN);
  pair(Style::kWarn, COLOR_YELLOW);
  pair(Style::kBad, COLOR_RED);
}

attr_t AttributesOf(Style style, bool colour) {
  switch (style) {
    case Style::kPlain:
      return A_NORMAL;
    case Style::kDim:
      return A_DIM;
    case Style::kStrong:
      return A_BOLD;
    case Style::kHeader:
      return A_REVERSE;
    case Style::kSorted:
      return A_REVERSE | A_BOLD;
    case Style::kGood:
    case Style::kBusy:
      return colour ? static_cast<attr_t>(COLOR_PAIR(static_cast<int>(style))) : A_NORMAL;
    case Style::kWarn:
    case Style::kBad:
      return colour ? A_BOLD | static_cast<attr_t>(COLOR_PAIR(static_cast<int>(style))) : A_BOLD;
  }
  return A_NORMAL;
}

}  // namespace

bool LocaleIsUtf8() { return std::string_view(nl_langinfo(CODESET)) == "UTF-8"; }

Result<std::unique_ptr<Screen>> Screen::Open(bool colour) {
  tcgetattr(STDOUT_FILENO, &restore.before);
  SCREEN* terminal = newterm(nullptr, stdout, stdin);
  if (terminal == nullptr) {
    const char* name = std::getenv("TERM");
    return Status(StatusCode::kUnsupported, std::string("cannot draw on this terminal (TERM is ") +
                                                (name == nullptr ? "not set" : name) +
                                                "); --once prints one look as text");
  }
  std::unique_ptr<Screen> screen(new Screen(colour && has_colors()));
  screen->terminal_ = terminal;
  WatchCrashes();
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  set_escdelay(50);
  curs_set(0);
  if (screen->colour_) StartColours();
  return screen;
}

Screen::~Screen() {
  for (int signal : kCrashes) std::signal(signal, SIG_DFL);
  endwin();
  delscreen(static_cast<SCREEN*>(terminal_));
}

Size Screen::size() const {
  int height = 0, width = 0;
  getmaxyx(stdscr, height, width);
  return {static_cast<size_t>(width), static_cast<size_t>(height), LocaleIsUtf8()};
}

void Screen::Draw(const std::vector<Line>& frame) {
  werase(stdscr);
  for (size_t y = 0; y < frame.size(); ++y) {
    wmove(stdscr, static_cast<int>(y), 0);
    for (const auto& [text, style] : frame[y].pieces) {
      attr_t attributes = AttributesOf(style, colour_);
      if (frame[y].selected) attributes |= A_REVERSE;
      wattrset(stdscr, static_cast<int>(attributes));
      waddstr(stdscr, text.c_str());
    }
  }
  wattrset(stdscr, A_NORMAL);
  wrefresh(stdscr);
}

Key Screen::Read(int timeout_ms) {
  wtimeout(stdscr, timeout_ms);
  const int key = wgetch(stdscr);
  switch (key) {
    case ERR:
      return {};
    case KEY_RESIZE:
      clearok(stdscr, TRUE);  // what a shrinking terminal moved about is drawn anew
      return {Key::kResize};
    case KEY_UP:
      return {Key::kUp};
    case KEY_DOWN:
      return {Key::kDown};
    case KEY_LEFT:
      return {Key::kLeft};
    case KEY_RIGHT:
      return {Key::kRight};
    case KEY_PPAGE:
      return {Key::kPageUp};
    case KEY_NPAGE:
      return {Key::kPageDown};
    case KEY_HOME:
      return {Key::kHome};
    case KEY_END:
      return {Key::kEnd};
    case '\n':
    case '\r':
    case KEY_ENTER:
      return {Key::kEnter};
    case 27:
      return {Key::kEscape};
    default:
      return key >= ' ' && key <= '~' ? Key{Key::kLetter, static_cast<char>(key)} : Key{};
  }
}

}  // namespace sluice::top
