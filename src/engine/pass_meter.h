// Runs a model's passes and says of each what it did and what it lost: the
// counters behind stats.h. Always on: a pass that loses nothing pays two looks
// at the clock, a few loads for each worker and some arithmetic, under 1 us on a
// few cores; one that loses or sleeps at least a quarter of a millisecond and 2 %
// asks the system why, about 20 us. Called by the thread that leads the team.
#ifndef SLUICE_SRC_ENGINE_PASS_METER_H_
#define SLUICE_SRC_ENGINE_PASS_METER_H_

#include "src/engine/model_runner.h"
#include "src/engine/pass_work.h"
#include "src/engine/stats.h"
#include "src/machine/lost_time.h"

namespace sluice {

class PassMeter {
 public:
  explicit PassMeter(ModelRunner& runner);  // which must outlive it

  // ModelRunner::Forward.
  PassTotals Forward(const Batch& batch, bool decode, const LogitsOut& out,
                     float* hidden = nullptr);

 private:
  void AddWork(const Batch& batch, PassTotals* pass);
  LostEvidence ExplainLost(TeamTime* time);
  double SlowClock(double seconds);

  ModelRunner& runner_;
  const WorkCounter counter_;
  PassWork work_;  // of one pass
  LostTime lost_;
  const double nominal_ghz_;
  double slow_clock_ = 0, since_glance_s_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_PASS_METER_H_
