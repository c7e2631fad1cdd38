// Holds the model of time to what happens: measures the ceilings that a prediction
// needs, predicts, runs the workload through the engine right after, and says both.
// Used by `sluice plan --check` on the thread that leads the runner's team.
#ifndef SLUICE_SRC_ENGINE_PLAN_CHECK_H_
#define SLUICE_SRC_ENGINE_PLAN_CHECK_H_

#include "src/engine/machine_speed.h"
#include "src/engine/model_runner.h"
#include "src/engine/plan.h"
#include "src/text/tokenizer.h"

namespace sluice {

struct CheckSample {
  Prediction predicted;
  double read_gb_s = 0;  // the ceiling measured beside it
  // Measured, as in Prediction.
  double ttft_s = 0, last_ttft_s = 0, token_s = 0, total_s = 0;
};

// Context, chunk and sequences that a workload needs of a runner.
void SizeForWorkload(const Workload& workload, RunnerOptions* options);

// One pair of prediction and run: random tokens as prompts, greedy, no end token. The new rates are
// added to `ceilings`. The runner was made with SizeForWorkload.
Result<CheckSample> CheckPlan(ModelRunner& runner, const Tokenizer& tokenizer,
                              const Workload& workload, Ceilings* ceilings);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_PLAN_CHECK_H_
