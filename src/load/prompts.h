// What is sent: prompts of drawn lengths made of random tokens, prompts of a file, or those that a
// trace describes. Request i is a function of the seed and i. Used by the generator; one thread.
#ifndef SLUICE_SRC_LOAD_PROMPTS_H_
#define SLUICE_SRC_LOAD_PROMPTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "src/load/dialect.h"
#include "src/load/lengths.h"

namespace sluice::load {

// How a number of tokens becomes a prompt: ids where the server takes them, else words, which it
// tokenizes. Found out by the probe.
struct PromptForm {
  bool ids = false;
  int32_t first_id = 1000;
  uint32_t id_count = 30000;
  double tokens_per_prompt = 0, tokens_per_word = 1;  // a prompt of w words has a + b * w tokens
};

struct TraceEntry {
  double due_s = 0;
  size_t prompt_tokens = 0, output_tokens = 0;  // 0: drawn
  std::vector<uint64_t> blocks;  // equal ones are equal text: kTraceBlock tokens each
};
constexpr size_t kTraceBlock = 512;

struct PromptPlan {
  Lengths prompt, output;
  size_t shared_prefix = 0;  // tokens that all prompts of a group begin with, beside their own
  size_t prefix_groups = 1;
  std::vector<LoadPrompt> texts;  // of a file: taken in turn, instead of random ones
  std::vector<TraceEntry> trace;  // of a file: request i is entry i
  uint64_t seed = 1;              // of lengths
  // Of texts. What was sent once is in the server's prefix cache: another run needs other texts.
  uint64_t text_seed = 1;
};

class PromptSource {
 public:
  explicit PromptSource(PromptPlan plan) : plan_(std::move(plan)) {}

  void set_form(const PromptForm& form) { form_ = form; }
  const PromptPlan& plan() const { return plan_; }
  const PromptForm& form() const { return form_; }

  LoadPrompt Make(uint64_t index) const;
  // For warming up: the shared prefixes, but texts of their own. Of a file: its prompts.
  LoadPrompt MakeWarmUp(uint64_t index) const;
  // `tokens` ids or words as the form has it, the same for the same stream.
  LoadPrompt Random(uint64_t stream, size_t tokens) const;

 private:
  LoadPrompt FromLengths(uint64_t index, uint64_t own_stream) const;
  void Append(uint64_t stream, size_t count, LoadPrompt* prompt) const;
  size_t Units(size_t tokens) const;  // ids or words that make so many tokens

  const PromptPlan plan_;
  PromptForm form_;
};

// Lines {"prompt": TEXT}, or {"messages": [...]}, {"text": ...}, ShareGPT's {"conversations":
// [{"from", "value"}, ...]} (the first turn); "output_tokens" or "max_tokens" says how long the
// answer is to be. Error: names the line.
Result<std::vector<LoadPrompt>> ParsePrompts(const std::string& name, const std::string& text);

// Lines of a time in seconds, or {"timestamp": MILLISECONDS, "input_length", "output_length",
// "hash_ids"} as Mooncake's traces have them. Ascending; the first is 0 then.
Result<std::vector<TraceEntry>> ParseTrace(const std::string& name, const std::string& text);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_PROMPTS_H_
