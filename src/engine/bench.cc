#include "src/engine/bench.h"

#include <algorithm>
#include <chrono>

#include "src/base/random.h"
#include "src/engine/bench_statistics.h"
#include "src/machine/bandwidth.h"
#include "src/machine/clock.h"
#include "src/machine/topology.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBandwidthSeconds = 0.2;
constexpr size_t kProbeTokens = 256;  // rows of a product in the kernel probe

double NanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

std::vector<double> BenchResult::samples_ts() const {
  std::vector<double> ts;
  for (const double ns : samples_ns) ts.push_back(1e9 * static_cast<double>(test.tokens()) / ns);
  return ts;
}
double BenchResult::avg_ns() const { return Mean(samples_ns); }
double BenchResult::avg_ts() const { return Mean(samples_ts()); }
double BenchResult::gb_s() const { return work.bytes / avg_ns(); }
double BenchResult::gmac_s() const { return work.macs() / avg_ns(); }
double BenchResult::bandwidth_roof_ts() const {
  return static_cast<double>(test.tokens()) * Share(read_bandwidth_gb_s * 1e9, work.bytes);
}
double BenchResult::compute_roof_ts() const {
  return Share(static_cast<double>(test.tokens()), compute_s);
}
bool BenchResult::compute_binds() const {
  return bandwidth_roof_ts() == 0 || compute_roof_ts() < bandwidth_roof_ts();
}
double BenchResult::roof_ts() const {
  return compute_binds() ? compute_roof_ts() : bandwidth_roof_ts();
}
double BenchResult::ceiling_pct() const { return 100 * Share(avg_ts(), roof_ts()); }
const char* BenchResult::ceiling_remark() const {
  const auto passes = static_cast<double>(std::max<size_t>(test.generate, 1));
  return CeilingRemark(ceiling_pct(), compute_binds() ? 0 : work.bytes / passes,
                       ThisMachine().LastCacheBytes());
}

void SizeForTests(std::span<const BenchTest> tests, size_t chunk, RunnerOptions* options) {
  options->chunk = chunk;
  options->context = options->sequences = 1;
  for (const BenchTest& test : tests) {
    options->context = std::max({options->context, test.positions(), test.concurrency});
    options->chunk = std::max(options->chunk, test.concurrency);
    options->sequences = std::max(options->sequences, test.concurrency);
  }
}

Bench::Bench(ModelRunner& runner, size_t chunk)
    : runner_(runner),
      chunk_(std::min(chunk, runner.chunk())),
      counter_(runner.model(), runner.kv_type()) {}

Status Bench::Start(const BenchTest& test, bool warm_up) {
  result_ = BenchResult();
  result_.test = test;
  result_.threads = test.generate > 0 ? runner_.decode_threads() : runner_.prefill_threads();
  prefill_work_ = decode_work_ = PassWork();
  worker_ns_ = wall_s_ = 0;
  barriers_ = wait_ns_ = lost_ns_ = 0;
  cpu_used_ = CpuTime();
  if (test.prompt > 0) RETURN_IF_ERROR(MeasureRates(runner_.prefill_threads()));
  if (test.generate > 0) RETURN_IF_ERROR(MeasureRates(runner_.decode_threads()));
  sequences_.clear();
  for (size_t i = 0; i < test.concurrency; ++i) {
    sequences_.push_back(runner_.NewSequence());
    sequences_.back()->long_rope = runner_.model().UsesLongRope(test.positions());
  }
  if (warm_up) {
    RETURN_IF_ERROR(GoToDepth());
    RETURN_IF_ERROR(Prefill(test.depth + test.prompt, true, false));
    RETURN_IF_ERROR(Generate(std::min<size_t>(test.generate, 1), false));
  }
  bandwidth_before_ = ProbeBandwidth();
  return Status();
}

Status Bench::MeasureRates(int threads) {
  if (rates_.contains(threads)) return Status();
  ASSIGN_OR_RETURN(rates_[threads],
                   counter_.MeasureRates(runner_.team(), threads, std::min(chunk_, kProbeTokens)));
  return Status();
}

// The keys and values of the depth stay from sample to sample; a sliding window that has moved on
// has lost them, and they are computed again.
Status Bench::GoToDepth() {
  for (const auto& kv : sequences_) kv->Truncate(result_.test.depth);
  return Prefill(result_.test.depth, false, false);
}

Status Bench::Sample() {
  const BenchTest& test = result_.test;
  RETURN_IF_ERROR(GoToDepth());
  const CpuTime before = ReadCpuTime();
  const ThreadTeam& team = runner_.team();
  const uint64_t barriers = team.barriers(), waited = team.wait_ns(), lost = team.lost_ns();
  const auto start = Clock::now();
  RETURN_IF_ERROR(Prefill(test.depth + test.prompt, true, true));
  RETURN_IF_ERROR(Generate(test.generate, true));
  const double ns = NanosecondsSince(start);
  result_.samples_ns.push_back(ns);
  wall_s_ += 1e-9 * ns;
  barriers_ += team.barriers() - barriers;
  wait_ns_ += team.wait_ns() - waited;
  lost_ns_ += team.lost_ns() - lost;
  const CpuTime after = ReadCpuTime();
  cpu_used_.busy_s += after.busy_s - before.busy_s;
  cpu_used_.steal_s += after.steal_s - before.steal_s;
  cpu_used_.own_s += after.own_s - before.own_s;
  cpu_used_.throttled += after.throttled - before.throttled;
  return Status();
}

BenchResult Bench::Finish() {
  BenchResult& r = result_;
  CHECK(!r.samples_ns.empty());
  const auto samples = static_cast<double>(r.samples_ns.size());
  // One sample's work: the same in each.
  const auto add = [&](const PassWork& work, int threads) {
    if (work.matrix_macs.empty()) return;
    r.work.Add(work, 1 / samples);
    r.compute_s += ComputeSeconds(work, rates_.at(threads)) / samples;
  };
  add(prefill_work_, runner_.prefill_threads());
  add(decode_work_, runner_.decode_threads());
  const double tokens = samples * static_cast<double>(r.test.tokens());
  r.barriers_per_token = Share(static_cast<double>(barriers_), tokens);
  r.stall_pct = 100 * Share(static_cast<double>(wait_ns_), worker_ns_);
  r.lost_pct = 100 * Share(static_cast<double>(lost_ns_), worker_ns_);
  const double cpu_s = wall_s_ * ThisMachine().cpus;
  r.other_pct = 100 * Share(std::max(0.0, cpu_used_.busy_s - cpu_used_.own_s), cpu_s);
  r.steal_pct = 100 * Share(cpu_used_.steal_s, cpu_s);
  r.throttled = cpu_used_.throttled;
  r.clock_ghz = MeasureClockGhz(runner_.team(), r.threads);
  // The better of before and after: others only ever take bandwidth away.
  r.read_bandwidth_gb_s = std::max(bandwidth_before_, ProbeBandwidth());
  sequences_.clear();
  return r;
}

double Bench::ProbeBandwidth() {
  const Result<double> gb_s = MeasureReadBandwidth(
      runner_.team(), kBandwidthSeconds, result_.threads, runner_.model().WeightBytesPerToken());
  return gb_s.ok() ? *gb_s : 0;
}

int32_t Bench::TokenAt(size_t sequence, size_t position) const {
  return static_cast<int32_t>(RandomBits(1, sequence, position) % runner_.config().vocab);
}

// Brings every sequence to `length`: as many rows of the first that lacks some as a pass takes,
// then of the next. Logits, where wanted, are those of each sequence's last row.
Status Bench::Prefill(size_t length, bool logits, bool timed) {
  for (;;) {
    tokens_.clear();
    segments_.clear();
    logit_rows_.clear();
    for (size_t i = 0; i < sequences_.size() && tokens_.size() < chunk_; ++i) {
      const size_t at = sequences_[i]->length();
      if (at >= length) continue;
      const size_t rows = std::min(length - at, chunk_ - tokens_.size());
      segments_.push_back({sequences_[i].get(), tokens_.size(), rows, static_cast<int32_t>(at)});
      for (size_t p = at; p < at + rows; ++p) tokens_.push_back(TokenAt(i, p));
      if (logits && at + rows == length) {
        logit_rows_.push_back(static_cast<int32_t>(tokens_.size() - 1));
      }
    }
    if (tokens_.empty()) return Status();
    RETURN_IF_ERROR(Pass(false, timed));
  }
}

Status Bench::Generate(size_t steps, bool timed) {
  for (size_t step = 0; step < steps; ++step) {
    tokens_.clear();
    segments_.clear();
    logit_rows_.clear();
    for (size_t i = 0; i < sequences_.size(); ++i) {
      const size_t at = sequences_[i]->length();
      segments_.push_back({sequences_[i].get(), i, 1, static_cast<int32_t>(at)});
      tokens_.push_back(TokenAt(i, at));
      logit_rows_.push_back(static_cast<int32_t>(i));
    }
    RETURN_IF_ERROR(Pass(true, timed));
  }
  return Status();
}

Status Bench::Pass(bool decode, bool timed) {
  for (const BatchSegment& s : segments_) RETURN_IF_ERROR(s.kv->Reserve(s.rows));
  const Batch batch{tokens_, segments_, logit_rows_};
  logits_.resize(logit_rows_.size() * runner_.config().vocab);
  const auto start = Clock::now();
  runner_.Forward(batch, decode, {logits_.empty() ? nullptr : logits_.data()});
  if (timed) {
    const int threads = decode ? runner_.decode_threads() : runner_.prefill_threads();
    worker_ns_ += NanosecondsSince(start) * threads;
    counter_.Add(batch, decode ? &decode_work_ : &prefill_work_);
  }
  for (const BatchSegment& s : segments_) s.kv->Advance(s.rows);
  return Status();
}

}  // namespace sluice
