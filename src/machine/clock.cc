#include "src/machine/clock.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUnroll = 32;
constexpr int kRounds = 2000;
constexpr std::chrono::milliseconds kFor{3};

// kRounds * kUnroll additions, each of which needs the result of the one before. The empty assembly
// keeps the compiler from folding them; register to register, because some cores (Alder Lake and
// later) fold additions of a constant into the next instruction.
uint64_t Chain(uint64_t x, uint64_t step) {
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 32
    for (int i = 0; i < kUnroll; ++i) {
      x += step;
      asm volatile("" : "+r"(x));
    }
  }
  return x;
}

double FastestGhz(uint64_t* sink) {
  double best = 0;
  for (const auto end = Clock::now() + kFor; Clock::now() < end;) {
    const auto start = Clock::now();
    *sink = Chain(*sink, *sink | 1);
    const std::chrono::duration<double, std::nano> ns = Clock::now() - start;
    best = std::max(best, kUnroll * kRounds / ns.count());
  }
  return best;
}

}  // namespace

double MeasureClockGhz(ThreadTeam& team, int threads) {
  std::vector<double> ghz(static_cast<size_t>(team.size()));
  int workers = 1;
  team.Run(
      [&](Worker& worker) {
        uint64_t sink = 1;
        ghz[static_cast<size_t>(worker.index())] = FastestGhz(&sink);
        if (worker.index() == 0) workers = worker.count();
      },
      threads);
  double sum = 0;
  for (int i = 0; i < workers; ++i) sum += ghz[static_cast<size_t>(i)];
  return sum / workers;
}

}  // namespace sluice
