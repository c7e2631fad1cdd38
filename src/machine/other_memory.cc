#include "src/machine/other_memory.h"

#include <algorithm>
#include <numeric>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "src/base/arena.h"
#include "src/machine/memory_use.h"
#include "src/machine/read_in_turns.h"

namespace sluice {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSampleBytes = 512 << 20;

// Of the last half of the windows.
double Rate(const std::vector<double>& window_s) {
  const auto half = static_cast<std::ptrdiff_t>(window_s.size() / 2);
  const double seconds = std::accumulate(window_s.begin() + half, window_s.end(), 0.0);
  const size_t windows = window_s.size() - static_cast<size_t>(half);
  return 1e-9 * static_cast<double>(windows * kReadWindowBytes) / seconds;
}

}  // namespace

bool InVirtualMachine() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 31 & 1) != 0;
#else
  return false;
#endif
}

std::optional<MemoryRates> CompareMemory(ThreadTeam& team, std::span<const uint8_t> memory) {
  constexpr int kPasses = 2;
  const size_t bytes = std::min(memory.size(), kSampleBytes);
  if (bytes > AvailableMemoryBytes() / 4) return std::nullopt;
  const Result<Arena> other = Arena::Create(bytes);
  if (!other.ok()) return std::nullopt;
  team.Run([&](Worker& worker) {
    const auto [begin, end] = worker.Share(bytes, kPage);
    for (size_t at = begin; at < end; at += kPage) other->data()[at] = 1;
  });
  const WindowTimes times = ReadInTurns(team, memory, {other->data(), bytes}, kPasses);
  if (times.a_s.empty()) return std::nullopt;
  return MemoryRates{Rate(times.a_s), Rate(times.b_s)};
}

std::optional<MemoryRates> FindSlowMemory(ThreadTeam& team, std::span<const uint8_t> memory,
                                          const std::string& path) {
  constexpr double kAsFast = 0.92;
  const double best = Recall(path, team, true).value_or(0);
  if (best > 0) {
    const WindowTimes times = ReadInTurns(team, memory, memory, 1);
    if (times.a_s.empty() || Rate(times.a_s) >= kAsFast * best) return std::nullopt;
  }
  const std::optional<MemoryRates> rates = CompareMemory(team, memory);
  if (!rates) return std::nullopt;
  if (rates->other_gb_s > best) Remember(path, team, rates->other_gb_s, true);
  return rates->Slow() ? rates : std::nullopt;
}

}  // namespace sluice
