// Turns requests into text: every Step runs one pass for the sequences that
// are running, samples where a context was finished, and delivers. Sequences
// join and leave between steps; what one of them gets never depends on the
// others, on what was kept of earlier ones, or on having been put off. Called by
// one thread, which leads the team.
#ifndef SLUICE_SRC_ENGINE_ENGINE_H_
#define SLUICE_SRC_ENGINE_ENGINE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "src/base/status.h"
#include "src/engine/model_runner.h"
#include "src/engine/pass_meter.h"
#include "src/engine/prefix_cache.h"
#include "src/engine/scheduler.h"
#include "src/engine/sequence.h"
#include "src/text/tokenizer.h"

namespace sluice {

struct EngineOptions {
  size_t max_sequences = 1;   // run at once; others wait in order of arrival
  bool prefix_cache = false;  // keep the keys and values of finished prompts while there is room
  // While a sequence decodes, a pass takes no more of other prompts than this time allows at the
  // speed of the last passes, on top of the decode step; 0: as much as a pass can hold.
  double max_stall_s = 0;
};

inline constexpr size_t kStepSizes = 16;

// What the engine has done and holds: for metrics.
struct EngineSnapshot {
  size_t running = 0, waiting = 0;
  size_t max_sequences = 0;
  uint64_t steps = 0, prefill_tokens = 0, generated_tokens = 0;
  uint64_t decode_bytes = 0;  // of pure decode passes: weights once a pass, every sequence's KV
  double prefill_s = 0, decode_s = 0;  // of passes with prompt rows; of pure decode passes
  uint64_t preemptions = 0;
  uint64_t cache_queries = 0, cache_hits = 0;  // tokens of prompts; of these not computed
  uint64_t cache_evictions = 0;                // blocks of 64 positions
  // Of the pool: all, free ones, ones that are only kept for later (free when needed).
  size_t pages = 0, free_pages = 0, kept_pages = 0;
  uint64_t last_step_tokens = 0;
  double last_step_s = 0;
  // Passes of at most 1, 2, 4 ... tokens; the last: of more.
  std::array<uint64_t, kStepSizes> step_sizes{};
  double read_bandwidth_gb_s = 0;  // of the decode threads; 0: not measured (yet)
  double row_s = 0;   // of a row's products, logits too, in a large pass at best; 0: not measured
  StallTimes stalls;  // of all steps; queue: of all requests
  CeilingShares recent;  // about the last second of passes
  double recent_read_gb_s = 0;
  uint64_t throttled_periods = 0;  // that passes lost time to
};

class Engine {
 public:
  // Both must outlive the engine.
  Engine(ModelRunner& runner, const Tokenizer& tokenizer, const EngineOptions& options = {});

  // kInvalidArgument: the prompt is empty or holds a foreign id, an option is out of range.
  // kUnsupported: a pooling that is not offered.
  // kTooLong: the prompt does not fit in the context or the pool. Any thread.
  Status Check(const Request& request) const;
  // Starts a sequence, which the engine owns until Remove. Refused as by Check.
  Result<Sequence*> Add(Request request);
  void Remove(Sequence* sequence);

  // One step; false: no sequence is running or waiting. Finished sequences have given their pages
  // back.
  Result<bool> Step();
  // What the causes of lost time are told by, once measured; bytes divide it before.
  void SetCeilings(const PassCeilings& ceilings) { ceilings_ = ceilings; }
  const PassCeilings& ceilings() const { return ceilings_; }
  EngineSnapshot snapshot() const;

 private:
  void DropFinished();
  void PrepareContexts();
  void Admit();
  void Begin(Sequence& s);
  size_t PrefillRows() const;
  bool ReservePlan();
  bool MakeRoom();
  void Preempt(Sequence& s);
  void Forward();
  double ScorePrompts();
  void SampledLogits();
  void Account(const BatchSegment& segment, Sequence& s, double seconds, uint64_t weight_bytes);
  void AccountStep(double draw_s);
  void LearnSpeed(double seconds);
  void CountBytes();
  void KeepPrefix(Sequence& s, size_t before);
  void PoolAll();
  void SampleAll();
  void DrawAll();
  void End(Sequence& s, FinishReason reason);
  uint64_t ScopeOf(const Sequence& s) const;

  ModelRunner& runner_;
  const Tokenizer& tokenizer_;
  const EngineOptions options_;
  PrefixCache cache_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::deque<Sequence*> waiting_;   // in order of arrival; preempted ones in front
  std::vector<Sequence*> running_;  // in order of arrival
  StepPlan plan_;
  std::vector<float> logits_;         // [sampled][vocab]
  std::vector<float> largest_;        // [sampled][LogitBlocks(vocab)]
  std::vector<float> hidden_;         // [plan_.hidden_rows][dim]
  std::vector<float> scored_logits_;  // [rows that are scored at once][vocab]
  EngineSnapshot done_;               // the counters of it
  PrefillPace pace_;
  double scored_row_s_ = 0;  // moving mean: what a row costs more whose log-probability is wanted

  PassMeter meter_;
  PassCeilings ceilings_;
  PassTotals pass_;                            // the latest
  PassTotals recent_prefill_, recent_decode_;  // fading within a second of passes
  double scoring_s_ = 0;                       // of the latest pass's prompts
  double text_s_ = 0;                          // of the latest step, after its tokens were drawn
  std::chrono::steady_clock::time_point accounted_;  // end of the latest step
  bool busy_ = false;                                // ... after which sequences were running
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_ENGINE_H_
