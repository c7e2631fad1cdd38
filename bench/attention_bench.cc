// Attention on one thread: prefill chunks and decode, per KV type and shape.
// GMAC/s counts the products a causal window needs; GB/s the KV bytes read once.
// "bf16" multiplies pairs where the CPU can, "bf16 portable" floats as everywhere. "decode from
// memory" walks the kv heads of several layers, more than the caches hold, in pages that lie
// scattered like those of a pool that has been used; "read" beside it is the plain sum of the same
// bytes in the order of their addresses.
#include <benchmark/benchmark.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "simd/attention.h"
#include "src/base/arena.h"

namespace sluice {
namespace {

struct Case {
  const char* name;
  size_t dim, heads, window;  // heads: query heads of one kv head
};
// What the default model, a 1B llama and an 8B llama ask of one kv head.
const Case kCases[] = {
    {"gemma-270m", 256, 4, 512}, {"llama-1b", 64, 4, 1 << 20}, {"llama-8b", 128, 4, 1 << 20}};

// `streams`: kv heads of as many layers, visited in turn.
class Run {
 public:
  Run(const Case& c, KvType type, bool portable, size_t context, size_t tokens, size_t streams = 1)
      : shape_{c.dim, c.dim, type},
        portable_(portable),
        pages_((context + kSpan - 1) / kSpan),
        page_bytes_(KvPageBytes(shape_)) {
    const size_t queries = tokens * c.heads, all = pages_ * streams;
    memory_ = *Arena::Create(all * page_bytes_);  // as the KV pool
    scratch_ = *Arena::Create(AttentionScratchBytes(shape_));
    std::vector<float> x(c.dim);
    const auto fill = [&] {
      for (float& v : x) v = static_cast<float>(static_cast<int32_t>(Next())) * 0x1p-31f;
    };
    for (size_t i = 0; i < all; ++i) table_.push_back(memory_.data() + i * page_bytes_);
    if (streams > 1) {
      for (size_t i = all - 1; i > 0; --i) std::swap(table_[i], table_[(Next() >> 8) % (i + 1)]);
    }
    for (uint8_t* page : table_) {
      for (size_t slot = 0; slot < kSpan; ++slot) {
        fill();
        KvStore(shape_, page, slot, x.data(), x.data());
      }
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
      products_ += 2.0 * static_cast<double>((p + 1 - first_.back()) * c.dim * streams);
    }
    bytes_ = static_cast<double>((context - first_[0] + kSpan - 1) / kSpan * page_bytes_ * streams);
  }

  void Measure(benchmark::State& state) {
    AttentionArgs a;
    a.shape = shape_;
    a.ring_pages = pages_;
    a.queries = query_.size();
    a.query = query_.data();
    a.position = position_.data();
    a.first = first_.data();
    a.scale = 0.1f;
    a.out = to_.data();
    a.scratch = scratch_.data();
    a.portable = portable_;
    for (auto _ : state) {
      for (size_t i = 0; i < table_.size(); i += pages_) {
        a.pages = table_.data() + i;
        Attention(a);
      }
    }
    Count(state);
    state.counters["GMAC/s"] = benchmark::Counter(
        products_ * static_cast<double>(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
  }

  void Read(benchmark::State& state) {
    uint64_t sum[8] = {};
    for (auto _ : state) {
      for (size_t i = 0; i < table_.size() * page_bytes_; i += sizeof(sum)) {
        uint64_t x[8];
        memcpy(x, memory_.data() + i, sizeof(x));
        for (size_t j = 0; j < 8; ++j) sum[j] += x[j];
      }
      benchmark::DoNotOptimize(sum);
    }
    Count(state);
  }

 private:
  void Count(benchmark::State& state) const {
    state.counters["GB/s"] = benchmark::Counter(
        bytes_ * static_cast<double>(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
  }
  uint32_t Next() { return seed_ = seed_ * 1664525 + 1013904223; }

  KvShape shape_;
  bool portable_;
  size_t pages_, page_bytes_;
  uint32_t seed_ = 1;
  Arena memory_, scratch_;
  std::vector<uint8_t*> table_;
  std::vector<float> queries_, out_;
  std::vector<const float*> query_;
  std::vector<float*> to_;
  std::vector<int32_t> position_, first_;
  double products_ = 0, bytes_ = 0;
};

void Register() {
  struct Work {
    const char* name;
    size_t context, tokens, streams;
  };
  struct Way {
    const char* name;
    KvType type;
    bool portable;
  };
  for (const Case& c : kCases) {
    for (const Way way : {Way{"f32", KvType::kF32, true}, Way{"f16", KvType::kF16, true},
                          Way{"bf16 portable", KvType::kBF16, true},
                          Way{"bf16", KvType::kBF16, false}, Way{"q8", KvType::kQ8, true}}) {
      for (const Work w :
           {Work{"prefill 512 of 512", 512, 512, 1}, Work{"prefill 128 of 2048", 2048, 128, 1},
            Work{"decode at 256", 256, 1, 1}, Work{"decode at 4096", 4096, 1, 1},
            Work{"decode from memory at 16384", 16384, 1, (size_t{1} << 11) / c.dim}}) {
        if (w.streams > 1 && c.window < w.context) continue;  // a window fits in the caches
        const std::string name = std::string(c.name) + "/" + way.name + "/" + w.name;
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          Run(c, way.type, way.portable, w.context, w.tokens, w.streams).Measure(state);
        });
        if (w.streams == 1) continue;
        const std::string read = std::string(c.name) + "/" + way.name + "/read";
        benchmark::RegisterBenchmark(read.c_str(), [=](benchmark::State& state) {
          Run(c, way.type, way.portable, w.context, w.tokens, w.streams).Read(state);
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
