#include "src/server/ollama_pull_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

extern char** environ;

namespace sluice {
namespace {

constexpr size_t kLongestLine = size_t{64} << 10;

Status SystemError(const char* what, int error) {
  return Status(StatusCode::kIo, std::string(what) + ": " + std::strerror(error));
}

// The child starts as from a shell: the server's signal mask and ignored signals are its own.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

class FileActions {
 public:
  explicit FileActions(int error_fd) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, error_fd, STDERR_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    // Sockets of clients and listeners must not live on in it.
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

Result<std::unique_ptr<PullProcess>> PullProcess::Start(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe", errno);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  int error = 0;
  {
    const Attributes attributes;
    const FileActions actions(ends[1]);
    error = posix_spawnp(&pid, arguments[0], actions.get(), attributes.get(), arguments.data(),
                         environ);
  }
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return SystemError("the program that fetches models cannot be started", error);
  }
  return std::unique_ptr<PullProcess>(new PullProcess(pid, ends[0]));
}

PullProcess::~PullProcess() {
  Kill();
  Wait();
  close(fd_);
}

bool PullProcess::ReadLine(std::string* line) {
  for (;;) {
    const size_t end = buffer_.find_first_of("\n\r");
    if (end != std::string::npos || buffer_.size() > kLongestLine) {
      *line = buffer_.substr(0, end);
      buffer_.erase(0, end == std::string::npos ? end : end + 1);
      if (!line->empty()) return true;
      continue;
    }
    char bytes[4096];
    const ssize_t n = read(fd_, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    buffer_.append(bytes, static_cast<size_t>(n));
  }
  *line = std::exchange(buffer_, "");
  return !line->empty();
}

void PullProcess::Kill() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (pid_ > 0) kill(-pid_, SIGKILL);
}

int PullProcess::Wait() {
  pid_t pid;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pid = pid_;
  }
  if (pid < 0) return 0;
  // Without reaping it: as long as it is there, its number is its own.
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace sluice
