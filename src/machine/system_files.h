// What the system tells about itself in /proc and /sys, read a file at a time below a
// root, so that tests (and `sluice doctor --root`) bring a tree of their own. An error
// says which file could not be read and why. Any thread.
#ifndef SLUICE_SRC_MACHINE_SYSTEM_FILES_H_
#define SLUICE_SRC_MACHINE_SYSTEM_FILES_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/status.h"

namespace sluice {

class SystemFiles {
 public:
  // `root` is put before every path; "" is this machine.
  explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}
  const std::string& root() const { return root_; }

  // All of a file, without the white space at its end.
  Result<std::string> Text(const std::string& path) const;
  // A file that begins with a number.
  Result<double> Number(const std::string& path) const;
  // The word in brackets: "always [madvise] never" is madvise.
  Result<std::string> Chosen(const std::string& path) const;
  // A list of CPUs or nodes, "0-3,8"; ascending.
  Result<std::vector<int>> List(const std::string& path) const;
  // What follows `key` (with its colon, if it has one) at the begin of a line.
  Result<std::string> Field(const std::string& path, std::string_view key) const;
  Result<double> FieldNumber(const std::string& path, std::string_view key) const;
  bool Exists(const std::string& path) const;
  // Names in a folder that begin with `prefix` and go on with a number ("cpu" finds cpu0, cpu1), by
  // that number; empty if there is no such folder.
  std::vector<std::string> Numbered(const std::string& folder, std::string_view prefix) const;

 private:
  std::string root_;
};

// "0-3,8" as numbers; empty when it is something else.
std::vector<int> ParseList(std::string_view text);
// The other way round.
std::string ListText(const std::vector<int>& numbers);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_SYSTEM_FILES_H_
