// What the account of every pass costs: decode passes of a real model, alone and metered, in one
// process, in turns of a few passes: alone, metered, metered, alone, so that what drifts cancels.
// Says the median of what metered turns took more than the two beside them, with its standard
// error.
//   pass_meter_bench MODEL.gguf [threads] [seconds]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "src/engine/pass_meter.h"

namespace sluice {
namespace {

constexpr size_t kPasses = 5, kDepth = 64;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

int Main(const char* path, int threads, double seconds) {
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
  using Clock = std::chrono::steady_clock;
  std::vector<double> us[2], more_pct;
  tokens.resize(1);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (size_t turn = 0; turn % 4 != 0 || Clock::now() < end; ++turn) {
    kv->Truncate(kDepth);
    const bool metered = turn % 4 == 1 || turn % 4 == 2;
    const auto start = Clock::now();
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
    const std::chrono::duration<double, std::micro> wall = Clock::now() - start;
    us[metered].push_back(wall.count() / kPasses);
    if (turn % 4 != 3) continue;
    const auto sum = [](const std::vector<double>& v) { return v[v.size() - 1] + v[v.size() - 2]; };
    more_pct.push_back(100 * (sum(us[1]) / sum(us[0]) - 1));
  }
  const double median = Median(more_pct);
  std::vector<double> off;
  for (const double pct : more_pct) off.push_back(std::abs(pct - median));
  // Of a median, from the median distance to it, as if the distances were normal.
  const double error = 1.2533 * 1.4826 * Median(off) / std::sqrt(static_cast<double>(off.size()));
  std::printf("us per pass, medians: alone %.1f, metered %.1f\n", Median(us[0]), Median(us[1]));
  std::printf(
      "metered takes %+.3f %% more, standard error %.3f %% (%zu groups of 4 x %zu passes)\n",
      median, error, more_pct.size(), kPasses);
  return explained_s > 0 ? 0 : 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "pass_meter_bench MODEL.gguf [threads] [seconds]\n");
    return 2;
  }
  return sluice::Main(argv[1], argc > 2 ? std::atoi(argv[2]) : 0,
                      argc > 3 ? std::atof(argv[3]) : 30);
}
