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

// CompareMemory with memory that `sample` keeps.
std::optional<MemoryRates> CompareWithFresh(ThreadTeam& team, std::span<const uint8_t> memory,
                                            bool huge, Arena* sample) {
  constexpr int kPasses = 2;
  const size_t bytes = std::min(memory.size(), kSampleBytes);
  if (bytes < kLeastReadBytes || bytes > AvailableMemoryBytes() / 4) return std::nullopt;
  Result<Arena> fresh = Arena::Create(bytes, huge);
  if (!fresh.ok()) return std::nullopt;
  *sample = *std::move(fresh);
  team.Run([&](Worker& worker) { worker.TouchShare(sample->data(), bytes); });
  return RatesOf(ReadInTurns(team, memory, {sample->data(), bytes}, kPasses));
}

}  // namespace

uint64_t CopyRoomBytes() {
  return InVirtualMachine() && ThisMachine().numa_nodes == 1 ? AvailableMemoryBytes() / 2 : 0;
}

MemoryRates RatesOf(const WindowTimes& times) { return {Rate(times.a_s), Rate(times.b_s)}; }

std::optional<MemoryRates> CompareMemory(ThreadTeam& team, std::span<const uint8_t> memory,
                                         bool huge) {
  Arena sample;
  return CompareWithFresh(team, memory, huge, &sample);
}

std::optional<MemoryRates> FindSlowMemory(ThreadTeam& team, std::span<const uint8_t> memory,
                                          bool huge, const std::string& path) {
  constexpr double kSlower = 0.92, kFaster = 1.1;  // than the remembered rate: not as fast as it
  constexpr int kTell = 2;                         // samples; one may have met another program
  if (memory.size() < kLeastReadBytes) return std::nullopt;
  bool faster_known = false;
  const std::optional<double> known = Recall(path, team, true);
  if (known) {
    const WindowTimes times = ReadInTurns(team, memory, memory, 1);
    const MemoryRates halves = RatesOf(times);  // each of other windows
    const double here_gb_s = (halves.here_gb_s + halves.other_gb_s) / 2;
    faster_known = here_gb_s < kSlower * *known;
    // Faster: the rate is of a moment in which others had the memory, and says nothing.
    if (!faster_known && here_gb_s <= kFaster * *known) return std::nullopt;
  }
  // All held until the last is read, so that each is of other memory: a sample may be slow too.
  std::vector<Arena> samples;
  std::optional<MemoryRates> slow;
  double best_gb_s = 0;
  for (int slower = 0, as_fast = 0; slower < kTell && as_fast < kTell;) {
    const std::optional<MemoryRates> rates =
        CompareWithFresh(team, memory, huge, &samples.emplace_back());
    if (!rates) break;
    best_gb_s = std::max(best_gb_s, rates->other_gb_s);
    if (!rates->Slow()) {
      if (++as_fast == 1 && !faster_known && slower == 0) break;
    } else if (++slower == kTell) {
      slow = rates;
    }
  }
  samples.clear();
  RestartPeakRss();  // the samples are no part of what is reported
  // Samples that are all slow do not end the search at the next start, nor does one lucky rate
  // make it go on for ever.
  if (best_gb_s > 0) Remember(path, team, std::max(best_gb_s, 0.9 * known.value_or(0)), true);
  return slow;
}

}  // namespace sluice
