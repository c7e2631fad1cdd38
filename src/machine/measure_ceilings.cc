// The measurements of src/machine/ceilings.h.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "quant/tiles.h"
#include "simd/activations.h"
#include "simd/stream.h"
#include "simd/vector_ops.h"
#include "src/base/arena.h"
#include "src/machine/bandwidth.h"
#include "src/machine/ceilings.h"
#include "src/machine/kernel_rate.h"
#include "src/machine/memory_use.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRead_s = 0.15, kStream_s = 0.04, kMultiply_s = 0.006, kProduct_s = 0.01,
                 kAttention_s = 0.03;
constexpr double kCache_s = 0.01, kNode_s = 0.1;
constexpr size_t kPage = 4096, kWidth = 2048;  // k of the measured products
constexpr uint64_t kMegabyte = 1 << 20, kSmall = 16 * kMegabyte;
constexpr int kBarriers = 1000;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Larger than the caches if anything is streamed, each page touched by the worker that reads it.
// The bytes of every word are those of a small normal number in all float formats.
Result<Arena> Buffer(ThreadTeam& team, int threads, bool streams) {
  // Of 1 GB the caches hold next to nothing, and slow kernels take seconds for more.
  const uint64_t wanted = streams ? std::min(MemoryProbeBytes(), 1024 * kMegabyte) : kSmall;
  const uint64_t least = streams ? std::max(ThisMachine().LastCacheBytes(), kSmall) : kSmall;
  const uint64_t bytes = std::min(wanted, AvailableMemoryBytes() / 4) / kPage * kPage;
  if (bytes < least) {
    return Status(StatusCode::kOutOfMemory,
                  "ceilings: expected 4 times the caches of free memory, found " +
                      std::to_string(AvailableMemoryBytes() / kMegabyte) +
                      " MiB; end what holds memory and measure again");
  }
  ASSIGN_OR_RETURN(Arena arena, Arena::Create(bytes));
  team.Run(
      [&](Worker& worker) {
        const auto [begin, end] = worker.Share(arena.size(), kPage);
        std::memset(arena.data() + begin, 0x3c, end - begin);
      },
      threads);
  return arena;
}

// GB/s of each worker that reads `bytes` of its own share again and again.
std::vector<double> OwnReadRates(ThreadTeam& team, int threads, const Arena& buffer, size_t bytes,
                                 double seconds) {
  std::vector<double> rates(static_cast<size_t>(team.size()));
  std::vector<uint64_t> sums(rates.size());  // read by nobody; keeps the reads
  team.Run(
      [&](Worker& worker) {
        const auto index = static_cast<size_t>(worker.index());
        const auto [begin, end] = worker.Share(buffer.size(), kPage);
        const size_t mine = std::min(bytes, end - begin);
        uint64_t sum = ReadSum(buffer.data() + begin, mine);
        double read = 0, taken_s = 0;
        worker.Barrier();
        const auto start = Clock::now();
        do {
          for (size_t done = 0; done < (size_t{1} << 18); done += mine) {
            sum += ReadSum(buffer.data() + begin, mine);
            read += static_cast<double>(mine);
          }
          taken_s = SecondsSince(start);
        } while (taken_s < seconds);
        sums[index] = sum;
        rates[index] = 1e-9 * read / taken_s;
      },
      threads);
  return rates;
}

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

double BarrierUs(ThreadTeam& team, int threads) {
  double us = 0;
  team.Run(
      [&](Worker& worker) {
        worker.Barrier();
        const auto start = Clock::now();
        for (int i = 0; i < kBarriers; ++i) worker.Barrier();
        if (worker.index() == 0) us = 1e6 * SecondsSince(start) / kBarriers;
      },
      threads);
  return us;
}

// The work on rows between products, on one thread: ns a value of a chunk's rows normed and
// quantised, and of a tile's columns of them activated and quantised, which are far apart in
// memory.
struct RowTimes {
  double norm_ns = 0, gate_ns = 0;
};

Result<RowTimes> MeasureRowTimes() {
  constexpr size_t kRows = 512, kColumns = kTileColumns, kFfn = 4 * kWidth;
  ASSIGN_OR_RETURN(Arena arena, Arena::Create(ActBytes(kRows, kWidth) + ActBytes(kRows, kFfn) +
                                              (kRows + 2) * kWidth * sizeof(float) +
                                              2 * kRows * kColumns * sizeof(float) + 8 * kPage));
  float* const x = arena.Array<float>(kRows * kWidth);
  float* const weight = arena.Array<float>(kWidth);
  float* const normed = arena.Array<float>(kWidth);
  float* const gate = arena.Array<float>(kRows * kColumns);
  float* const up = arena.Array<float>(kRows * kColumns);
  const auto fill = [](float* to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = static_cast<float>(i % 64) / 32 - 1;
  };
  fill(x, kRows * kWidth);
  fill(up, kRows * kColumns);
  std::fill_n(weight, kWidth, 1.0f);
  const ActView in = MakeActView(arena.Allocate(ActBytes(kRows, kWidth)), kRows, kWidth);
  const ActView hidden = MakeActView(arena.Allocate(ActBytes(kRows, kFfn)), kRows, kFfn);
  RowTimes times;
  for (int pass = 0; pass < 2; ++pass) {  // the first brings the pages
    const auto start = Clock::now();
    for (size_t row = 0; row < kRows; ++row) {
      RmsNorm(x + row * kWidth, weight, 1e-5f, kWidth, normed);
      QuantiseRow(normed, in, row);
    }
    times.norm_ns = 1e9 * SecondsSince(start) / static_cast<double>(kRows * kWidth);
    double gate_s = 0;
    for (size_t first = 0; first < kFfn; first += kColumns) {
      fill(gate, kRows * kColumns);
      const auto tile_start = Clock::now();
      for (size_t row = 0; row < kRows; ++row) {
        float* const at = gate + row * kColumns;
        SiluMul(at, up + row * kColumns, kColumns, at);
        QuantisePart(at, hidden, row, first, first + kColumns);
      }
      gate_s += SecondsSince(tile_start);
    }
    times.gate_ns = 1e9 * gate_s / static_cast<double>(kRows * kFfn);
  }
  return times;
}

// Each in a buffer of its own, as whoever decodes measures it; two of one rate once, and memory's
// with the rest of it. What too little memory is free for stays unknown. Formats are compared by
// these: reading fewer bytes again and again is no slower, whatever neighbours did meanwhile.
void MeasureReads(ThreadTeam& team, int threads, const CeilingList& list, Ceilings* ceilings) {
  std::vector<uint64_t> most_first = list.reads;
  std::sort(most_first.begin(), most_first.end(), std::greater<>());
  std::set<std::string> done;
  if (list.memory) done.insert(kReadRate);
  double least = 0;
  for (const uint64_t bytes : most_first) {
    if (!done.insert(ReadRate(bytes)).second) continue;
    const Result<double> gb_s = MeasureReadBandwidth(team, kRead_s, threads, bytes);
    if (!gb_s.ok()) continue;
    least = std::max(least, *gb_s);
    ceilings->Add(ReadRate(bytes), least, std::time(nullptr));
  }
}

class Probe {
 public:
  Probe(ThreadTeam& team, int decode_threads, int prefill_threads, const Arena& buffer,
        Ceilings* ceilings)
      : team_(team),
        decode_(decode_threads),
        prefill_(prefill_threads),
        buffer_(buffer),
        ceilings_(*ceilings),
        at_(static_cast<int64_t>(std::time(nullptr))) {}

  Status Memory() {
    Add(kReadRate, MeasureReadBandwidth(team_, buffer_.data(), buffer_.size(), kRead_s, decode_));
    Add(kBarrierTime, BarrierUs(team_, decode_));
    ASSIGN_OR_RETURN(const RowTimes times, MeasureRowTimes());
    Add(kRowTime, times.norm_ns);
    Add(kGateTime, times.gate_ns);
    return Status();
  }

  // Half of a cache, so that nothing else pushes it out.
  void Caches() {
    const Topology& machine = ThisMachine();
    const auto read = [&](int level, uint64_t bytes) {
      if (bytes < kPage) return;
      Add(CacheRate(level), Sum(OwnReadRates(team_, decode_, buffer_, bytes, kCache_s)));
    };
    read(1, machine.l1d_bytes / 2);
    read(2, machine.l2_bytes / 2);
    read(3, machine.l3_bytes / 2 / static_cast<uint64_t>(decode_));
    if (machine.numa_nodes > 1) Nodes();
  }

  Status Kernel(const KernelId& id, bool streams) {
    KernelMatrix m{
        .format = id.format, .weights = buffer_.data(), .panels = id.panels, .exact = id.exact};
    m.k = kWidth;
    m.dots_bf16 = MultipliesBf16(*id.format) && !id.portable;
    const size_t row_bytes =
        id.panels ? kWidth / id.format->block_values * id.format->panel_block_bytes / kPanelRows
                  : id.format->RowBytes(kWidth);
    m.rows = buffer_.size() / row_bytes / 64 * 64;
    for (const size_t rows : kCacheRows) {
      ASSIGN_OR_RETURN(const double rate, MeasureMatMulRate(team_, ThreadsFor(rows), m, rows,
                                                            kMultiply_s, RateWindows::kAll));
      Add(MultiplyRate(id, rows), rate);
    }
    if (!streams) return Status();
    ASSIGN_OR_RETURN(const double stream, MeasureProductRate(team_, decode_, m, 1, kStream_s));
    Add(StreamRate(id), stream * static_cast<double>(row_bytes) / kWidth);
    // Each with weights of its own, which the stream has pushed out of the caches.
    m.rows = m.rows / std::size(kProductRows) / 64 * 64;
    for (const size_t rows : kProductRows) {
      ASSIGN_OR_RETURN(const double rate,
                       MeasureProductRate(team_, ThreadsFor(rows), m, rows, kProduct_s));
      Add(ProductRate(id, rows), rate);
      m.weights += m.rows * row_bytes;
    }
    return Status();
  }

  Status Attention(const AttentionId& id) {
    ASSIGN_OR_RETURN(
        const double prompt,
        MeasureAttentionRate(team_, prefill_, id.shape, kAttention_s, 48, RateWindows::kAll));
    Add(AttentionRate(id, true), prompt);
    ASSIGN_OR_RETURN(const double row,
                     MeasureAttentionRate(team_, decode_, id.shape, kAttention_s, id.group,
                                          RateWindows::kAll, {buffer_.data(), buffer_.size()}));
    Add(AttentionRate(id, false), row);
    return Status();
  }

 private:
  int ThreadsFor(size_t rows) const { return rows > kDecodeRateRows ? prefill_ : decode_; }
  void Add(const std::string& name, double value) { ceilings_.Add(name, value, at_); }

  void Nodes() {
    const std::vector<Core>& cores = ThisMachine().cores;
    const std::vector<double> rates =
        OwnReadRates(team_, decode_, buffer_, buffer_.size(), kNode_s);
    std::vector<double> nodes(static_cast<size_t>(ThisMachine().numa_nodes));
    for (size_t i = 0; i < rates.size() && i < cores.size(); ++i) {
      const auto node = static_cast<size_t>(cores[i].numa_node);
      if (node < nodes.size()) nodes[node] += rates[i];
    }
    for (size_t node = 0; node < nodes.size(); ++node) {
      Add(NodeRate(static_cast<int>(node)), nodes[node]);
    }
  }

  ThreadTeam& team_;
  const int decode_, prefill_;
  const Arena& buffer_;
  Ceilings& ceilings_;
  const int64_t at_;
};

}  // namespace

Status MeasureCeilings(ThreadTeam& team, int decode_threads, int prefill_threads,
                       const CeilingList& list, Ceilings* ceilings) {
  if (list.empty()) return Status();
  MeasureReads(team, decode_threads, list, ceilings);
  const bool streams = list.memory || list.caches || (list.streams && !list.kernels.empty());
  ASSIGN_OR_RETURN(const Arena buffer, Buffer(team, decode_threads, streams));
  Probe probe(team, decode_threads, prefill_threads, buffer, ceilings);
  if (list.memory) RETURN_IF_ERROR(probe.Memory());
  if (list.caches) probe.Caches();
  for (const KernelId& id : list.kernels) RETURN_IF_ERROR(probe.Kernel(id, list.streams));
  for (const AttentionId& id : list.attention) RETURN_IF_ERROR(probe.Attention(id));
  return Status();
}

}  // namespace sluice
