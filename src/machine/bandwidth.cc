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

constexpr size_t kPage = 4096, kLine = 64;
constexpr uint64_t kMegabyte = 1 << 20;
constexpr double kFirstBytes = 16 * kMegabyte, kMostAgain = 1e4;
constexpr int kMinWindows = 8;  // four with prefetching, four without
constexpr double kWindow_s = 0.02;

// A quota of less than the threads use lets them run for a part of each period, which is 0.1 s as a
// rule: several windows fit into that part.
double WindowSeconds(int threads) {
  const double quota = ThisMachine().cpu_quota.value_or(threads);
  return kWindow_s * std::min(1.0, quota / threads);
}

double Seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// 0: too little memory is free.
uint64_t BufferBytes(uint64_t bytes) {
  const uint64_t wanted = ReadProbeBytes(bytes);
  const uint64_t least =
      std::min(wanted, std::max<uint64_t>(ThisMachine().LastCacheBytes(), 8 * kMegabyte));
  const uint64_t found = std::min(wanted, AvailableMemoryBytes() / 8);
  return found >= least ? found / kPage * kPage : 0;
}

}  // namespace

uint64_t MemoryProbeBytes() {
  const uint64_t caches = ThisMachine().LastCacheBytes();
  return std::clamp<uint64_t>(4 * caches, 256 * kMegabyte, 2048 * kMegabyte);
}

uint64_t ReadProbeBytes(uint64_t bytes) {
  const uint64_t memory = MemoryProbeBytes();
  return bytes == 0 ? memory : std::clamp(bytes, 16 * kMegabyte, memory);
}

double MeasureReadBandwidth(ThreadTeam& team, const void* data, size_t bytes, double seconds,
                            int threads) {
  const auto* from = static_cast<const uint8_t*>(data);
  // More threads than CPUs read no faster: they take turns.
  threads = ThisMachine().RunningAtOnce(threads > 0 ? threads : team.size());
  const double aim_s = WindowSeconds(threads);
  double best = 0;
  // One window for all: from the first that begins, which need not be worker 0, to the last that
  // ends.
  std::vector<double> begin_s(static_cast<size_t>(threads));
  std::atomic<uint64_t> sum{0};
  // What of its share each worker reads in a window, more than 1: again and again; a little until
  // the first window has told. Worker 0's, read by all after a barrier.
  double part = std::min(1.0, kFirstBytes / static_cast<double>(bytes));
  int windows = -1;
  bool again = bytes > 0;
  team.Run(
      [&](Worker& worker) {
        const auto [begin, end] = worker.Share(bytes, kPage);
        const size_t share = end - begin;
        size_t at = 0;  // where the next window goes on
        const double start = Seconds();
        while (again) {
          worker.Barrier();
          begin_s[static_cast<size_t>(worker.index())] = Seconds();
          const bool prefetch = windows % 2 == 0;
          auto left = static_cast<size_t>(part * static_cast<double>(share));
          if (left > kLine) left -= left % kLine;  // a load that crosses lines is two
          while (left > 0) {
            const size_t piece = std::min(left, share - at);
            sum.fetch_add(ReadSum(from + begin + at, piece, prefetch), std::memory_order_relaxed);
            at = (at + piece) % share;
            left -= piece;
          }
          worker.Barrier();
          if (worker.index() == 0) {
            const double now = Seconds();
            const double window_s =
                now - *std::min_element(begin_s.begin(), begin_s.begin() + worker.count());
            if (windows >= 0) {
              best = std::max(best, 1e-9 * part * static_cast<double>(bytes) / window_s);
            }
            // Again after one that a quota or another program has stopped.
            if (windows < 0 || window_s < aim_s / 2) {
              part *= std::min(aim_s / window_s, kMostAgain);
            }
            again = ++windows < kMinWindows || now - start < seconds;
          }
          worker.Barrier();
        }
      },
      threads);
  return best;
}

Result<double> MeasureReadBandwidth(ThreadTeam& team, double seconds, int threads,
                                    uint64_t wanted) {
  const double start = Seconds();
  const uint64_t bytes = BufferBytes(wanted);
  if (bytes == 0) {
    return Status(StatusCode::kOutOfMemory,
                  "bandwidth probe: expected 8 times the last cache of free memory, found " +
                      std::to_string(AvailableMemoryBytes() / kMegabyte) + " MiB");
  }
  ASSIGN_OR_RETURN(Arena arena, Arena::Create(bytes));
  team.Run([&](Worker& worker) { worker.TouchShare(arena.data(), bytes); }, threads);
  const double left_s = std::max(seconds - (Seconds() - start), kMinWindows * kWindow_s);
  return MeasureReadBandwidth(team, arena.data(), bytes, left_s, threads);
}

}  // namespace sluice
