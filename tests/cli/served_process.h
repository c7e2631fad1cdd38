// A `sluice serve` of its own, on a free port of 127.0.0.1, for the life of an object.
#ifndef SLUICE_TESTS_CLI_SERVED_PROCESS_H_
#define SLUICE_TESTS_CLI_SERVED_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/temp_folder.h"

namespace sluice {

// True as soon as it is; false after a minute or more, which is for hangs only. Counts its looks: a
// machine that stood still in between has not hung.
inline bool WaitUntil(const std::function<bool()>& true_now) {
  for (int looks = 0; !true_now(); ++looks) {
    if (looks == 3000) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

class ServedProcess {
 public:
  // Waits until it listens; port() is 0 if it never did. `port` 0: a free one.
  ServedProcess(const std::string& model, std::vector<std::string> flags, int port = 0) {
    std::vector<std::string> words = {SLUICE_BINARY, "serve", model, "--port",
                                      std::to_string(port)};
    words.insert(words.end(), flags.begin(), flags.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, folder_.path("err").c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (posix_spawn(&pid_, SLUICE_BINARY, &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    (void)WaitUntil([&] {
      const std::string text = log(), ready = "ready on http://127.0.0.1:";
      const size_t at = text.find(ready);
      if (at != std::string::npos) port_ = std::atoi(text.c_str() + at + ready.size());
      return port_ != 0 || pid_ <= 0 || waitpid(pid_, nullptr, WNOHANG) == pid_;
    });
  }
  ~ServedProcess() { End(); }

  // At once, whatever runs.
  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string log() const {
    const std::vector<uint8_t> bytes = ReadFile(folder_.path("err"));
    return {bytes.begin(), bytes.end()};
  }

 private:
  TempFolder folder_;
  pid_t pid_ = -1;
  int port_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_CLI_SERVED_PROCESS_H_
