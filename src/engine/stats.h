// Where the time of a request went: the model behind `run --explain`,
// `timings.ceiling`, the log line and the metrics. Data and pure functions, no
// clock is read here (pass_meter.h does). Any thread.
//
// A pass takes some wall time. What of it the workers did not work is measured
// and has a name: waits in barriers, page faults, a quota, other programs. The
// rest is work, and two rooflines say what held it up (Williams, Waterman,
// Patterson 2009): the matrices' part either streams weights or multiplies,
// attention either streams keys and values or multiplies, whichever would take
// longer at this machine's ceilings; the other is hidden behind it. Work that
// took longer than both roofs together is given to the four in the same
// proportion, so that the causes add up to the wall time; how near the roofs it
// came is what the shares say. The clock's part is the time that multiplying
// would have saved at the nominal clock.
#ifndef SLUICE_SRC_ENGINE_STATS_H_
#define SLUICE_SRC_ENGINE_STATS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice {

enum class Cause : uint8_t {
  kWeightStream,
  kKvStream,
  kCompute,
  kBarrier,
  kPageFaults,  // that waited for the disk
  kThrottled,   // by a control group's quota
  kPreempted,   // others had the CPU: programs, more threads than CPUs, a hypervisor
  kClock,       // below nominal
  kSampling,    // and text: drawing, detokenising, callbacks
  kQueue,       // before the first pass, and passes without a row of this request
  kOther,       // scheduling between passes
};
inline constexpr size_t kCauses = 11;
const char* CauseName(Cause cause);  // "weight_stream"

// Seconds of each cause.
struct StallTimes {
  std::array<double, kCauses> seconds{};

  double& operator[](Cause cause) { return seconds[static_cast<size_t>(cause)]; }
  double operator[](Cause cause) const { return seconds[static_cast<size_t>(cause)]; }
  double sum() const;
  StallTimes& operator+=(const StallTimes& more);
};

// What some passes did and what they lost, added up. Wall seconds.
struct PassTotals {
  double seconds = 0;
  double barrier_s = 0, page_faults_s = 0, throttled_s = 0, preempted_s = 0;
  double slow_clock_s = 0;  // seconds, each times the share that the clock lacked of nominal
  double passes = 0, rows = 0;
  double logit_passes = 0, logit_rows = 0;  // those that made logits
  double attention_macs = 0;                // scores and weighed values
  double weight_bytes = 0, kv_bytes = 0;
  double major_faults = 0, throttled_periods = 0;  // of the process, as far as time was lost

  double lost_s() const { return barrier_s + page_faults_s + throttled_s + preempted_s; }
  double bytes() const { return weight_bytes + kv_bytes; }
  PassTotals& operator+=(const PassTotals& more);
  PassTotals& operator*=(double factor);
};

// What this machine could do at best with this model in one phase. Unpacking is what a pass's first
// row costs more than the others. 0: not known.
struct PhaseCeilings {
  double read_gb_s = 0;               // in the same minute
  double quiet_read_gb_s = 0;         // where nobody else reads: the good value of the history
  double first_row_s = 0, row_s = 0;  // layers' matrices
  double first_logits_s = 0, logits_s = 0;  // output matrix
  double attention_gmac_s = 0;

  double MatrixSeconds(const PassTotals& work) const;
  double AttentionSeconds(const PassTotals& work) const;
  double ComputeSeconds(const PassTotals& work) const;
};
struct PassCeilings {
  PhaseCeilings prefill, decode;
};

// Adds up to work.seconds. Where one worker can read as fast as the memory gives, the loss of
// another costs nothing: no more than what a pass took longer than its bytes at quiet_read_gb_s
// was lost.
StallTimes Attribute(const PassTotals& work, const PhaseCeilings& ceilings);

// Shares of the two ceilings over all of the passes' time, 0 if not known; 1 is all.
struct CeilingShares {
  double bandwidth = 0, compute = 0;
  const char* binds() const;  // "bandwidth", "compute"; "" if neither is known
};
CeilingShares SharesOf(const PassTotals& work, const PhaseCeilings& ceilings);

// The time of one request from its arrival to its end, by where it was measured.
struct RequestWork {
  PassTotals prefill, decode;  // whole passes, those rows of others beside it included
  double queue_s = 0, sampling_s = 0, other_s = 0;
  PassCeilings ceilings;  // that it is judged by

  double major_faults() const { return prefill.major_faults + decode.major_faults; }

  StallTimes Stalls() const;
  CeilingShares prefill_shares() const { return SharesOf(prefill, ceilings.prefill); }
  CeilingShares decode_shares() const { return SharesOf(decode, ceilings.decode); }
  RequestWork& operator+=(const RequestWork& more);  // judged by the ceilings of `more`
};

// How the workers spent a region's wall time, for Losses.
struct TeamTime {
  double wall_s = 0;
  int seats = 1;     // workers that would run if nobody disturbed them
  int workers = 1;   // that ran; fewer while other programs keep CPUs busy
  int cpus = 1;      // for them
  double quota = 0;  // CPUs that the control group may use; 0: all
  // Added up over the workers.
  double waited_s = 0, slept_s = 0, lost_s = 0;
  // Of lost_s.
  double throttled_s = 0, preempted_s = 0, page_faults_s = 0;
};

// The parts of the wall time that were lost, as the four of PassTotals. A worker that has no CPU
// makes others sleep in the next barrier: as much of their sleep as that can explain is its loss
// and no barrier's. A seat left empty is the quota's where that is for fewer CPUs, and
// else other programs'. Where more workers than CPUs take turns, each other's turns are no loss of
// time; what is lost is what the CPUs were not used for.
PassTotals Losses(const TeamTime& time);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_STATS_H_
