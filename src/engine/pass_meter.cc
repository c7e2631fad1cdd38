#include "src/engine/pass_meter.h"

#include <algorithm>
#include <chrono>

#include "src/machine/clock.h"
#include "src/machine/topology.h"

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

// Less was lost to interrupts and the like, and is not worth a question.
constexpr double kLeastLost = 2.5e-4;
constexpr double kLeastLostShare = 0.02;
constexpr double kGlanceEvery = 0.25;  // seconds of passes between looks at the core's clock
constexpr double kSlowClock = 0.03;    // what a glance may be off by

}  // namespace

PassMeter::PassMeter(ModelRunner& runner)
    : runner_(runner),
      counter_(runner.model(), runner.kv_type()),
      nominal_ghz_(NominalClockGhz()),
      since_glance_s_(kGlanceEvery) {
  runner.team().Run([](Worker&) {});  // from now on every worker's thread is known
  (void)lost_.Next(runner.team().ThreadIds());
}

PassTotals PassMeter::Forward(const Batch& batch, bool decode, const LogitsOut& out,
                              float* hidden) {
  const ThreadTeam& team = runner_.team();
  const uint64_t waited = team.wait_ns(), slept = team.slept_ns(), lost = team.lost_ns();
  const auto start = Clock::now();
  runner_.Forward(batch, decode, out, hidden);
  TeamTime t;
  t.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
  t.seats = decode ? runner_.decode_threads() : runner_.prefill_threads();
  t.workers = runner_.last_threads();
  t.cpus = ThisMachine().cpus;
  t.quota = ThisMachine().cpu_quota.value_or(0);
  t.waited_s = 1e-9 * static_cast<double>(team.wait_ns() - waited);
  t.slept_s = 1e-9 * static_cast<double>(team.slept_ns() - slept);
  t.lost_s = 1e-9 * static_cast<double>(team.lost_ns() - lost);
  const LostEvidence evidence = ExplainLost(&t);
  PassTotals pass = Losses(t);
  pass.major_faults = static_cast<double>(evidence.major_faults);
  pass.throttled_periods = static_cast<double>(evidence.throttling.periods);
  pass.seconds = t.wall_s;
  pass.slow_clock_s = SlowClock(t.wall_s) * t.wall_s;
  AddWork(batch, &pass);
  return pass;
}

LostEvidence PassMeter::ExplainLost(TeamTime* t) {
  const double least_s = std::max(kLeastLost, kLeastLostShare * t->workers * t->wall_s);
  if (t->lost_s + t->slept_s < least_s) {
    t->preempted_s = t->lost_s;
    return {};
  }
  const LostEvidence evidence = lost_.Next(runner_.team().ThreadIds());
  // A worker that was woken in a barrier and got no CPU counts as asleep until it does.
  const double kept_s = std::max(evidence.ready_s, evidence.throttling.seconds);
  const double woken_s = std::clamp(kept_s - t->lost_s, 0.0, t->slept_s);
  t->lost_s += woken_s;
  t->slept_s -= woken_s;
  t->waited_s -= woken_s;
  const LostCauses causes = SplitLost(t->lost_s, evidence);
  t->throttled_s = causes.throttled_s;
  t->preempted_s = causes.preempted_s;
  t->page_faults_s = causes.page_faults_s;
  return evidence;
}

// The share that the clock lacks of nominal, of the leader's core, which stands for all.
double PassMeter::SlowClock(double seconds) {
  since_glance_s_ += seconds;
  if (since_glance_s_ < kGlanceEvery || nominal_ghz_ == 0) return slow_clock_;
  since_glance_s_ = 0;
  const double lacks = 1 - GlanceAtClockGhz() / nominal_ghz_;
  slow_clock_ = lacks > kSlowClock ? lacks : 0;
  return slow_clock_;
}

void PassMeter::AddWork(const Batch& batch, PassTotals* pass) {
  work_.Clear();
  counter_.Add(batch, &work_);
  pass->passes = 1;
  pass->rows = static_cast<double>(batch.rows());
  pass->logit_rows = static_cast<double>(batch.logit_rows.size());
  pass->logit_passes = batch.logit_rows.empty() ? 0 : 1;
  pass->attention_macs = work_.attention_macs;
  pass->weight_bytes = work_.bytes - work_.kv_bytes;
  pass->kv_bytes = work_.kv_bytes;
}

}  // namespace sluice
