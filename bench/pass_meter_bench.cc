// What the account of every pass costs: decode passes of a real model, alone
// and metered, in turns of 20 in one process, medians of both.
//   pass_meter_bench MODEL.gguf [threads]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "src/engine/pass_meter.h"

namespace sluice {
namespace {

constexpr size_t kTurns = 200, kPasses = 20, kDepth = 64;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

int Main(const char* path, int threads) {
  RunnerOptions options;
  options.threads = threads;
  options.context = kDepth + kPasses;
  options.adapt_threads = false;
  const auto runner = ModelRunner::Create(path, options);
  if (!runner.ok()) {
    std::fprintf(stderr, "%s\n", runner.status().message().c_str());
    return 1;
  }
  PassMeter meter(**runner);
  const PhaseCeilings ceilings = (*runner)->MeasureCeilings().decode;
  const std::unique_ptr<KvSequence> kv = (*runner)->NewSequence();
  std::vector<int32_t> tokens(kDepth, 1);
  std::vector<int32_t> logit_rows{0};
  std::vector<float> logits((*runner)->config().vocab);
  std::vector<BatchSegment> segments{{kv.get(), 0, kDepth, 0}};
  if (!kv->Reserve(kDepth).ok()) return 1;
  (*runner)->Forward({tokens, segments, {}}, false, {});
  kv->Advance(kDepth);

  double explained_s = 0;  // keeps the compiler from leaving the account out
  std::vector<double> us[2];
  tokens.resize(1);
  for (size_t turn = 0; turn < 2 * kTurns; ++turn) {
    kv->Truncate(kDepth);
    const bool metered = turn % 4 == 1 || turn % 4 == 2;
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < kPasses; ++i) {
      if (!kv->Reserve(1).ok()) return 1;
      segments[0] = {kv.get(), 0, 1, static_cast<int32_t>(kv->length())};
      const Batch batch{tokens, segments, logit_rows};
      if (metered) {
        explained_s += Attribute(meter.Forward(batch, true, {logits.data()}), ceilings).sum();
      } else {
        (*runner)->Forward(batch, true, {logits.data()});
      }
      kv->Advance(1);
    }
    const std::chrono::duration<double, std::micro> wall = std::chrono::steady_clock::now() - start;
    us[metered].push_back(wall.count() / kPasses);
  }
  const double alone = Median(us[0]), metered = Median(us[1]);
  std::printf("us per pass, medians: alone %.1f, metered %.1f (%+.2f %%)\n", alone, metered,
              100 * (metered / alone - 1));
  std::printf("the fastest turn: alone %.1f, metered %.1f (%+.2f %%)\n",
              *std::min_element(us[0].begin(), us[0].end()),
              *std::min_element(us[1].begin(), us[1].end()),
              100 * (*std::min_element(us[1].begin(), us[1].end()) /
                         *std::min_element(us[0].begin(), us[0].end()) -
                     1));
  return explained_s > 0 ? 0 : 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "pass_meter_bench MODEL.gguf [threads]\n");
    return 2;
  }
  return sluice::Main(argv[1], argc > 2 ? std::atoi(argv[2]) : 0);
}
