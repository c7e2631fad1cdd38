#include "src/load/prompts.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "src/base/random.h"

namespace sluice::load {
namespace {

// Streams of random numbers: lengths, and texts by what they belong to.
constexpr uint64_t kPromptLengths = 1, kOutputLengths = 2, kGroups = 3;
constexpr uint64_t kOwn = uint64_t{1} << 40, kWarmUp = uint64_t{2} << 40,
                   kPrefix = uint64_t{3} << 40, kBlock = uint64_t{4} << 40;

// One token each in most vocabularies, with the blank before them.
const char* const kWords[] = {
    "time",  "year",  "people", "way",   "day",   "man",     "thing",  "world",  "life",   "hand",
    "part",  "child", "eye",    "place", "work",  "week",    "case",   "point",  "group",  "number",
    "fact",  "water", "house",  "night", "story", "book",    "word",   "side",   "kind",   "head",
    "home",  "hour",  "game",   "line",  "end",   "member",  "law",    "car",    "city",   "name",
    "team",  "idea",  "body",   "back",  "door",  "art",     "war",    "party",  "street", "food",
    "paper", "river", "road",   "light", "field", "morning", "music",  "table",  "color",  "voice",
    "north", "south", "ship",   "stone", "tree",  "window",  "summer", "winter", "green",  "white",
    "black", "small", "large",  "early", "late",  "open",    "high",   "long",   "old",    "new"};

}  // namespace

size_t PromptSource::Units(size_t tokens) const {
  if (form_.ids) return tokens;
  const double words =
      (static_cast<double>(tokens) - form_.tokens_per_prompt) / form_.tokens_per_word;
  return static_cast<size_t>(std::max(1.0, std::round(words)));
}

void PromptSource::Append(uint64_t stream, size_t count, LoadPrompt* prompt) const {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = RandomBits(plan_.text_seed, stream, i);
    if (form_.ids) {
      prompt->ids.push_back(form_.first_id + static_cast<int32_t>(bits % form_.id_count));
    } else {
      if (!prompt->text.empty()) prompt->text += ' ';
      prompt->text += kWords[bits % std::size(kWords)];
    }
  }
}

LoadPrompt PromptSource::Random(uint64_t stream, size_t tokens) const {
  LoadPrompt prompt;
  prompt.tokens = tokens;
  Append(kWarmUp + stream, Units(tokens), &prompt);
  return prompt;
}

LoadPrompt PromptSource::FromLengths(uint64_t index, uint64_t own_stream) const {
  LoadPrompt prompt;
  prompt.tokens = plan_.shared_prefix + plan_.prompt.Draw(plan_.seed, kPromptLengths, index);
  prompt.output_tokens = plan_.output.Draw(plan_.seed, kOutputLengths, index);
  const size_t all = Units(prompt.tokens);
  size_t shared = 0;
  if (plan_.shared_prefix > 0) {
    shared = std::min(all, Units(plan_.shared_prefix));
    const uint64_t group = RandomBits(plan_.seed, kGroups, index) % plan_.prefix_groups;
    Append(kPrefix + group, shared, &prompt);
  }
  Append(own_stream, all - shared, &prompt);
  return prompt;
}

LoadPrompt PromptSource::Make(uint64_t index) const {
  if (!plan_.texts.empty()) {
    LoadPrompt prompt = plan_.texts[index % plan_.texts.size()];
    if (prompt.output_tokens == 0) {
      prompt.output_tokens = plan_.output.Draw(plan_.seed, kOutputLengths, index);
    }
    return prompt;
  }
  const TraceEntry* entry = index < plan_.trace.size() ? &plan_.trace[index] : nullptr;
  LoadPrompt prompt;
  if (entry != nullptr && entry->prompt_tokens > 0) {
    prompt.tokens = entry->prompt_tokens;
    size_t left = Units(entry->prompt_tokens);
    for (const uint64_t block : entry->blocks) {
      const size_t count = std::min(left, Units(kTraceBlock));
      Append(kBlock + block, count, &prompt);
      left -= count;
    }
    Append(kOwn + index, left, &prompt);
    prompt.output_tokens = plan_.output.Draw(plan_.seed, kOutputLengths, index);
  } else {
    prompt = FromLengths(index, kOwn + index);
  }
  if (entry != nullptr && entry->output_tokens > 0) prompt.output_tokens = entry->output_tokens;
  return prompt;
}

LoadPrompt PromptSource::MakeWarmUp(uint64_t index) const {
  if (!plan_.texts.empty()) return Make(index);
  return FromLengths(index, kWarmUp + (uint64_t{1} << 32) + index);
}

}  // namespace sluice::load
