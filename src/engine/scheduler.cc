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

void LearnMean(double sample, double* mean) {
  constexpr double kNewest = 0.3;
  *mean = *mean == 0 ? sample : *mean + kNewest * (sample - *mean);
}

void PrefillPace::Learn(double seconds, size_t rows, size_t prompt_rows) {
  if (prompt_rows == 0) return LearnMean(seconds, &step_s_);
  const size_t streams = rows - prompt_rows;
  // A few rows cost what reading the weights costs, and say nothing about more of them.
  if (streams == 0 && prompt_rows < 16) return;
  // The streams' own step is taken off: shared among the rows it would make each of them look
  // dearer the fewer they are, and fewer still would be taken the next time. Never more than half
  // of the time, since few rows cost little beside that step, and many more.
  const double whole_s = seconds / static_cast<double>(rows);
  const double own_s = (seconds - step_s_) / static_cast<double>(prompt_rows);
  LearnMean(streams == 0 ? whole_s : std::max(own_s, whole_s / 2), &row_s_);
}

size_t PrefillPace::Rows(double max_stall_s, bool streams, size_t most, double extra_s) const {
  constexpr double kQuietStalls = 4;
  constexpr size_t kLeastRows = 4, kFirstRows = 64;
  if (max_stall_s <= 0) return most;
  if (row_s_ == 0) return streams ? std::min(most, kFirstRows) : most;
  // On top of the step that the streams take anyway: taken off it, streams that are slower than the
  // budget would let no prompt in.
  const double budget = streams ? max_stall_s : max_stall_s * kQuietStalls;
  const double rows =
      std::clamp(budget / (row_s_ + extra_s), static_cast<double>(std::min(kLeastRows, most)),
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
