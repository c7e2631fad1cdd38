#include "src/engine/scheduler.h"

#include <algorithm>

namespace sluice {

void StepPlan::Clear() {
  tokens.clear();
  segments.clear();
  sequences.clear();
  logit_rows.clear();
  sampled.clear();
  sampled_rows.clear();
  scored.clear();
  prompt_only.clear();
  hidden_rows.clear();
  decode = true;
}

void StepPlan::Add(Sequence& sequence, size_t rows) {
  KvSequence& kv = sequence.kv();
  const size_t first = tokens.size(), position = kv.length();
  segments.push_back({&kv, first, rows, static_cast<int32_t>(position)});
  sequences.push_back(&sequence);
  const auto begin = sequence.context().begin() + static_cast<ptrdiff_t>(position);
  tokens.insert(tokens.end(), begin, begin + static_cast<ptrdiff_t>(rows));
  if (const PromptLogprobs* wanted = sequence.prompt_logprobs(); wanted && !wanted->complete()) {
    // The row before a token scores it. Computed again after a preemption, a row has done so.
    const size_t from = std::max(position, wanted->next() - 1);
    const size_t to = std::min(position + rows, wanted->size() - 1);
    if (from < to) scored.push_back({&sequence, logit_rows.size(), to - from});
    for (size_t p = from; p < to; ++p) {
      logit_rows.push_back(static_cast<int32_t>(first + p - position));
    }
  }
  if (const Pooler* pooler = sequence.pooler(); pooler != nullptr) {
    for (size_t i = 0; i < rows; ++i) {
      if (pooler->Wants(position + i)) hidden_rows.push_back(static_cast<int32_t>(first + i));
    }
  } else if (position + rows == sequence.context().size()) {
    if (sequence.request().max_tokens == 0) {
      prompt_only.push_back(&sequence);
    } else {
      sampled_rows.push_back(logit_rows.size());
      logit_rows.push_back(static_cast<int32_t>(tokens.size() - 1));
      sampled.push_back(&sequence);
    }
  }
  decode = decode && sequence.decoding() && rows == 1;
}

size_t RowsWithin(double max_stall_s, bool streams, double row_s, size_t most) {
  constexpr double kQuietStalls = 4;
  constexpr size_t kLeastRows = 4;
  // On top of the step that the streams take anyway: taken off it, streams that are slower than the
  // budget would let no prompt in.
  const double budget = streams ? max_stall_s : max_stall_s * kQuietStalls;
  const double rows = std::clamp(budget / row_s, static_cast<double>(std::min(kLeastRows, most)),
                                 static_cast<double>(most));
  const auto whole = static_cast<size_t>(rows);
  return whole > 32 ? whole / 32 * 32 : whole;
}

bool Schedule(std::span<Sequence* const> running, size_t max_rows, size_t prefill_rows,
              StepPlan* plan) {
  plan->Clear();
  for (Sequence* s : running) {
    if (plan->tokens.size() < max_rows && s->one_row()) plan->Add(*s, 1);
  }
  size_t room = std::min(max_rows - plan->tokens.size(), prefill_rows);
  for (Sequence* s : running) {
    if (room == 0) break;
    if (s->one_row()) continue;
    const size_t rows = std::min(room, s->uncomputed());
    plan->Add(*s, rows);
    room -= rows;
  }
  return !plan->tokens.empty();
}

}  // namespace sluice
