#include "src/engine/stats.h"

#include <algorithm>
#include <numeric>

namespace sluice {

namespace {

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

}  // namespace

const char* CauseName(Cause cause) {
  constexpr const char* kNames[kCauses] = {"weight_stream", "kv_stream", "compute",   "barrier",
                                           "page_faults",   "throttled", "preempted", "clock",
                                           "sampling",      "queue",     "other"};
  return kNames[static_cast<size_t>(cause)];
}

double StallTimes::sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

StallTimes& StallTimes::operator+=(const StallTimes& more) {
  for (size_t i = 0; i < kCauses; ++i) seconds[i] += more.seconds[i];
  return *this;
}

namespace {

// Calls f(mine, theirs) for every number.
template <class F>
void ForEachNumber(PassTotals& a, const PassTotals& b, const F& f) {
  constexpr double PassTotals::* kNumbers[] = {
      &PassTotals::seconds,     &PassTotals::barrier_s,      &PassTotals::page_faults_s,
      &PassTotals::throttled_s, &PassTotals::preempted_s,    &PassTotals::slow_clock_s,
      &PassTotals::passes,      &PassTotals::rows,           &PassTotals::logit_passes,
      &PassTotals::logit_rows,  &PassTotals::attention_macs, &PassTotals::weight_bytes,
      &PassTotals::kv_bytes,    &PassTotals::major_faults,   &PassTotals::throttled_periods};
  static_assert(sizeof(kNumbers) / sizeof(kNumbers[0]) * sizeof(double) == sizeof(PassTotals));
  for (const auto number : kNumbers) f(a.*number, b.*number);
}

}  // namespace

PassTotals& PassTotals::operator+=(const PassTotals& more) {
  ForEachNumber(*this, more, [](double& mine, double theirs) { mine += theirs; });
  return *this;
}

PassTotals& PassTotals::operator*=(double factor) {
  ForEachNumber(*this, *this, [factor](double& mine, double) { mine *= factor; });
  return *this;
}

double PhaseCeilings::MatrixSeconds(const PassTotals& w) const {
  return w.passes * first_row_s + (w.rows - w.passes) * row_s + w.logit_passes * first_logits_s +
         (w.logit_rows - w.logit_passes) * logits_s;
}

double PhaseCeilings::AttentionSeconds(const PassTotals& w) const {
  return Ratio(1e-9 * w.attention_macs, attention_gmac_s);
}

double PhaseCeilings::ComputeSeconds(const PassTotals& w) const {
  return MatrixSeconds(w) + AttentionSeconds(w);
}

StallTimes Attribute(const PassTotals& w, const PhaseCeilings& c) {
  const double read_s = Ratio(w.bytes(), c.quiet_read_gb_s * 1e9);
  const double lost_s = std::min(w.lost_s(), std::max(0.0, w.seconds - read_s));
  const double cost = Ratio(lost_s, w.lost_s());
  StallTimes t;
  t[Cause::kBarrier] = cost * w.barrier_s;
  t[Cause::kPageFaults] = cost * w.page_faults_s;
  t[Cause::kThrottled] = cost * w.throttled_s;
  t[Cause::kPreempted] = cost * w.preempted_s;
  const double work_s = w.seconds - lost_s;
  // Without a measured ceiling any will do, as long as nothing else is known either: bytes divide
  // the time between the two streams.
  const double matrices_s = c.MatrixSeconds(w), attention_s = c.AttentionSeconds(w);
  const bool nothing_known = c.read_gb_s == 0 && matrices_s + attention_s == 0;
  const double bytes_s = nothing_known ? 1e9 : c.read_gb_s * 1e9;
  const double weights_s = Ratio(w.weight_bytes, bytes_s), kv_s = Ratio(w.kv_bytes, bytes_s);
  const double roof_s = std::max(weights_s, matrices_s) + std::max(kv_s, attention_s);
  if (roof_s == 0) {
    t[Cause::kOther] = work_s;
    return t;
  }
  const double stretch = work_s / roof_s;
  double compute_s = 0;
  (weights_s >= matrices_s ? t[Cause::kWeightStream] : compute_s) +=
      stretch * std::max(weights_s, matrices_s);
  (kv_s >= attention_s ? t[Cause::kKvStream] : compute_s) += stretch * std::max(kv_s, attention_s);
  t[Cause::kClock] = compute_s * std::clamp(Ratio(w.slow_clock_s, w.seconds), 0.0, 1.0);
  t[Cause::kCompute] = compute_s - t[Cause::kClock];
  return t;
}

const char* CeilingShares::binds() const {
  if (bandwidth == 0 && compute == 0) return "";
  return compute > bandwidth ? "compute" : "bandwidth";
}

CeilingShares SharesOf(const PassTotals& w, const PhaseCeilings& c) {
  return {Ratio(w.bytes(), c.read_gb_s * 1e9 * w.seconds), Ratio(c.ComputeSeconds(w), w.seconds)};
}

StallTimes RequestWork::Stalls() const {
  StallTimes t = Attribute(prefill, ceilings.prefill);
  t += Attribute(decode, ceilings.decode);
  t[Cause::kSampling] += sampling_s;
  t[Cause::kQueue] += queue_s;
  t[Cause::kOther] += other_s;
  return t;
}

RequestWork& RequestWork::operator+=(const RequestWork& more) {
  prefill += more.prefill;
  decode += more.decode;
  queue_s += more.queue_s;
  sampling_s += more.sampling_s;
  other_s += more.other_s;
  ceilings = more.ceilings;
  return *this;
}

PassTotals Losses(const TeamTime& t) {
  // In worker-seconds, of which there are `seats` in every second of wall time.
  const double others = t.workers - 1.0;
  const int seats = std::min(std::max(t.seats, t.workers), std::max(t.cpus, 1));
  const double empty_s = std::max(0, seats - t.workers) * t.wall_s;
  const double barred_s =
      t.quota > 0 ? std::min(empty_s, std::max(0.0, seats - t.quota) * t.wall_s) : 0;
  const double turns_s = std::max(0, t.workers - seats) * t.wall_s;
  const double induced_s = std::min(t.slept_s, others * t.lost_s);
  const double lost_s = t.lost_s + induced_s;
  const double barrier_s = std::max(0.0, t.waited_s - induced_s);
  const double gone_s = lost_s + barrier_s;
  const double real = gone_s > turns_s ? (gone_s - turns_s) / gone_s : 0;
  const double each = Ratio(real * lost_s, t.lost_s);  // of a second lost by one worker
  PassTotals p;
  p.barrier_s = real * barrier_s;
  p.throttled_s = each * t.throttled_s + barred_s;
  p.preempted_s = each * t.preempted_s + empty_s - barred_s;
  p.page_faults_s = each * t.page_faults_s;
  // Readings of different clocks: never more than there was.
  const double whole = seats * t.wall_s;
  p *= p.lost_s() > whole ? Ratio(whole, p.lost_s()) / seats : 1.0 / seats;
  return p;
}

}  // namespace sluice
