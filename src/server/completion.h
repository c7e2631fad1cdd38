// What every dialect's request becomes, and how the answer comes back. A
// dialect's file parses its JSON into a CompletionCall and formats what the sink
// is told; nothing else differs between them.
#ifndef SLUICE_SRC_SERVER_COMPLETION_H_
#define SLUICE_SRC_SERVER_COMPLETION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/engine/sequence.h"
#include "src/server/exchange.h"
#include "src/server/served_model.h"

namespace sluice {

struct CompletionCall {
  std::vector<std::vector<int32_t>> prompts;  // ids; at least one
  size_t n = 1;                               // choices for each; choice i draws with seed + i
  // Everything but the prompt, the callbacks and the constraint.
  Request options;
  std::shared_ptr<const Grammar> grammar;  // each choice is held to it; null: anything goes
};

// One generated token of a choice, or (id -1) text that had been held back.
struct TokenDelta {
  size_t choice = 0;  // prompt * n + which of its n
  int32_t id = -1;
  std::string text;   // may be empty: half a character, the start of a stop string
  std::string piece;  // the token's own bytes
  float logprob = 0;  // if options.logprobs >= 0
  std::vector<TokenLogprob> top;
};

struct ChoiceEnd {
  size_t choice = 0;
  FinishReason reason = FinishReason::kNone;
  std::string stop_text;  // the stop string that was met; empty: none, or an end token
  std::optional<TokenDelta> end_token;  // the one that was met; without text
  SequenceStats stats;
  std::string diverged_text;  // of the prompt around stats.diverged_at
};

// Told on the I/O thread, in order. After the last choice's OnEnd, or after OnError, nothing.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void OnToken(const TokenDelta& token) = 0;
  virtual void OnEnd(const ChoiceEnd& end) = 0;
  virtual void OnError(const Status& status) = 0;
  // Positions of the prompt computed so far, `cached` ones included (only if wanted; see Complete).
  virtual void OnPrefill(size_t choice, size_t processed, size_t cached, size_t total) {
    (void)choice, (void)processed, (void)cached, (void)total;
  }
  // The prompt's log-probabilities, before its first token (if options.prompt_logprobs >= 0).
  virtual void OnPrompt(size_t choice, const PromptLogprobs& logprobs) {
    (void)choice, (void)logprobs;
  }
};

// Submits every choice, all or none: kBusy (queue full), kTooLong (can never fit),
// kInvalidArgument. Cancels them when the client goes away. Sets the exchange's log at the end. Any
// thread.
Status Complete(std::shared_ptr<ServedModel> model, CompletionCall call,
                std::shared_ptr<Exchange> exchange, std::shared_ptr<CompletionSink> sink,
                bool want_prefill = false);

// Counts a call that the engine would not take.
void CountRefused(const ServedModel& model, const Status& status);
// What a request's prefixes are shared in: under --prefix-cache-scope key, a salt divides what is
// the key's and reaches no other's.
uint64_t CacheScope(const ServedModel& model, const Exchange& exchange, uint64_t salt);

// 400, 404, 429 ... of a refusal.
int HttpStatusOf(const Status& status);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_COMPLETION_H_
