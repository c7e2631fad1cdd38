// The tuning guide as a program: what somebody wants of a model, as a sentence, and
// which changes of settings, format or hardware would give it, each tried in the
// model of time. Used by `sluice plan --advise`; any thread.
#ifndef SLUICE_SRC_ENGINE_ADVICE_H_
#define SLUICE_SRC_ENGINE_ADVICE_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/engine/plan.h"
#include "src/machine/devices.h"

namespace sluice {

// "TTFT under 2 s at 4k prompts", "10 tok/s for 4 users, 8k context".
struct Goal {
  std::optional<double> ttft_s;   // of everybody: the last of the requests
  std::optional<double> token_s;  // between the tokens of one stream, on average
  std::optional<size_t> users, prompt, output, context;

  // How far from it, as a factor: at most 1 where the goal is met.
  double Distance(const Prediction& p) const;
};
// 4k is 4096. kInvalidArgument names the word that has no meaning here, and shows examples.
Result<Goal> ParseGoal(const std::string& text);

struct Advice {
  // What is changed: "now" for nothing, "format", "kv-type", "prefill", "concurrency", "context",
  // "hardware", or two of them with " and ".
  std::string what;
  std::string change;  // "--kv-type q8", "weights in Q4_0"
  Prediction prediction;
  MemoryPlan memory;
  double distance = 0;
  bool meets() const { return distance <= 1 && memory.fits(); }
};

struct AdviceQuestion {
  const ModelWork* model = nullptr;
  Workload workload;  // as planned; the goal's own numbers replace these
  Goal goal;
  std::vector<const Format*> formats;  // to try; must be measured
  std::span<const Device> devices;
  // The speed of the machine that is planned for.
  std::function<MachineSpeed(const ModelWork&, KvType)> speed;
  int threads = 1;
  double room_bytes = 0;
};

// The workload of the question, with the goal's numbers.
Workload WorkloadOf(const AdviceQuestion& question);
// First what holds now, then changes that help, those that reach the goal first and the cheapest of
// them before the others: settings, format, hardware (the slowest that does). If no single change
// of settings or format reaches it, pairs of a format with a setting are tried too.
Result<std::vector<Advice>> Advise(const AdviceQuestion& question);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_ADVICE_H_
