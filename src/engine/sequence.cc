#include "src/engine/sequence.h"

#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

constexpr float kBanned = -std::numeric_limits<float>::infinity();

// Everything that the constraint does not allow.
void Mask(std::span<const uint64_t> allowed, const Logits& logits) {
  const size_t vocab = logits.values.size();
  for (size_t word = 0; word * 64 < vocab; ++word) {
    const size_t begin = word * 64, end = std::min(begin + 64, vocab);
    // Rows that pad the output matrix are no tokens.
    const uint64_t bits = word < allowed.size() ? allowed[word] : 0;
    if (bits == ~uint64_t{0}) continue;
    if (bits == 0) {
      std::fill(logits.values.begin() + static_cast<ptrdiff_t>(begin),
                logits.values.begin() + static_cast<ptrdiff_t>(end), kBanned);
      for (size_t b = begin / kLogitBlock; b * kLogitBlock < end; ++b) logits.no_above[b] = kBanned;
      continue;
    }
    for (size_t i = begin; i < end; ++i) {
      if (!(bits >> (i - begin) & 1)) logits.values[i] = kBanned;
    }
  }
}

}  // namespace

const char* FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

Sequence::Sequence(Request request, const Tokenizer& tokenizer, size_t vocab,
                   std::unique_ptr<KvSequence> kv)
    : request_(std::move(request)),
      tokenizer_(tokenizer),
      kv_(std::move(kv)),
      context_(request_.prompt),
      sampler_(request_.sampler, vocab),
      decoder_(tokenizer, true, StreamDecoder::Start::kContinuation),
      stops_(request_.stop),
      added_(request_.arrived == Clock::time_point() ? Clock::now() : request_.arrived),
      accounted_(added_) {
  for (int32_t id : context_) sampler_.Accept(id);
  stats_.prompt_tokens = context_.size();
  if (request_.prompt_logprobs >= 0) {
    prompt_logprobs_ =
        std::make_unique<PromptLogprobs>(context_, static_cast<size_t>(request_.prompt_logprobs));
  }
  if (request_.embed) pooler_ = std::make_unique<Pooler>(*request_.embed, context_.size());
  if (request_.min_tokens == 0 || request_.ignore_eos || request_.constraint) return;
  for (size_t id = 0; id < std::min(vocab, tokenizer.vocab_size()); ++id) {
    if (tokenizer.IsEnd(static_cast<int32_t>(id))) end_tokens_.push_back(static_cast<int32_t>(id));
  }
}

void Sequence::StartedRunning() {
  running_ = true;
  Account(nullptr, 0);
  if (!std::exchange(ran_, true)) stats_.queue_s = SecondsBetween(added_, accounted_);
}

void Sequence::Account(const PassTotals* pass, double sampling_s) {
  const Clock::time_point now = Clock::now();
  const double span = SecondsBetween(std::exchange(accounted_, now), now);
  RequestWork& work = stats_.work;
  if (pass == nullptr) {
    work.queue_s += span;
    return;
  }
  (decoding_ ? work.decode : work.prefill) += *pass;
  const double rest = std::max(0.0, span - pass->seconds);
  const double sampling = std::min(rest, sampling_s);
  work.sampling_s += sampling;
  work.other_s += rest - sampling;
}

void Sequence::DropComputed() {
  kv_->Clear();
  if (pooler_) pooler_->Clear();
}

void Sequence::SetCacheMatch(const PrefixCache::Match& match) {
  checkpoint_ = match.same > match.length ? match.same / kSpan * kSpan : 0;
  if (decoding_) return;  // computed again: what the first time found is what counts
  stats_.cached_tokens = match.length;
  if (match.diverged) stats_.diverged_at = match.same;
}

void Sequence::DeliverPrompt() {
  if (prompt_logprobs_ && request_.on_prompt) request_.on_prompt(*prompt_logprobs_);
}

void Sequence::Draw(const Logits& logits) {
  if (request_.hash_logits) {
    stats_.logits_hash =
        XXH3_64bits_withSeed(logits.values.data(), logits.values.size_bytes(), stats_.logits_hash);
  }
  drawn_ = TokenEvent();
  const bool wants_logprobs = request_.logprobs >= 0;
  if (wants_logprobs) {
    original_.assign(logits.values.begin(), logits.values.end());
    logprobs_.Read(original_, static_cast<size_t>(request_.logprobs));
    drawn_.top = logprobs_.top();
  }
  if (request_.constraint) Mask(request_.constraint->Allowed(), logits);
  if (stats_.generated_tokens < request_.min_tokens) {
    for (int32_t id : end_tokens_) logits.values[static_cast<size_t>(id)] = kBanned;
  }
  drawn_.id = sampler_.Sample(logits, stats_.generated_tokens);
  if (wants_logprobs && drawn_.id >= 0) {
    drawn_.logprob = logprobs_.Of(original_[static_cast<size_t>(drawn_.id)]);
  }
}

FinishReason Sequence::Take() {
  const TokenEvent event = drawn_;
  if (event.id < 0) {
    SetError(Status(StatusCode::kInvalidArgument,
                    request_.sampler.logit_bias.empty()
                        ? "no token can be drawn: the model's logits are not numbers"
                        : "no token can be drawn: logit_bias bans all that may come next; ban "
                          "fewer, or loosen the grammar"));
    return FinishReason::kError;
  }
  decoding_ = true;
  met_end_ = !request_.ignore_eos && tokenizer_.IsEnd(event.id);
  if (met_end_) return FinishReason::kStop;
  if (request_.constraint) request_.constraint->Accept(event.id);
  sampler_.Accept(event.id);
  context_.push_back(event.id);
  ++stats_.generated_tokens;
  Deliver(event, TextOf(event.id));
  if (stops_.stopped()) return FinishReason::kStop;
  return stats_.generated_tokens >= request_.max_tokens ? FinishReason::kLength
                                                        : FinishReason::kNone;
}

std::string Sequence::TextOf(int32_t id) {
  const std::vector<int32_t>& shown = request_.shown_tokens;
  if (!std::binary_search(shown.begin(), shown.end(), id)) return decoder_.Push(id);
  return decoder_.Flush() + tokenizer_.Piece(id);
}

void Sequence::Deliver(TokenEvent event, const std::string& text) {
  const std::string out = stops_.Push(text);
  text_ += out;
  event.text = out;
  if (request_.on_token) request_.on_token(event);
}

void Sequence::Finish(FinishReason reason) {
  if (!stops_.stopped()) {
    std::string rest = stops_.Push(decoder_.Flush());
    rest += stops_.Flush();
    text_ += rest;
    if (request_.on_token && !rest.empty()) {
      TokenEvent event;
      event.text = rest;
      request_.on_token(event);
    }
  }
  if (pooler_ && reason == FinishReason::kStop) embedding_ = pooler_->Take();
  // The text of its last token; of one that never ran, its wait.
  const double rest = SecondsBetween(accounted_, Clock::now());
  (ran_ ? stats_.work.sampling_s : stats_.work.queue_s) += rest;
  finish_ = reason;
  if (request_.on_finish) request_.on_finish(*this);
}

void Sequence::ShiftContext() {
  const size_t sinks = std::min(request_.sinks, context_.size() / 2);
  const size_t newest = (context_.size() - sinks) / 2;
  context_.erase(context_.begin() + static_cast<ptrdiff_t>(sinks),
                 context_.end() - static_cast<ptrdiff_t>(newest));
  kv_->Clear();
  shifted_ = true;
}

}  // namespace sluice
