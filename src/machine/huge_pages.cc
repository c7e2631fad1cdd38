#include "src/machine/huge_pages.h"

#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sstream>

#include "simd/stream.h"
#include "src/base/small_file.h"
#include "src/machine/topology.h"

namespace sluice {
namespace {

constexpr size_t kWindowBytes = 32 << 20;
constexpr size_t kMostBytes = 512 << 20;
constexpr int kPasses = 2;
constexpr size_t kPage = 4096;

double Seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::string MachineKey(const ThreadTeam& team) {
  utsname system{};
  uname(&system);
  return ThisMachine().cpu_name + ", " + system.release + ", " + std::to_string(team.size()) +
         " threads";
}

}  // namespace

double HugePageGain(ThreadTeam& team, const uint8_t* small, const uint8_t* huge, size_t bytes) {
  const size_t windows = std::min(bytes, kMostBytes) / kWindowBytes;
  if (windows < 4) return 1;
  const uint8_t* const maps[2] = {small, huge};
  double best_s[2] = {1e9, 1e9};
  std::atomic<uint64_t> sum{0};
  team.Run([&](Worker& worker) {
    const auto [begin, end] = worker.Share(kWindowBytes, kPage);
    const auto read = [&](int map, size_t window) {
      const uint8_t* from = maps[map] + window % windows * kWindowBytes;
      worker.Barrier();
      const double start = Seconds();
      sum.fetch_add(ReadSum(from + begin, end - begin), std::memory_order_relaxed);
      worker.Barrier();
      if (worker.index() == 0) best_s[map] = std::min(best_s[map], Seconds() - start);
    };
    // The first pass also makes the page tables.
    for (size_t i = 0; i < windows * kPasses; ++i) {
      read(0, i);
      read(1, i + windows / 2);
    }
  });
  return best_s[0] / best_s[1];
}

std::optional<double> RecallHugePageGain(const std::string& path, const ThreadTeam& team) {
  const Result<std::string> text = ReadSmallFile(path, 4096);
  if (!text.ok()) return std::nullopt;
  std::istringstream in(*text);
  std::string key;
  double gain = 0;
  if (!std::getline(in, key) || key != MachineKey(team) || !(in >> gain)) return std::nullopt;
  return gain;
}

void RememberHugePageGain(const std::string& path, const ThreadTeam& team, double gain) {
  std::ostringstream text;
  text << MachineKey(team) << "\n" << gain << "\n";
  (void)WriteSmallFile(path, text.str());  // measured again next time
}

}  // namespace sluice
