// A program that runs beside the server and reports on its standard error: the
// one that fetches a model for /api/pull. Read by one thread; killed by any.
#ifndef SLUICE_SRC_SERVER_OLLAMA_PULL_PROCESS_H_
#define SLUICE_SRC_SERVER_OLLAMA_PULL_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

class PullProcess {
 public:
  // Program (looked up in PATH if it has no slash) and arguments. It reads nothing, what it prints
  // on its standard output is dropped, and it inherits no other file of ours.
  static Result<std::unique_ptr<PullProcess>> Start(const std::vector<std::string>& command);
  ~PullProcess();  // kills it
  PullProcess(const PullProcess&) = delete;
  PullProcess& operator=(const PullProcess&) = delete;

  // The next line of its standard error, up to '\n' or '\r', cut after 64 KiB; false: it closed it.
  bool ReadLine(std::string* line);
  // Ends it and what it started. At once, as nothing is lost: downloads go on where they stopped.
  void Kill();
  // Waits for its end: its exit code, 128 + the number of the signal that ended it. Once.
  int Wait();

 private:
  PullProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  std::mutex mutex_;
  pid_t pid_;  // -1: waited for, the number may be another's. Guarded by mutex_
  const int fd_;
  std::string buffer_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OLLAMA_PULL_PROCESS_H_
