#include "src/machine/quota.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

// One mounted cgroup hierarchy, and where in it this process sits.
struct Hierarchy {
  bool v2 = false;
  std::string mount;  // "/sys/fs/cgroup/cpu"
  std::string group;  // below the mount: "" or "/a/b"
};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

bool Contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// The process's path in the hierarchy: "cpu" for v1, "" for v2. Lines read "4:cpu,cpuacct:/a/b".
std::optional<std::string> GroupPath(const std::string& root, std::string_view controller) {
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const bool match = controller.empty() ? names.empty() : Contains(Split(names, ','), controller);
    if (match) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The group's path below a mount that shows `mount_root` of the hierarchy. A container often sees
// its own group mounted as the top while /proc still tells the host's path.
std::string BelowMount(const std::string& group, const std::string& mount_root) {
  if (group == "/" || group == mount_root || group.starts_with("/..")) return "";
  if (mount_root == "/") return group;
  if (group.starts_with(mount_root + "/")) return group.substr(mount_root.size());
  return "";
}

// mountinfo: id parent major:minor root mount options [optional fields] - type source super-options
std::vector<Hierarchy> Hierarchies(const std::string& root, std::string_view controller) {
  std::vector<Hierarchy> found;
  std::ifstream in(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto left = Split(line.substr(0, dash), ' ');
    const auto right = Split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const bool v2 = right[0] == "cgroup2";
    if (!v2 && !(right[0] == "cgroup" && Contains(Split(right[2], ','), controller))) continue;
    const auto group = GroupPath(root, v2 ? "" : controller);
    if (group) found.push_back({v2, left[4], BelowMount(*group, left[3])});
  }
  return found;
}

std::vector<std::string> Words(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> words;
  for (std::string word; words.size() < 4 && in >> word;) words.push_back(word);
  return words;
}

// "max", "-1" and anything that is no positive number give nullopt.
std::optional<double> Positive(const std::vector<std::string>& words, size_t i) {
  if (i >= words.size()) return std::nullopt;
  double value = 0;
  const auto [end, error] =
      std::from_chars(words[i].data(), words[i].data() + words[i].size(), value);
  if (error != std::errc() || !(value > 0) || std::isinf(value)) return std::nullopt;
  return value;
}

// Calls visit(folder, v2) for the process's group and its ancestors up to the mount.
template <class Visit>
void ForGroups(const std::string& root, std::string_view controller, Visit visit) {
  for (Hierarchy& h : Hierarchies(root, controller)) {
    for (;;) {
      visit(root + h.mount + h.group + "/", h.v2);
      if (h.group.empty()) break;
      h.group.resize(h.group.rfind('/') == std::string::npos ? 0 : h.group.rfind('/'));
    }
  }
}

// Smallest limit(folder, v2) over these groups.
template <class Limit>
std::optional<double> Smallest(const std::string& root, std::string_view controller, Limit limit) {
  std::optional<double> smallest;
  ForGroups(root, controller, [&](const std::string& folder, bool v2) {
    const auto here = limit(folder, v2);
    if (here) smallest = std::min(smallest.value_or(*here), *here);
  });
  return smallest;
}

std::optional<double> CpuLimit(const std::string& folder, bool v2) {
  std::optional<double> quota, period;
  if (v2) {
    const auto words = Words(folder + "cpu.max");
    quota = Positive(words, 0);
    period = Positive(words, 1);
  } else {
    quota = Positive(Words(folder + "cpu.cfs_quota_us"), 0);
    period = Positive(Words(folder + "cpu.cfs_period_us"), 0);
  }
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

std::optional<double> MemoryFileLimit(const std::string& folder, bool v2) {
  const auto bytes = Positive(Words(folder + (v2 ? "memory.max" : "memory.limit_in_bytes")), 0);
  // v1 writes "no limit" as the largest multiple of a page below 2^63.
  if (bytes && *bytes > 4e18) return std::nullopt;
  return bytes;
}

// Lines read "nr_throttled 3" and, of v1 in ns, "throttled_time 123", of v2 "throttled_usec 123".
Throttling ReadThrottling(const std::string& file) {
  Throttling found;
  std::ifstream in(file);
  std::string key;
  for (uint64_t value = 0; in >> key >> value;) {
    if (key == "nr_throttled") found.periods = value;
    if (key == "throttled_time") found.seconds = 1e-9 * static_cast<double>(value);
    if (key == "throttled_usec") found.seconds = 1e-6 * static_cast<double>(value);
  }
  return found;
}

}  // namespace

std::optional<double> CpuQuota(const std::string& root) { return Smallest(root, "cpu", CpuLimit); }

uint64_t CpuThrottledPeriods(const std::string& root) {
  uint64_t most = 0;
  ForGroups(root, "cpu", [&](const std::string& folder, bool) {
    most = std::max(most, ReadThrottling(folder + "cpu.stat").periods);
  });
  return most;
}

double CpuThrottledShare(const std::string& root) {
  double most = 0;
  ForGroups(root, "cpu", [&](const std::string& folder, bool) {
    std::ifstream in(folder + "cpu.stat");
    std::string key;
    double periods = 0, throttled = 0;
    for (double value = 0; in >> key >> value;) {
      if (key == "nr_periods") periods = value;
      if (key == "nr_throttled") throttled = value;
    }
    if (periods > 0) most = std::max(most, throttled / periods);
  });
  return most;
}

ThrottleMeter::ThrottleMeter(const std::string& root) {
  ForGroups(root, "cpu", [&](const std::string& folder, bool) {
    const std::string file = folder + "cpu.stat";
    if (std::ifstream(file)) groups_.push_back({file, ReadThrottling(file)});
  });
}

Throttling ThrottleMeter::Next() {
  Throttling most;
  for (Group& group : groups_) {
    const Throttling now = ReadThrottling(group.file);
    const Throttling grown = {now.periods - std::min(now.periods, group.seen.periods),
                              std::max(0.0, now.seconds - group.seen.seconds)};
    group.seen = now;
    most.periods = std::max(most.periods, grown.periods);
    most.seconds = std::max(most.seconds, grown.seconds);
  }
  return most;
}

std::optional<uint64_t> MemoryLimit(const std::string& root) {
  const auto bytes = Smallest(root, "memory", MemoryFileLimit);
  if (!bytes) return std::nullopt;
  return static_cast<uint64_t>(*bytes);
}

}  // namespace sluice
