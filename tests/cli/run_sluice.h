// Runs the sluice program as a user would: arguments, environment, stdin; collects stdout, stderr
// and the exit code.
#ifndef SLUICE_TESTS_CLI_RUN_SLUICE_H_
#define SLUICE_TESTS_CLI_RUN_SLUICE_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/base/temp_folder.h"

namespace sluice {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal, if one ended it
  std::string out, err;

  // What an error must look like: exit code, nothing on stdout, one line on stderr.
  bool IsOneLineError(int code) const {
    return exit_code == code && out.empty() && err.starts_with("sluice ") && err.size() > 8 &&
           err.find('\n') == err.size() - 1;
  }
};

using Environment = std::map<std::string, std::string>;

// The process that RunSluice waits for, for a test that has something to tell it; 0: there is none.
inline std::atomic<pid_t> running_sluice{0};

// `environment` comes on top of the test's own. `out`: a file that takes the standard output.
inline ProgramResult RunSluice(std::vector<std::string> arguments,
                               const Environment& environment = {}, const std::string& input = "",
                               const std::string& out = "") {
  const TempFolder folder;
  std::ofstream(folder.path("in"), std::ios::binary) << input;
  std::vector<std::string> variables;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string variable = *e;
    if (!environment.contains(variable.substr(0, variable.find('='))))
      variables.push_back(variable);
  }
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  arguments.insert(arguments.begin(), SLUICE_BINARY);
  std::vector<char*> argv, envp;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  for (std::string& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, folder.path("in").c_str(), O_RDONLY, 0);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  const std::string out_path = out.empty() ? folder.path("out") : out;
  posix_spawn_file_actions_addopen(&actions, 1, out_path.c_str(), kWrite, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, folder.path("err").c_str(), kWrite, 0600);
  pid_t pid = 0;
  ProgramResult result;
  if (posix_spawn(&pid, SLUICE_BINARY, &actions, nullptr, argv.data(), envp.data()) == 0) {
    running_sluice = pid;
    int state = 0;
    waitpid(pid, &state, 0);
    running_sluice = 0;
    result.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  }
  posix_spawn_file_actions_destroy(&actions);
  const auto text = [&](const char* name) {
    const std::vector<uint8_t> bytes = ReadFile(folder.path(name));
    return std::string(bytes.begin(), bytes.end());
  };
  if (out.empty()) result.out = text("out");
  result.err = text("err");
  return result;
}

}  // namespace sluice
#endif  // SLUICE_TESTS_CLI_RUN_SLUICE_H_
