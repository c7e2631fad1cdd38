// The measurements of a machine profile.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "quant/format.h"
#include "simd/activations.h"
#include "src/base/arena.h"
#include "src/machine/bandwidth.h"
#include "src/machine/machine_profile.h"
#include "src/machine/memory_use.h"
#include "src/machine/thread_team.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRead_s = 0.1, kMultiply_s = 0.06;  // for each thread count
constexpr int kBarriers = 2000;
constexpr double kMostLost = 0.05;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Thread counts worth a measurement: powers of two, one and a half of them, where each kind of core
// ends, and all.
std::vector<int> CountsToTry(const Topology& machine, int most) {
  std::vector<int> counts = {most};
  for (int n = 1; n < most; n *= 2) {
    counts.push_back(n);
    if (n > 1 && n + n / 2 < most) counts.push_back(n + n / 2);
  }
  int of_kinds = 0;
  for (int kind = 0; kind < machine.core_kinds; ++kind) {
    for (const Core& core : machine.cores) of_kinds += core.kind == kind;
    if (of_kinds > 0 && of_kinds < most) counts.push_back(of_kinds);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// One thread's matrix product that stays in its caches; weights and inputs are zeros, which the
// integer kernels do not notice.
class Product {
 public:
  static Result<Product> Create(const Format& format) {
    Product p;
    const size_t panel_bytes =
        kRows / kPanelRows * (kWidth / format.block_values) * format.panel_block_bytes;
    ASSIGN_OR_RETURN(p.arena_, Arena::Create(panel_bytes + ActBytes(kTokens, kWidth) +
                                             kTokens * (kRows + kWidth) * sizeof(float) +
                                             MatMulScratchBytes(kWidth) + 6 * 64));
    p.matmul_ = format.matmul;
    MatMulArgs& a = p.args_;
    a.weights = p.arena_.Allocate(panel_bytes);
    a.panels = true;
    a.rows = a.row_end = kRows;
    a.k = kWidth;
    a.tokens = kTokens;
    a.act = MakeActView(p.arena_.Allocate(ActBytes(kTokens, kWidth)), kTokens, kWidth);
    const float* x = p.arena_.Array<float>(kTokens * kWidth);
    a.f32 = x;
    a.f32_stride = kWidth;
    a.out = p.arena_.Array<float>(kTokens * kRows);
    a.out_stride = kRows;
    a.scratch = p.arena_.Allocate(MatMulScratchBytes(kWidth));
    for (size_t t = 0; t < kTokens; ++t) QuantiseRow(x + t * kWidth, a.act, t);
    return p;
  }

  // Billions of multiply-accumulates per second during `seconds`.
  double Rate(double seconds) const {
    const auto start = Clock::now();
    uint64_t times = 0;
    do {
      for (int i = 0; i < 4; ++i, ++times) matmul_(args_);
    } while (SecondsSince(start) < seconds);
    return 1e-9 * kRows * kWidth * kTokens * static_cast<double>(times) / SecondsSince(start);
  }

 private:
  static constexpr size_t kRows = 64, kWidth = 2048, kTokens = 64;
  Arena arena_;
  MatMulArgs args_;
  void (*matmul_)(const MatMulArgs&) = nullptr;
};

// Means over the cores of each kind, the fastest made 1. Worker i has core i.
std::vector<double> KindRates(const Topology& machine, const std::vector<double>& worker_rates) {
  std::vector<double> rates;
  if (machine.core_kinds < 2 || worker_rates.size() != machine.cores.size()) return rates;
  for (int kind = 0; kind < machine.core_kinds; ++kind) {
    double sum = 0, cores = 0;
    for (size_t i = 0; i < worker_rates.size(); ++i) {
      if (machine.cores[i].kind != kind) continue;
      sum += worker_rates[i];
      ++cores;
    }
    rates.push_back(cores > 0 ? sum / cores : 1);
  }
  const double best = *std::max_element(rates.begin(), rates.end());
  for (double& rate : rates) rate /= best;
  return rates;
}

double BarrierUs(ThreadTeam& team) {
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    double us = 0;
    team.Run([&](Worker& worker) {
      worker.Barrier();
      const auto start = Clock::now();
      for (int i = 0; i < kBarriers; ++i) worker.Barrier();
      if (worker.index() == 0) us = 1e6 * SecondsSince(start) / kBarriers;
    });
    best = repeat == 0 ? us : std::min(best, us);
  }
  return best;
}

// Memory to read, past the caches, each page touched by a worker that will read it. Smaller than
// what the bandwidth probe takes: one thread alone has to get through it in a tenth of a second.
Result<Arena> Buffer(ThreadTeam& team) {
  constexpr uint64_t kMegabyte = 1 << 20, kPage = 4096;
  const uint64_t wanted =
      std::clamp<uint64_t>(4 * ThisMachine().l3_bytes, 256 * kMegabyte, 1024 * kMegabyte);
  ASSIGN_OR_RETURN(Arena arena,
                   Arena::Create(std::min(wanted, AvailableMemoryBytes() / 8 + kPage)));
  team.Run([&](Worker& worker) { worker.TouchShare(arena.data(), arena.size()); });
  return arena;
}

}  // namespace

Result<MachineProfile> Calibrate() {
  const Topology& machine = ThisMachine();
  MachineProfile profile = DefaultProfile(machine);
  ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> team, ThreadTeam::Create(0));
  const Format* const format = FindFormat("Q4_0");
  std::vector<Product> products;
  for (int i = 0; i < team->size(); ++i) {
    ASSIGN_OR_RETURN(Product product, Product::Create(*format));
    products.push_back(std::move(product));
  }

  ASSIGN_OR_RETURN(const Arena buffer, Buffer(*team));

  const auto start = Clock::now();
  std::vector<double> rate(products.size());
  for (const int threads : CountsToTry(machine, team->size())) {
    ThreadRates r{.threads = threads};
    r.read_gb_s = MeasureReadBandwidth(*team, buffer.data(), buffer.size(), kRead_s, threads);
    std::fill(rate.begin(), rate.end(), 0);
    team->Run(
        [&](Worker& worker) {
          const size_t i = static_cast<size_t>(worker.index());
          worker.Barrier();
          rate[i] = products[i].Rate(kMultiply_s);
        },
        threads);
    for (const double one : rate) r.gmac_s += one;
    profile.rates.push_back(r);
  }
  profile.kind_rates = KindRates(machine, rate);
  profile.barrier_us = BarrierUs(*team);
  const double lost = static_cast<double>(team->lost_ns()) * 1e-9 / SecondsSince(start);
  if (lost > kMostLost * team->size()) {
    char taken[32];
    std::snprintf(taken, sizeof(taken), "%.1f", std::min<double>(lost, team->size()));
    return Status(
        StatusCode::kIo,
        std::string(
            "calibration: other programs kept the CPUs busy; expected an idle machine, found ") +
            taken + " of " + std::to_string(team->size()) +
            " CPUs taken; run it again when they are done");
  }
  ChooseThreads(profile);
  return profile;
}

}  // namespace sluice
