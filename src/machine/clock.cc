#include "src/machine/clock.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUnroll = 32;
constexpr int kRounds = 2000;
constexpr int kGlanceRounds = 100, kGlances = 5;
constexpr std::chrono::milliseconds kFor{3};

// rounds * kUnroll additions, each of which needs the result of the one before. The empty assembly
// keeps the compiler from folding them; register to register, because some cores (Alder Lake and
// later) fold additions of a constant into the next instruction.
uint64_t Chain(uint64_t x, uint64_t step, int rounds) {
  for (int round = 0; round < rounds; ++round) {
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
    *sink = Chain(*sink, *sink | 1, kRounds);
    const std::chrono::duration<double, std::nano> ns = Clock::now() - start;
    best = std::max(best, kUnroll * kRounds / ns.count());
  }
  return best;
}

// 0: no such file, or no number in it.
double NumberIn(const std::string& path) {
  double value = 0;
  std::ifstream(path) >> value;
  return value > 0 ? value : 0;
}

#if defined(__x86_64__)
// "cpu MHz : 2596.120", of the first CPU. With a frequency driver it is the clock of the moment.
double CpuInfoMhz(const std::string& path) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with("cpu MHz") && colon != std::string::npos) {
      return std::atof(line.c_str() + colon + 1);
    }
  }
  return 0;
}
#endif

}  // namespace

double GlanceAtClockGhz() {
  double best_ns = std::numeric_limits<double>::infinity();
  uint64_t sink = 1;
  for (int i = 0; i < kGlances; ++i) {
    const auto start = Clock::now();
    sink = Chain(sink, sink | 1, kGlanceRounds);
    const std::chrono::duration<double, std::nano> ns = Clock::now() - start;
    best_ns = std::min(best_ns, ns.count());
  }
  return kUnroll * kGlanceRounds / best_ns;
}

double NominalClockGhz(const std::string& root) {
  const std::string cpu = root + "/sys/devices/system/cpu/cpu0/";
  if (const double khz = NumberIn(cpu + "cpufreq/base_frequency"); khz > 0) return khz * 1e-6;
  if (const double mhz = NumberIn(cpu + "acpi_cppc/nominal_freq"); mhz > 0) return mhz * 1e-3;
  const bool driven = std::ifstream(cpu + "cpufreq/cpuinfo_max_freq").good();
#if defined(__x86_64__)
  return driven ? 0 : CpuInfoMhz(root + "/proc/cpuinfo") * 1e-3;
#else
  // No boost to speak of: the most is what is promised.
  return driven ? NumberIn(cpu + "cpufreq/cpuinfo_max_freq") * 1e-6 : 0;
#endif
}

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
