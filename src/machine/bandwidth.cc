#include "src/machine/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "simd/stream.h"
#include "src/base/arena.h"
#include "src/machine/memory_use.h"
#include "src/machine/topology.h"

namespace sluice {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kMegabyte = 1 << 20;
constexpr int kMinPasses = 3;

double Seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// 0: too little memory is free.
size_t BufferBytes() {
  const uint64_t caches = ThisMachine().l3_bytes;
  const uint64_t wanted = std::clamp<uint64_t>(4 * caches, 256 * kMegabyte, 2048 * kMegabyte);
  const uint64_t bytes = std::min(wanted, AvailableMemoryBytes() / 8) / kPage * kPage;
  return bytes >= std::max<uint64_t>(caches, 8 * kMegabyte) ? bytes : 0;
}

}  // namespace

double MeasureReadBandwidth(ThreadTeam& team, const void* data, size_t bytes, double seconds,
                            int threads) {
  const auto* from = static_cast<const uint8_t*>(data);
  // More threads than CPUs read no faster: they take turns.
  threads = ThisMachine().RunningAtOnce(threads > 0 ? threads : team.size());
  double best = 0;
  // One window for all: from the first that begins, which need not be worker 0, to the last that
  // ends.
  std::vector<double> begin_s(static_cast<size_t>(threads));
  std::atomic<uint64_t> sum{0};
  bool again = bytes > 0;
  team.Run(
      [&](Worker& worker) {
        const auto [begin, end] = worker.Share(bytes, kPage);
        const double start = Seconds();
        for (int pass = 1; again; ++pass) {
          worker.Barrier();
          begin_s[static_cast<size_t>(worker.index())] = Seconds();
          sum.fetch_add(ReadSum(from + begin, end - begin), std::memory_order_relaxed);
          worker.Barrier();
          if (worker.index() == 0) {
            const double now = Seconds();
            const double from_s =
                *std::min_element(begin_s.begin(), begin_s.begin() + worker.count());
            best = std::max(best, static_cast<double>(bytes) / (now - from_s) * 1e-9);
            again = pass < kMinPasses || now - start < seconds;
          }
          worker.Barrier();
        }
      },
      threads);
  return best;
}

Result<double> MeasureReadBandwidth(ThreadTeam& team, double seconds, int threads) {
  const double start = Seconds();
  const size_t bytes = BufferBytes();
  if (bytes == 0) {
    return Status(StatusCode::kOutOfMemory,
                  "bandwidth probe: expected 8 times the L3 cache of free memory, found " +
                      std::to_string(AvailableMemoryBytes() / kMegabyte) + " MiB");
  }
  ASSIGN_OR_RETURN(Arena arena, Arena::Create(bytes));
  // Written by the worker that reads it (its NUMA node), one byte a page: an untouched page is the
  // kernel's one zero page, which stays in the cache.
  team.Run(
      [&](Worker& worker) {
        const auto [begin, end] = worker.Share(bytes, kPage);
        for (size_t at = begin; at < end; at += kPage) arena.data()[at] = 1;
      },
      threads);
  return MeasureReadBandwidth(team, arena.data(), bytes, seconds - (Seconds() - start), threads);
}

}  // namespace sluice
