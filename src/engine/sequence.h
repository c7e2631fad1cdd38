// One request on its way: its tokens, keys and values, sampler and output.
// Made by the engine; touched by the engine thread only, except Cancel.
#ifndef SLUICE_SRC_ENGINE_SEQUENCE_H_
#define SLUICE_SRC_ENGINE_SEQUENCE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/engine/logprobs.h"
#include "src/engine/prefix_cache.h"
#include "src/engine/prompt_logprobs.h"
#include "src/engine/sampler.h"
#include "src/engine/stats.h"
#include "src/engine/stop_matcher.h"
#include "src/model/kv_cache.h"
#include "src/model/pooling.h"
#include "src/text/grammar/token_constraint.h"
#include "src/text/tokenizer.h"

namespace sluice {

class Sequence;

// One generated token as it leaves, or text that had been held back (id -1).
struct TokenEvent {
  int32_t id = -1;
  std::string_view text;              // may be empty: half a character, the start of a stop string
  float logprob = 0;                  // if Request::logprobs >= 0
  std::span<const TokenLogprob> top;  // Request::logprobs of them, most likely first
};

struct Request {
  std::string request_id;       // the client's name for it; empty: none
  std::vector<int32_t> prompt;  // ids, at least one
  SamplerOptions sampler;
  size_t max_tokens = SIZE_MAX;  // 0: the prompt is computed and nothing else
  std::optional<Pooling> embed;  // the prompt is computed for a vector: Sequence::embedding()
  // End tokens cannot be drawn before; stop strings do not count, and a constraint, which knows
  // where its text may end, wins.
  size_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<int32_t> shown_tokens;  // control tokens whose text is delivered, ascending
  bool hash_logits = false;           // SequenceStats::logits_hash: reads every logit once more
  bool ignore_eos = false;            // end tokens are sampled like others
  bool context_shift = false;  // at the end of the context keep `sinks` tokens and the newest half
  size_t sinks = 4;
  int logprobs = -1;         // >= 0: log-probabilities, with that many alternatives
  int prompt_logprobs = -1;  // the same of the prompt's tokens; the cache is then not read
  bool use_cache = true;     // of prefixes: reads it and leaves its own there
  uint64_t cache_scope = 0;  // prefixes are shared within one scope only
  std::shared_ptr<TokenConstraint> constraint;    // of this sequence alone; null: anything goes
  std::chrono::steady_clock::time_point arrived;  // the queue counts from then; unset: from Add
  std::function<void(const TokenEvent&)> on_token;
  // Positions of the prompt that are computed, after each pass until the first token; `cached` of
  // them were not computed now.
  std::function<void(size_t processed, size_t cached)> on_prefill;
  // Once, before the first token, if prompt_logprobs >= 0.
  std::function<void(const PromptLogprobs&)> on_prompt;
  // Once, when the sequence has ended; an error (memory ran out for good) has kError as its reason.
  std::function<void(const Sequence&)> on_finish;
};

enum class FinishReason : uint8_t {
  kNone,    // still running
  kStop,    // an end token or a stop string; an embedding is whole
  kLength,  // max_tokens or the end of the context
  kCancelled,
  kError,  // see Sequence::error()
};
const char* FinishReasonName(FinishReason reason);  // "stop", "length" ...

struct SequenceStats {
  size_t prompt_tokens = 0;     // of the request
  size_t cached_tokens = 0;     // of these, not computed again
  size_t generated_tokens = 0;  // without the end token
  // Token of the prompt at which a kept one parted from it; SIZE_MAX: none was near.
  size_t diverged_at = SIZE_MAX;
  size_t prefill_rows = 0;   // computed before the first token
  size_t decode_passes = 0;  // that ended in a token
  size_t preemptions = 0;    // times its keys and values were given up and computed again
  double queue_s = 0;        // from its arrival to the first pass
  double prefill_s = 0, decode_s = 0;
  // Read by the decode passes: its own keys and values, and of the weights an equal share with all
  // who decode in the pass. So the sum over requests is what was read, and a request's bytes per
  // second are its part of the ceiling.
  uint64_t decode_bytes = 0;
  uint64_t logits_hash = 0;  // of all logits sampled from, in order
  RequestWork work;          // all its time, by where it went
};

class Sequence {
 public:
  Sequence(Request request, const Tokenizer& tokenizer, size_t vocab,
           std::unique_ptr<KvSequence> kv);

  bool finished() const { return finish_ != FinishReason::kNone; }
  FinishReason finish_reason() const { return finish_; }
  const std::string& text() const { return text_; }
  const SequenceStats& stats() const { return stats_; }
  // Any thread: ends the sequence before its next step.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // For the engine: tokens in the context; the first kv().length() are computed.
  const std::vector<int32_t>& context() const { return context_; }
  KvSequence& kv() { return *kv_; }
  const KvSequence& kv() const { return *kv_; }
  const Request& request() const { return request_; }
  SequenceStats& mutable_stats() { return stats_; }
  bool decoding() const { return decoding_; }  // its first token was drawn
  size_t uncomputed() const { return context_.size() - kv_->length(); }

  // Decoding, and its next pass is the one row of its last token.
  bool one_row() const { return decoding_ && uncomputed() == 1; }
  // Dropped the middle of its context: its keys and values are those of no text.
  bool shifted() const { return shifted_; }
  // What is kept has no states that a pooler could want, but of the last token, which is computed.
  bool cacheable() const {
    return request_.use_cache && !shifted_ &&
           (pooler_ == nullptr || pooler_->pooling() == Pooling::kLast);
  }
  Pooler* pooler() const { return pooler_.get(); }  // null: not an embedding
  // Gives up its keys and values, to be computed again.
  void DropComputed();

  // In the running batch; not before its first pass, nor while it is put off.
  bool running() const { return running_; }
  // Leaves the queue; queue_s is what it waited the first time.
  void StartedRunning();
  void PutOff() { running_ = false; }
  // What was found of it among the prefixes that are kept.
  void SetCacheMatch(const PrefixCache::Match& match);
  // Where an earlier prompt parted from this one, if its window was not kept there; 0: nowhere.
  size_t checkpoint() const { return checkpoint_; }

  // Of the prompt, complete or not yet; null: not wanted.
  const PromptLogprobs* prompt_logprobs() const { return prompt_logprobs_.get(); }
  PromptLogprobs* mutable_prompt_logprobs() { return prompt_logprobs_.get(); }
  // The prompt is computed: tells who wants its log-probabilities.
  void DeliverPrompt();
  // The time since the last call (or since it started to run) went to this pass and `sampling_s`,
  // what is left to scheduling; null: the pass had no row of this sequence.
  void Account(const PassTotals* pass, double sampling_s);

  // Draws the next token. Any one worker of the team: sequences of a step draw side by side.
  void Draw(const Logits& logits);
  // Delivers the text of the token that was drawn. kNone: it goes on. kError: nothing was left to
  // draw.
  FinishReason Take();
  // Delivers what was held back and calls on_finish.
  void Finish(FinishReason reason);
  void SetError(Status error) { error_ = std::move(error); }
  // Of a Request::embed that has ended with kStop: [dim], Pooling::kNone: [prompt tokens][dim].
  const std::vector<float>& embedding() const { return embedding_; }
  const Status& error() const { return error_; }                   // with kError
  const std::string& stop_text() const { return stops_.found(); }  // the stop string it met
  // The end token it met, which is no part of its text; null: none.
  const TokenEvent* end_token() const { return met_end_ ? &drawn_ : nullptr; }
  // Drops the middle of the context; its tokens are computed again.
  void ShiftContext();

 private:
  std::string TextOf(int32_t id);  // what the token adds to the text
  void Deliver(TokenEvent event, const std::string& text);

  Request request_;
  const Tokenizer& tokenizer_;
  std::unique_ptr<KvSequence> kv_;
  std::vector<int32_t> context_;
  std::unique_ptr<Pooler> pooler_;
  std::vector<float> embedding_;
  Sampler sampler_;
  StreamDecoder decoder_;
  StopMatcher stops_;
  Logprobs logprobs_;
  std::unique_ptr<PromptLogprobs> prompt_logprobs_;
  TokenEvent drawn_;
  std::vector<float> original_;      // logits before anything changed them, if logprobs are wanted
  std::vector<int32_t> end_tokens_;  // if some must not be drawn yet
  std::string text_;
  SequenceStats stats_;
  std::chrono::steady_clock::time_point added_;
  std::chrono::steady_clock::time_point accounted_;  // until then work has all of its time
  size_t checkpoint_ = 0;
  bool decoding_ = false, shifted_ = false, ran_ = false, running_ = false, met_end_ = false;
  FinishReason finish_ = FinishReason::kNone;
  Status error_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_SEQUENCE_H_
