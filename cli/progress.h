// Progress on stderr: a bar on a terminal, silent on a pipe, or lines for programs. Used by
// subcommands with long work; Update may be called from any thread.
#ifndef SLUICE_CLI_PROGRESS_H_
#define SLUICE_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

namespace sluice {

class Progress {
 public:
  // kBytes shows sizes and a rate; kCount plain numbers.
  enum class Unit { kBytes, kCount };

  explicit Progress(std::string title, Unit unit = Unit::kBytes);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `total` 0: not known. `note` is shown at the end of the line. Redrawn at most ten times a
  // second.
  void Update(uint64_t done, uint64_t total, const std::string& note = "");

  bool visible() const { return visible_; }

 private:
  const std::string title_;
  const Unit unit_;
  const bool visible_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::chrono::steady_clock::time_point drawn_{};  // guarded by mutex_
  uint64_t first_ = UINT64_MAX;  // guarded by mutex_: a resumed download starts here
};

// The same for programs that read stderr: a line of JSON with title, completed and total, at most
// four times a second and at the end.
class ProgressLines {
 public:
  explicit ProgressLines(std::string title) : title_(std::move(title)) {}
  void Update(uint64_t done, uint64_t total);

 private:
  const std::string title_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point written_{};  // guarded by mutex_
};

// "241.4 MiB": what memory and files hold.
std::string HumanBytes(uint64_t bytes);
// "253.1 MB": what moves, per token or second. In powers of ten, as GB/s are.
std::string TrafficBytes(double bytes);

}  // namespace sluice
#endif  // SLUICE_CLI_PROGRESS_H_
