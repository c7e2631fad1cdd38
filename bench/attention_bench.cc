// Attention on one thread: prefill chunks and decode, per KV type and shape.
// GMAC/s counts the products a causal window needs; GB/s the KV bytes read once.
#include <benchmark/benchmark.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "simd/attention.h"

namespace sluice {
namespace {

struct Case {
  const char* name;
  size_t dim, heads, window;  // heads: query heads of one kv head
};
// What the default model, a 1B llama and an 8B llama ask of one kv head.
const Case kCases[] = {
    {"gemma-270m", 256, 4, 512}, {"llama-1b", 64, 4, 1 << 20}, {"llama-8b", 128, 4, 1 << 20}};

class Run {
 public:
  Run(const Case& c, KvType type, size_t context, size_t tokens)
      : shape_{c.dim, c.dim, type}, pages_((context + kSpan - 1) / kSpan) {
    const size_t bytes = KvPageBytes(shape_), queries = tokens * c.heads;
    memory_ = Aligned(pages_ * bytes);
    scratch_ = Aligned(AttentionScratchBytes(shape_));
    std::vector<float> x(c.dim);
    uint32_t seed = 1;
    const auto fill = [&] {
      for (float& v : x)
        v = static_cast<float>(static_cast<int32_t>(seed = seed * 1664525 + 1013904223)) * 0x1p-31f;
    };
    for (size_t i = 0; i < pages_; ++i) table_.push_back(memory_.get() + i * bytes);
    for (size_t p = 0; p < context; ++p) {
      fill();
      KvStore(shape_, memory_.get() + p / kSpan * bytes, p % kSpan, x.data(), x.data());
    }
    queries_.resize(queries * c.dim);
    out_.resize(queries * c.dim);
    for (size_t i = 0; i < queries; ++i) {
      fill();
      std::copy(x.begin(), x.end(), &queries_[i * c.dim]);
      query_.push_back(&queries_[i * c.dim]);
      to_.push_back(&out_[i * c.dim]);
      const size_t p = context - tokens + i / c.heads;
      position_.push_back(static_cast<int32_t>(p));
      first_.push_back(static_cast<int32_t>(p + 1 > c.window ? p + 1 - c.window : 0));
      products_ += 2.0 * static_cast<double>((p + 1 - first_.back()) * c.dim);
    }
    bytes_ = static_cast<double>((context - first_[0] + kSpan - 1) / kSpan * bytes);
  }

  void Measure(benchmark::State& state) {
    AttentionArgs a;
    a.shape = shape_;
    a.pages = table_.data();
    a.ring_pages = pages_;
    a.queries = query_.size();
    a.query = query_.data();
    a.position = position_.data();
    a.first = first_.data();
    a.scale = 0.1f;
    a.out = to_.data();
    a.scratch = scratch_.get();
    for (auto _ : state) Attention(a);
    const double n = static_cast<double>(state.iterations());
    state.counters["GMAC/s"] =
        benchmark::Counter(products_ * n * 1e-9, benchmark::Counter::kIsRate);
    state.counters["GB/s"] = benchmark::Counter(bytes_ * n * 1e-9, benchmark::Counter::kIsRate);
  }

 private:
  struct Free {
    void operator()(uint8_t* p) const { operator delete[](p, std::align_val_t(64)); }
  };
  using Bytes = std::unique_ptr<uint8_t[], Free>;
  static Bytes Aligned(size_t n) {
    Bytes b(new (std::align_val_t(64)) uint8_t[n]);
    memset(b.get(), 0, n);
    return b;
  }

  KvShape shape_;
  size_t pages_;
  Bytes memory_, scratch_;
  std::vector<const uint8_t*> table_;
  std::vector<float> queries_, out_;
  std::vector<const float*> query_;
  std::vector<float*> to_;
  std::vector<int32_t> position_, first_;
  double products_ = 0, bytes_ = 0;
};

void Register() {
  for (const Case& c : kCases) {
    for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8}) {
      struct Work {
        const char* name;
        size_t context, tokens;
      };
      for (const Work w :
           {Work{"prefill 512 of 512", 512, 512}, Work{"prefill 128 of 2048", 2048, 128},
            Work{"decode at 256", 256, 1}, Work{"decode at 4096", 4096, 1}}) {
        const std::string name = std::string(c.name) + "/" + KvTypeName(type) + "/" + w.name;
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          Run(c, type, w.context, w.tokens).Measure(state);
        });
      }
    }
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  sluice::Register();
  benchmark::RunSpecifiedBenchmarks();
}
