// Times a model on one thread: prompts, generated tokens, both, at a depth, for
// one or more sequences together, and says beside each what it computed and
// read and what this machine could have done at best. Used by `sluice bench`,
// which prints; nothing here does.
//
// A test is what llama-bench times: `prompt` random tokens in chunks, then
// `generate` passes of one random token, nothing sampled, after `depth` tokens that are not
// timed. Its rate is tokens of all sequences by the time of both.
#ifndef SLUICE_SRC_ENGINE_BENCH_H_
#define SLUICE_SRC_ENGINE_BENCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "src/engine/model_runner.h"
#include "src/engine/pass_work.h"
#include "src/machine/cpu_time.h"

namespace sluice {

struct BenchTest {
  size_t prompt = 0, generate = 0, depth = 0;
  size_t concurrency = 1;  // sequences that are computed together

  size_t positions() const { return depth + prompt + generate; }
  size_t tokens() const { return concurrency * (prompt + generate); }
  bool operator==(const BenchTest&) const = default;
};

struct BenchResult {
  BenchTest test;
  int threads = 1;  // of the phase that the roofs are for: decode if anything is generated
  std::vector<double> samples_ns;
  PassWork work;  // of one sample

  // Over all samples.
  double barriers_per_token = 0;
  double stall_pct = 0;    // of the workers' time, waiting in barriers
  double lost_pct = 0;     // of the workers' time, when other programs had their CPUs
  double other_pct = 0;    // of the allowed CPUs' time, taken by other programs
  double steal_pct = 0;    // ... by the hypervisor
  uint64_t throttled = 0;  // periods

  // Measured beside them.
  double read_bandwidth_gb_s = 0;  // 0: could not be
  double clock_ghz = 0;
  double compute_s = 0;  // one sample's multiplications at the kernels' own rate

  std::vector<double> samples_ts() const;  // tokens per second
  double avg_ns() const;
  double avg_ts() const;
  double gb_s() const;
  double gmac_s() const;
  double bandwidth_roof_ts() const;  // 0: not known
  double compute_roof_ts() const;
  double roof_ts() const;  // the lower of the two that are known
  bool compute_binds() const;
  double ceiling_pct() const;          // avg_ts against roof_ts
  const char* ceiling_remark() const;  // CeilingRemark of it
};

// Context, rows and sequences that these tests need of one runner. chunk: most rows of a pass.
void SizeForTests(std::span<const BenchTest> tests, size_t chunk, RunnerOptions* options);

// One test at a time: Start, any number of Samples, Finish.
class Bench {
 public:
  // chunk: rows of one pass of a prompt, at most runner.chunk(). The runner was made with
  // SizeForTests and must outlive this.
  Bench(ModelRunner& runner, size_t chunk);

  // Measures the kernels for the thread counts this test uses, once each; computes the depth; and,
  // with `warm_up`, the prompt and one generated token, untimed.
  Status Start(const BenchTest& test, bool warm_up);
  Status Sample();
  // Probes bandwidth and clock. At least one sample was taken.
  BenchResult Finish();

 private:
  Status MeasureRates(int threads);
  Status GoToDepth();
  Status Prefill(size_t length, bool logits, bool timed);
  Status Generate(size_t steps, bool timed);
  Status Pass(bool decode, bool timed);
  double ProbeBandwidth();
  int32_t TokenAt(size_t sequence, size_t position) const;

  ModelRunner& runner_;
  const size_t chunk_;
  const WorkCounter counter_;
  std::map<int, ComputeRates> rates_;  // by thread count

  BenchResult result_;
  PassWork prefill_work_, decode_work_;  // of all samples so far
  double worker_ns_ = 0;                 // time of the timed passes, times their threads
  uint64_t barriers_ = 0, wait_ns_ = 0, lost_ns_ = 0;
  double bandwidth_before_ = 0, wall_s_ = 0;
  CpuTime cpu_used_;
  std::vector<std::unique_ptr<KvSequence>> sequences_;
  std::vector<int32_t> tokens_, logit_rows_;
  std::vector<BatchSegment> segments_;
  std::vector<float> logits_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_BENCH_H_
