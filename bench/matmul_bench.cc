// Kernel rates of every format: multiply-accumulates per second for 1 to 512
// tokens, from panels and from GGUF rows, on one thread; "bf16": from panels with inputs rounded to
// bfloat16, where the CPU multiplies those.
//   matmul_bench --benchmark_filter='Q4_K/panels'
// "l2": a matrix that stays in the L2 cache, so the kernel alone. "layer": one of a 1B
// model, with quantising the inputs. "ram": past any cache, few tokens: GB/s of weights.
// "prefill": float formats, 2048 x 2048 in windows of 128 rows, by our kernel in tiles of 32 as
// prefill has them and by oneDNN, whose implementation is the row's label.
// best_GMAC/s and MAC/cycle are of the fastest call ("ram": of 1024 rows): what other
// processes take does not count. The clock is measured beside it, by adds that wait for
// each other.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hwy/aligned_allocator.h"
#include "quant/format.h"
#include "simd/activations.h"
#include "simd/matmul.h"
#include "src/machine/onednn.h"

namespace sluice {
namespace {

struct Shape {
  const char* name;
  size_t rows, k;
  size_t window;  // rows of one timed call
  bool quantise;  // as part of what is timed
  size_t least_tokens, most_tokens;
};
constexpr Shape kShapes[] = {{"l2", 64, 4096, 64, false, 1, 512},
                             {"layer", 8192, 2048, 8192, true, 64, 512},
                             {"ram", 131072, 2048, 1024, false, 1, 8}};
constexpr size_t kTokens[] = {1, 2, 4, 8, 16, 64, 512};

using Buffer = hwy::AlignedFreeUniquePtr<uint8_t[]>;

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Cycles per second now: one dependent add takes a cycle. Register to register: some cores fold
// additions of a constant.
double CyclesPerSecond() {
  constexpr int kSteps = 2000;
  double best = 1;
  for (int window = 0; window < 20; ++window) {
    uint64_t x = 0, one = 1;
    asm volatile("" : "+r"(one));
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        x += one;
        asm volatile("" : "+r"(x));
      }
    }
    best = std::min(best, Seconds(begin, Clock::now()));
  }
  return 8 * kSteps / best;
}

// Random blocks with weights of a usual size (products of subnormal numbers are slow), the same
// 1024 again and again.
Buffer RandomRows(const Format& format, size_t rows, size_t k) {
  std::mt19937 random(1);
  const size_t total = rows * format.RowBytes(k);
  const size_t distinct = std::min<size_t>(total, 1024 * format.block_bytes);
  Buffer bytes = hwy::AllocateAligned<uint8_t>(total);
  std::vector<float> w(format.block_values);
  for (size_t at = 0; at < distinct; at += format.block_bytes) {
    bool sane = false;
    while (!sane) {
      for (uint32_t i = 0; i < format.block_bytes; ++i) {
        bytes[at + i] = static_cast<uint8_t>(random());
      }
      format.decode(&bytes[at], w.size(), w.data());
      float largest = 0;
      for (const float v : w) largest = std::max(largest, std::fabs(v));
      sane = std::isfinite(largest) && largest < 1e4f && largest > 1e-6f;
      for (const float v : w) sane = sane && !std::isnan(v);
    }
  }
  for (size_t at = distinct; at < total; at += distinct) {
    memcpy(&bytes[at], bytes.get(), std::min(distinct, total - at));
  }
  return bytes;
}

Buffer ToPanels(const Format& format, const Buffer& rows, size_t count, size_t k) {
  const size_t blocks = k / format.block_values;
  const size_t panel_bytes = blocks * format.panel_block_bytes;
  Buffer panels = hwy::AllocateAligned<uint8_t>(count / kPanelRows * panel_bytes);
  for (size_t row = 0; row < count; row += kPanelRows) {
    const uint8_t* sources[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) sources[r] = &rows[(row + r) * format.RowBytes(k)];
    format.to_panel(sources, blocks, &panels[row / kPanelRows * panel_bytes]);
  }
  return panels;
}

struct Source {
  const char* name;
  bool panels, bf16;
};
constexpr Source kSources[] = {
    {"panels", true, false}, {"rows", false, false}, {"bf16", true, true}};

void MatMulBench(benchmark::State& state, const Format& format, const Source& source,
                 const Shape& shape, size_t tokens) {
  const bool panels = source.panels;
  Buffer weights = RandomRows(format, shape.rows, shape.k);
  if (panels) weights = ToPanels(format, weights, shape.rows, shape.k);
  const size_t stride = RowStride(shape.k);
  std::vector<float> x(tokens * stride), out(tokens * shape.rows);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  Buffer act = hwy::AllocateAligned<uint8_t>(ActBytes(tokens, shape.k));
  Buffer scratch = hwy::AllocateAligned<uint8_t>(MatMulScratchBytes(shape.k));
  MatMulArgs args;
  args.weights = weights.get();
  args.panels = panels;
  args.rows = shape.rows;
  args.k = shape.k;
  args.tokens = tokens;
  args.act = MakeActView(act.get(), tokens, shape.k);
  args.f32 = x.data();
  args.f32_stride = stride;
  args.bf16_stride = stride;
  std::vector<uint16_t> bf16(tokens * args.bf16_stride);
  if (source.bf16) args.bf16 = bf16.data();
  for (size_t t = 0; source.bf16 && t < tokens; ++t) {
    RoundToBf16(&x[t * stride], shape.k, &bf16[t * args.bf16_stride]);
  }
  args.out = out.data();
  args.out_stride = shape.rows;
  args.scratch = scratch.get();
  const bool integers = format.arithmetic == Arithmetic::kInt8;
  for (size_t t = 0; integers && t < tokens; ++t) QuantiseRow(&x[t * stride], args.act, t);
  double best = 1e9;
  for (auto _ : state) {
    args.row_begin = args.row_end == shape.rows ? 0 : args.row_end;
    args.row_end = args.row_begin + shape.window;
    const Clock::time_point begin = Clock::now();
    for (size_t t = 0; integers && shape.quantise && t < tokens; ++t) {
      QuantiseRow(&x[t * stride], args.act, t);
    }
    format.matmul(args);
    benchmark::DoNotOptimize(out.data());
    best = std::min(best, Seconds(begin, Clock::now()));
  }
  const double call = static_cast<double>(shape.window * shape.k * tokens);
  const double macs = call * static_cast<double>(state.iterations());
  const size_t bytes =
      panels ? shape.window * shape.k / format.block_values / kPanelRows * format.panel_block_bytes
             : shape.window * format.RowBytes(shape.k);
  state.counters["best_GMAC/s"] = call / best / 1e9;
  state.counters["MAC/cycle"] = call / best / CyclesPerSecond();
  state.counters["GMAC/s"] = benchmark::Counter(macs / 1e9, benchmark::Counter::kIsRate);
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(bytes * state.iterations()) / 1e9,
                                              benchmark::Counter::kIsRate);
}

// Our kernel, or one form of oneDNN's.
void PrefillBench(benchmark::State& state, const Format& format, bool panels,
                  std::optional<OneDnn::Form> form) {
  constexpr size_t kRows = 2048, kK = 2048, kTokens = 512, kWindow = 128, kOurTile = 32;
  Buffer weights = RandomRows(format, kRows, kK);
  if (panels) weights = ToPanels(format, weights, kRows, kK);
  std::vector<float> x(kTokens * kK), out(kTokens * kRows), tile(kTokens * kOurTile);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  Buffer scratch = hwy::AllocateAligned<uint8_t>(MatMulScratchBytes(kK));
  const std::unique_ptr<OneDnn> onednn = OneDnn::Create(1);
  MatMulArgs args;
  args.panels = panels;
  args.k = kK;
  args.tokens = kTokens;
  args.f32 = x.data();
  args.f32_stride = kK;
  args.scratch = scratch.get();
  const auto multiply = [&](size_t first, size_t rows, float* to, size_t stride) {
    args.weights = weights.get() + (panels ? first / kPanelRows * kK * format.panel_block_bytes
                                           : first * format.RowBytes(kK));
    args.rows = args.row_end = rows;
    args.out = to;
    args.out_stride = stride;
    if (!form) {
      format.matmul(args);
    } else if (const Status s = onednn->Multiply(0, format, *form, args); !s.ok()) {
      state.SkipWithError(s.message().c_str());
    }
  };
  double best = 1e9;
  size_t first = 0;
  for (auto _ : state) {
    const Clock::time_point begin = Clock::now();
    if (form) {
      multiply(first, kWindow, out.data() + first, kRows);
    } else {
      for (size_t row = first; row < first + kWindow; row += kOurTile) {
        multiply(row, kOurTile, tile.data(), kOurTile);
        for (size_t t = 0; t < kTokens; ++t) {
          std::copy_n(tile.data() + t * kOurTile, kOurTile, out.data() + t * kRows + row);
        }
      }
    }
    benchmark::DoNotOptimize(out.data());
    best = std::min(best, Seconds(begin, Clock::now()));
    first = (first + kWindow) % kRows;
  }
  constexpr double kCall = static_cast<double>(kWindow * kK * kTokens);
  state.counters["best_GMAC/s"] = kCall / best / 1e9;
  state.counters["MAC/cycle"] = kCall / best / CyclesPerSecond();
  if (form) state.SetLabel(onednn->Implementation(0));
}

void RegisterPrefill(const Format& format, bool panels) {
  const auto add = [&](const char* who, std::optional<OneDnn::Form> form) {
    const std::string name =
        std::string(format.name) + (panels ? "/panels/prefill/" : "/rows/prefill/") + who;
    benchmark::RegisterBenchmark(name.c_str(), [=, &format](benchmark::State& state) {
      PrefillBench(state, format, panels, form);
    });
  };
  add("sluice", {});
  if (!OneDnn::Create(1)) return;
  for (const auto& [who, form] : {std::pair("onednn-in-place", OneDnn::Form::kInPlace),
                                  std::pair("onednn-floats", OneDnn::Form::kFloats),
                                  std::pair("onednn-bf16", OneDnn::Form::kBF16)}) {
    if (OneDnn::Offers(format, form)) add(who, form);
  }
}

void QuantiseBench(benchmark::State& state) {
  constexpr size_t kWidth = 2048;
  std::vector<float> x(kWidth);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  Buffer act = hwy::AllocateAligned<uint8_t>(ActBytes(1, kWidth));
  const ActView view = MakeActView(act.get(), 1, kWidth);
  for (auto _ : state) {
    QuantiseRow(x.data(), view, 0);
    benchmark::DoNotOptimize(view.q);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kWidth));
}
BENCHMARK(QuantiseBench);

void RegisterAll() {
  for (const Format* format : Formats()) {
    for (const Source& source : kSources) {
      if (source.panels && format->panel_block_bytes == 0) continue;
      if (source.bf16 && !MultipliesBf16(*format)) continue;
      if (format->block_values == 1 && !source.bf16) RegisterPrefill(*format, source.panels);
      for (const Shape& shape : kShapes) {
        for (const size_t tokens : kTokens) {
          if (tokens < shape.least_tokens || tokens > shape.most_tokens) continue;
          const std::string name = std::string(format->name) + "/" + source.name + "/" +
                                   shape.name + "/" + std::to_string(tokens);
          benchmark::RegisterBenchmark(name.c_str(), [=, &shape, &source](benchmark::State& state) {
            MatMulBench(state, *format, source, shape, tokens);
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  sluice::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
