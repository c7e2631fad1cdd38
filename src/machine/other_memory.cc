#include "src/machine/other_memory.h"

#include <algorithm>
#include <numeric>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "src/base/arena.h"
#include "src/machine/memory_use.h"
#include "src/machine/topology.h"

namespace sluice {
namespace {

constexpr size_t kSampleBytes = 256 << 20;

// Whether a hypervisor runs this system; false where that cannot be told.
bool InVirtualMachine() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 31 & 1) != 0;
#else
  return false;
#endif
}

double Rate(const std::vector<double>& window_s) {
  const auto half = static_cast<std::ptrdiff_t>(window_s.size() / 2);
  std::vector<double> late(window_s.begin() + half, window_s.end());
  std::sort(late.begin(), late.end());
  const auto cut = static_cast<std::ptrdiff_t>(late.size() / 4);
  const double seconds = std::accumulate(late.begin() + cut, late.end() - cut, 0.0);
  const size_t windows = late.size() - 2 * static_cast<size_t>(cut);
  return 1e-9 * static_cast<double>(windows * kReadWindowBytes) / seconds;
}

}  // namespace

uint64_t CopyRoomBytes() {
  return InVirtualMachine() && ThisMachine().numa_nodes == 1 ? AvailableMemoryBytes() / 2 : 0;
}

MemoryRates RatesOf(const WindowTimes& times) { return {Rate(times.a_s), Rate(times.b_s)}; }

std::optional<MemoryRates> CompareMemory(ThreadTeam& team, std::span<const uint8_t> memory,
                                         bool huge) {
  constexpr int kPasses = 2;
  const size_t bytes = std::min(memory.size(), kSampleBytes);
  if (bytes < kLeastReadBytes || bytes > AvailableMemoryBytes() / 4) return std::nullopt;
  const Result<Arena> other = Arena::Create(bytes, huge);
  if (!other.ok()) return std::nullopt;
  team.Run([&](Worker& worker) { worker.TouchShare(other->data(), bytes); });
  const WindowTimes times = ReadInTurns(team, memory, {other->data(), bytes}, kPasses);
  return RatesOf(times);
}

std::optional<MemoryRates> FindSlowMemory(ThreadTeam& team, std::span<const uint8_t> memory,
                                          bool huge, const std::string& path) {
  constexpr double kAsFast = 0.92;
  constexpr int kComparisons = 2;
  if (memory.size() < kLeastReadBytes) return std::nullopt;
  if (const std::optional<double> other = Recall(path, team, true)) {
    const WindowTimes times = ReadInTurns(team, memory, memory, 1);
    const MemoryRates halves = RatesOf(times);  // each of other windows
    if ((halves.here_gb_s + halves.other_gb_s) / 2 >= kAsFast * *other) return std::nullopt;
  }
  std::optional<MemoryRates> rates;
  for (int i = 0; i < kComparisons; ++i) {
    rates = CompareMemory(team, memory, huge);
    if (!rates || !rates->Slow()) break;
  }
  RestartPeakRss();  // the sample is no part of what is reported
  if (!rates) return std::nullopt;
  Remember(path, team, rates->other_gb_s, true);
  return rates->Slow() ? rates : std::nullopt;
}

}  // namespace sluice
