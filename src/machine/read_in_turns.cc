#include "src/machine/read_in_turns.h"

#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>

#include "simd/stream.h"
#include "src/base/small_file.h"
#include "src/machine/topology.h"

namespace sluice {
namespace {

constexpr size_t kMostBytes = 512 << 20;
constexpr size_t kPage = 4096;

double Seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Empty: cannot be told.
std::string Key(const ThreadTeam& team, bool this_boot) {
  utsname system{};
  uname(&system);
  std::string key = ThisMachine().cpu_name + ", " + system.release + ", " +
                    std::to_string(team.size()) + " threads";
  if (this_boot) {
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    if (boot.empty()) return "";
    key += ", " + boot;
  }
  return key;
}

}  // namespace

WindowTimes ReadInTurns(ThreadTeam& team, std::span<const uint8_t> a, std::span<const uint8_t> b,
                        int passes) {
  WindowTimes times;
  const size_t bytes = std::min({a.size(), b.size(), kMostBytes});
  if (bytes < kLeastReadBytes) return times;
  const size_t windows = bytes / kReadWindowBytes;
  std::atomic<uint64_t> sum{0};
  team.Run([&](Worker& worker) {
    const auto [begin, end] = worker.Share(kReadWindowBytes, kPage);
    const auto read = [&](std::span<const uint8_t> map, size_t window,
                          std::vector<double>* seconds) {
      const size_t apart = map.size() / windows / kPage * kPage;
      const uint8_t* from = map.data() + window % windows * apart;
      worker.Barrier();
      const double start = Seconds();
      sum.fetch_add(ReadSum(from + begin, end - begin), std::memory_order_relaxed);
      worker.Barrier();
      if (worker.index() == 0) seconds->push_back(Seconds() - start);
    };
    for (size_t i = 0; i < windows * static_cast<size_t>(passes); ++i) {
      read(a, i, &times.a_s);
      read(b, i + windows / 2, &times.b_s);
    }
  });
  return times;
}

std::optional<double> Recall(const std::string& path, const ThreadTeam& team, bool this_boot) {
  const std::string wanted = Key(team, this_boot);
  const Result<std::string> text = ReadSmallFile(path, 4096);
  if (wanted.empty() || !text.ok()) return std::nullopt;
  std::istringstream in(*text);
  std::string key;
  double number = 0;
  if (!std::getline(in, key) || key != wanted || !(in >> number)) return std::nullopt;
  return number;
}

void Remember(const std::string& path, const ThreadTeam& team, double number, bool this_boot) {
  const std::string key = Key(team, this_boot);
  if (key.empty()) return;
  std::ostringstream text;
  text << key << "\n" << number << "\n";
  (void)WriteSmallFile(path, text.str());
}

}  // namespace sluice
