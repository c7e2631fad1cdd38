#include "src/engine/plan_check.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "src/engine/engine.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

struct Times {
  size_t tokens = 0;
  double first_s = 0, last_s = 0;
};

Request RandomRequest(const Workload& w, size_t index, size_t vocab) {
  Request request;
  for (size_t i = 0; i < w.prompt; ++i) {
    request.prompt.push_back(static_cast<int32_t>(RandomBits(3, index, i) % vocab));
  }
  request.sampler.temp = 0;
  request.max_tokens = w.output;
  request.ignore_eos = true;
  request.use_cache = false;
  return request;
}

}  // namespace

void SizeForWorkload(const Workload& w, RunnerOptions* options) {
  options->context = std::max(w.positions(), w.prompt + w.output);
  options->chunk = std::max(w.chunk, w.concurrency);
  options->sequences = std::max<size_t>(1, w.concurrency);
  options->kv_type = w.kv_type;
}

Result<CheckSample> CheckPlan(ModelRunner& runner, const Tokenizer& tokenizer, const Workload& w,
                              Ceilings* ceilings) {
  const ModelWork model(runner.config(), runner.model().weights());
  RETURN_IF_ERROR(MeasureCeilings(runner.team(), runner.decode_threads(), runner.prefill_threads(),
                                  CeilingsOf(model, w.kv_type), ceilings));
  CheckSample sample;
  const MachineSpeed speed =
      SpeedHere(model, w.kv_type, *ceilings, CeilingOf::kNow, runner.prefill_threads());
  sample.predicted = Predict(model, speed, w);
  sample.read_gb_s = speed.read_gb_s;

  const size_t n = std::max<size_t>(1, w.concurrency);
  EngineOptions options;
  options.max_sequences = w.max_sequences > 0 ? w.max_sequences : n;
  options.max_stall_s = w.max_stall_s;
  Engine engine(runner, tokenizer, options);
  std::vector<Times> times(n);
  const auto start = Clock::now();
  for (size_t i = 0; i < n; ++i) {
    Request request = RandomRequest(w, i, runner.config().vocab);
    request.on_token = [&times, start, i](const TokenEvent& token) {
      if (token.id < 0) return;
      Times& t = times[i];
      t.last_s = std::chrono::duration<double>(Clock::now() - start).count();
      if (t.tokens++ == 0) t.first_s = t.last_s;
    };
    RETURN_IF_ERROR(engine.Add(std::move(request)).status());
  }
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(more, engine.Step());
  }
  for (const Times& t : times) {
    sample.ttft_s += t.first_s / static_cast<double>(n);
    sample.last_ttft_s = std::max(sample.last_ttft_s, t.first_s);
    sample.total_s = std::max(sample.total_s, t.last_s);
    if (t.tokens > 1) {
      sample.token_s +=
          (t.last_s - t.first_s) / static_cast<double>(t.tokens - 1) / static_cast<double>(n);
    }
  }
  return sample;
}

}  // namespace sluice
