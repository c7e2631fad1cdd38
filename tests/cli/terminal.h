// A terminal of any size, played by tmux.
#ifndef SLUICE_TESTS_CLI_TERMINAL_H_
#define SLUICE_TESTS_CLI_TERMINAL_H_

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/base/temp_folder.h"
#include "tests/cli/served_process.h"

namespace sluice {

inline std::string OutputOf(const std::string& command) {
  std::string out;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return out;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) out.append(buffer, n);
  pclose(pipe);
  return out;
}

// A terminal whose shell runs one command and then says how it left the terminal.
class Terminal {
 public:
  Terminal(int width, int height, const std::string& command) {
    const std::string size = " -x " + std::to_string(width) + " -y " + std::to_string(height);
    const std::string then =
        "; echo left=$?; stty -a | tr \" \" \"\\n\" | grep -x -e \"-*echo\" -e \"-*icanon\"";
    (void)Tmux("new-session -d" + size + " '" + command + then + "; sleep 300'");
  }
  static bool Works() { return OutputOf("tmux -V").find("tmux 3") == 0; }
  ~Terminal() { (void)Tmux("kill-server"); }

  std::string Text() const { return Tmux("capture-pane -p"); }
  // With lines that the terminal had to break in one piece.
  std::string Unbroken() const { return Tmux("capture-pane -p -J"); }
  std::string Codes() const { return Tmux("capture-pane -p -e"); }
  void Press(const std::string& keys) const { (void)Tmux("send-keys " + keys); }
  void Resize(int width, int height) const {
    (void)Tmux("resize-window -x " + std::to_string(width) + " -y " + std::to_string(height));
  }
  bool Shows(const std::string& text) const {
    return WaitUntil([&] { return Text().find(text) != std::string::npos; });
  }

 private:
  std::string Tmux(const std::string& command) const {
    return OutputOf("LC_ALL=C.UTF-8 tmux -u -f /dev/null -S " + folder_.path("tmux") + " " +
                    command);
  }
  TempFolder folder_;
};

// Columns of the longest line.
inline size_t Widest(const std::string& screen) {
  size_t widest = 0, columns = 0;
  for (const char c : screen) {
    if (c == '\n') columns = 0;
    if (c != '\n' && (static_cast<unsigned char>(c) & 0xC0) != 0x80) ++columns;
    widest = std::max(widest, columns);
  }
  return widest;
}

}  // namespace sluice
#endif  // SLUICE_TESTS_CLI_TERMINAL_H_
