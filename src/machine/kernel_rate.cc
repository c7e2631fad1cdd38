#include "src/machine/kernel_rate.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <vector>

#include "quant/generic_matmul.h"
#include "quant/tiles.h"
#include "src/base/arena.h"
#include "src/machine/quota.h"
#include "src/machine/topology.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRows = 64;  // of the matrix, per worker: four panels
// A product as the model's passes do it (src/model/ops.cc): in the same tiles, which for many
// tokens are copied to their place; after each matrix a barrier, where whoever lost his CPU
// meanwhile is waited for.
constexpr size_t kMatrixRows = 2048;

// Not zeros, which a kernel might like too much, and far from denormals.
float Value(size_t i) { return static_cast<float>(i * 2654435761u % 2048) / 1024 - 1; }

// Calls window() again and again; its multiply-adds over the shortest or the mean time, in 1e9 a
// second.
double WindowRate(RateWindows windows, double seconds, double macs,
                  const std::function<void()>& window) {
  double best = 0, count = 0;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(seconds);
  std::chrono::duration<double, std::nano> all{};
  do {
    const auto start = Clock::now();
    window();
    const std::chrono::duration<double, std::nano> ns = Clock::now() - start;
    best = std::max(best, macs / std::max(ns.count(), 1.0));
    all += ns;
    ++count;
  } while (Clock::now() < end);
  return windows == RateWindows::kFastest ? best : count * macs / std::max(all.count(), 1.0);
}

// What measure() returns when no quota stopped the process meanwhile: right after a stop a period
// begins, and the next stop is as far away as it can be.
template <class F>
double BetweenStops(const F& measure) {
  constexpr int kTurns = 3;  // a quota may be too small for any
  ThrottleMeter stops;
  for (int turn = 1;; ++turn) {
    const double rate = measure();
    if (stops.Next().periods == 0 || turn == kTurns) return rate;
  }
}

// The sum over the workers of what rate(index) returns. No more workers than have a CPU: of those
// that take turns on one, each has windows of its own in which all of it was its.
double SumOfRates(ThreadTeam& team, int threads, const std::function<double(size_t)>& rate) {
  threads = ThisMachine().RunningAtOnce(threads > 0 ? threads : team.size());
  std::vector<double> rates(static_cast<size_t>(team.size()));
  return BetweenStops([&] {
    team.Run(
        [&](Worker& worker) {
          const auto index = static_cast<size_t>(worker.index());
          worker.Barrier();  // all at once: clocks and caches as they are under load
          rates[index] = rate(index);
        },
        threads);
    return std::accumulate(rates.begin(), rates.end(), 0.0);
  });
}

size_t RoundUp(size_t n) { return (n + 4095) / 4096 * 4096; }

// One worker's operands of a product: inputs, outputs and scratch in `memory`.
struct MatMulOperands {
  static size_t Bytes(const KernelMatrix& m, size_t tokens) {
    const size_t outputs = std::min(kRows, m.rows);
    const size_t values = tokens * RowStride(m.k);
    return RoundUp(values * sizeof(float)) + RoundUp(ActBytes(tokens, m.k)) +
           RoundUp(values * sizeof(uint16_t)) + RoundUp(tokens * outputs * sizeof(float)) +
           RoundUp(MatMulScratchBytes(m.k));
  }

  MatMulOperands(const KernelMatrix& m, size_t tokens, size_t worker, uint8_t* memory) {
    const size_t outputs = std::min(kRows, m.rows);
    const auto take = [&](size_t bytes) {
      uint8_t* const at = memory;
      memory += RoundUp(bytes);
      return at;
    };
    const size_t stride = RowStride(m.k);
    auto* x = reinterpret_cast<float*>(take(tokens * stride * sizeof(float)));
    args.act = MakeActView(take(ActBytes(tokens, m.k)), tokens, m.k);
    auto* out = reinterpret_cast<float*>(take(tokens * outputs * sizeof(float)));
    args.scratch = take(MatMulScratchBytes(m.k));
    for (size_t i = 0; i < tokens * stride; ++i) x[i] = Value(i);
    if (m.format->arithmetic == Arithmetic::kInt8 && !m.exact) {
      for (size_t t = 0; t < tokens; ++t) QuantiseRow(x + t * stride, args.act, t);
    }
    args.bf16_stride = stride;
    auto* bf16 = reinterpret_cast<uint16_t*>(take(tokens * stride * sizeof(uint16_t)));
    if (m.dots_bf16) {
      args.bf16 = bf16;
      for (size_t t = 0; t < tokens; ++t) {
        RoundToBf16(x + t * stride, m.k, bf16 + t * stride);
      }
    }
    const size_t part = worker % std::max<size_t>(1, m.rows / kRows) * kRows;
    const size_t blocks = m.k / m.format->block_values;
    args.weights = m.weights + (m.panels ? part / kPanelRows * blocks * m.format->panel_block_bytes
                                         : part * m.format->RowBytes(m.k));
    args.panels = m.panels;
    args.rows = args.row_end = outputs;
    args.k = m.k;
    args.tokens = tokens;
    args.f32 = x;
    args.f32_stride = stride;
    args.out = out;
    args.out_stride = outputs;
  }

  MatMulArgs args;
};

}  // namespace

Result<double> MeasureMatMulRate(ThreadTeam& team, int threads, const KernelMatrix& matrix,
                                 size_t tokens, double seconds, RateWindows windows) {
  const size_t each = MatMulOperands::Bytes(matrix, tokens);
  ASSIGN_OR_RETURN(const Arena arena, Arena::Create(each * static_cast<size_t>(team.size())));
  return SumOfRates(team, threads, [&](size_t worker) {
    const MatMulOperands own(matrix, tokens, worker, arena.data() + worker * each);
    const MatMulArgs& args = own.args;
    const size_t macs = (args.row_end - args.row_begin) * args.k * args.tokens;
    return WindowRate(windows, seconds, static_cast<double>(macs), [&] {
      matrix.exact ? MatMulDecoded(*matrix.format, args) : matrix.format->matmul(args);
    });
  });
}

Result<double> MeasureAttentionRate(ThreadTeam& team, int threads, const KvShape& shape,
                                    double seconds, size_t queries, RateWindows windows,
                                    std::span<const uint8_t> memory) {
  const size_t page_bytes = KvPageBytes(shape);
  const size_t query_bytes = RoundUp(queries * shape.key_dim * sizeof(float));
  const size_t out_bytes = RoundUp(queries * shape.value_dim * sizeof(float));
  const size_t page_area = RoundUp(kUnitSpans * page_bytes);
  const size_t each = page_area + query_bytes + out_bytes + RoundUp(AttentionScratchBytes(shape));
  ASSIGN_OR_RETURN(const Arena arena, Arena::Create(each * static_cast<size_t>(team.size())));
  const size_t unit_bytes = kUnitSpans * page_bytes;
  const size_t units = memory.size() / unit_bytes / static_cast<size_t>(team.size());
  return SumOfRates(team, threads, [&](size_t worker) {
    uint8_t* const own = arena.data() + worker * each;
    auto* const query = reinterpret_cast<float*>(own + page_area);
    auto* const out = reinterpret_cast<float*>(own + page_area + query_bytes);
    for (size_t i = 0; i < queries * shape.key_dim; ++i) query[i] = Value(i);
    const std::vector<float> value(shape.value_dim, 0.5f);
    const uint8_t* pages[kUnitSpans];
    for (size_t s = 0; s < kUnitSpans; ++s) {
      pages[s] = own + s * page_bytes;
      for (size_t slot = 0; slot < kSpan; ++slot) {
        KvStore(shape, own + s * page_bytes, slot, query + slot % queries * shape.key_dim,
                value.data());
      }
    }
    std::vector<const float*> rows;
    std::vector<float*> outs;
    for (size_t q = 0; q < queries; ++q) {
      rows.push_back(query + q * shape.key_dim);
      outs.push_back(out + q * shape.value_dim);
    }
    const std::vector<int32_t> position(queries, static_cast<int32_t>(kUnitPositions) - 1);
    const std::vector<int32_t> first(queries, 0);
    AttentionArgs args;
    args.shape = shape;
    args.pages = pages;
    args.ring_pages = kUnitSpans;
    args.queries = queries;
    args.query = rows.data();
    args.position = position.data();
    args.first = first.data();
    args.scale = 0.01f;
    args.out = outs.data();
    args.scratch = own + page_area + query_bytes + out_bytes;
    const size_t macs = queries * kUnitPositions * (shape.key_dim + shape.value_dim);
    size_t unit = 0;
    return WindowRate(windows, seconds, static_cast<double>(macs), [&] {
      if (units > 0) {
        const uint8_t* const from = memory.data() + (worker * units + unit++ % units) * unit_bytes;
        for (size_t s = 0; s < kUnitSpans; ++s) pages[s] = from + s * page_bytes;
      }
      Attention(args);
    });
  });
}

Result<double> MeasureProductRate(ThreadTeam& team, int threads, const KernelMatrix& matrix,
                                  size_t tokens, double seconds) {
  const KernelMatrix& m = matrix;
  threads = ThisMachine().RunningAtOnce(threads > 0 ? threads : team.size());
  const bool few = tokens <= kFewRows;
  const size_t most = std::min(kMatrixRows, m.rows);
  const size_t tile = TileColumns(*m.format, most, m.k, tokens, static_cast<size_t>(threads));
  const size_t columns = most / tile * tile;
  if (columns == 0) return 0;
  const size_t row_bytes =
      m.panels ? m.k / m.format->block_values * m.format->panel_block_bytes / kPanelRows
               : m.format->RowBytes(m.k);
  const size_t outputs = RoundUp(tokens * columns * sizeof(float));
  const size_t each = RoundUp(MatMulScratchBytes(m.k)) + RoundUp(tokens * tile * sizeof(float));
  ASSIGN_OR_RETURN(const Arena arena, Arena::Create(MatMulOperands::Bytes(m, tokens) + outputs +
                                                    each * static_cast<size_t>(team.size())));
  auto* const out = reinterpret_cast<float*>(arena.data());
  const MatMulOperands shared(m, tokens, 0, arena.data() + outputs);
  uint8_t* const own = arena.data() + outputs + MatMulOperands::Bytes(m, tokens);
  return BetweenStops([&] {
    double products = -1, taken_s = 0;  // the first brings its outputs' pages, and is not counted
    bool again = true;
    team.Run(
        [&](Worker& worker) {
          MatMulArgs args = shared.args;
          args.scratch = own + static_cast<size_t>(worker.index()) * each;
          auto* const copy =
              reinterpret_cast<float*>(args.scratch + RoundUp(MatMulScratchBytes(m.k)));
          args.rows = args.row_end = tile;
          const auto multiply = [&](const uint8_t* weights, size_t column) {
            args.weights = weights;
            args.out = few ? out + column : copy;
            args.out_stride = few ? columns : tile;
            m.exact ? MatMulDecoded(*m.format, args) : m.format->matmul(args);
            for (size_t t = 0; !few && t < tokens; ++t) {
              std::copy_n(copy + t * tile, tile, out + t * columns + column);
            }
          };
          auto start = Clock::now();
          while (again) {
            for (size_t first = 0; again && first + columns <= m.rows; first += columns) {
              worker.ForTiles(columns / tile, [&](size_t begin, size_t end) {
                for (size_t t = begin; t < end; ++t) {
                  multiply(m.weights + (first + t * tile) * row_bytes, t * tile);
                }
              });
              worker.Barrier();
              if (worker.index() == 0) {
                if (++products == 0) start = Clock::now();
                taken_s = std::chrono::duration<double>(Clock::now() - start).count();
                again = products == 0 || taken_s < seconds;
              }
              worker.Barrier();
            }
          }
        },
        threads);
    const double macs = static_cast<double>(columns * m.k) * static_cast<double>(tokens);
    return taken_s > 0 ? 1e-9 * macs * products / taken_s : 0.0;
  });
}

}  // namespace sluice
