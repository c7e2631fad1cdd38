#include "src/engine/sequence.h"

#include <xxhash.h>

#include <algorithm>

namespace sluice {

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
    : request_(std::move(request)), tokenizer_(tokenizer), vocab_(vocab), kv_(std::move(kv)) {
  Begin();
}

void Sequence::Begin() {
  context_ = request_.prompt;
  sampler_ = std::make_unique<Sampler>(request_.sampler, vocab_);
  for (int32_t id : context_) sampler_->Accept(id);
  decoder_ = std::make_unique<StreamDecoder>(tokenizer_, true, StreamDecoder::Start::kContinuation);
  stops_ = std::make_unique<StopMatcher>(request_.stop);
  text_.clear();
  decoding_ = false;
  stats_ = SequenceStats();
  stats_.prompt_tokens = context_.size();
  stats_.cached_tokens = kv_->length();
  finish_ = FinishReason::kNone;
  cancelled_ = false;
}

void Sequence::Restart(Request request) {
  // One token is always computed: its logits are what sampling starts from.
  const size_t most = std::min({kv_->length(), request.prompt.size() - 1, context_.size()});
  size_t same = 0;
  while (same < most && request.prompt[same] == context_[same]) ++same;
  kv_->Truncate(same);
  request_ = std::move(request);
  Begin();
}

void Sequence::Sample(const Logits& logits) {
  if (request_.hash_logits) {
    stats_.logits_hash =
        XXH3_64bits_withSeed(logits.values.data(), logits.values.size_bytes(), stats_.logits_hash);
  }
  const int32_t id = sampler_->Sample(logits, stats_.generated_tokens);
  decoding_ = true;
  if (!request_.ignore_eos && tokenizer_.IsEnd(id)) return Finish(FinishReason::kStop);
  sampler_->Accept(id);
  context_.push_back(id);
  ++stats_.generated_tokens;
  Deliver(decoder_->Push(id));
  if (stops_->stopped()) return Finish(FinishReason::kStop);
  if (stats_.generated_tokens >= request_.max_tokens) Finish(FinishReason::kLength);
}

void Sequence::Deliver(const std::string& text) {
  const std::string out = stops_->Push(text);
  text_ += out;
  if (request_.on_token && !out.empty()) request_.on_token({.text = out});
}

void Sequence::Finish(FinishReason reason) {
  if (!stops_->stopped()) {
    Deliver(decoder_->Flush());
    const std::string rest = stops_->Flush();
    text_ += rest;
    if (request_.on_token && !rest.empty()) request_.on_token({.text = rest});
  }
  finish_ = reason;
}

void Sequence::ShiftContext() {
  const size_t sinks = std::min(request_.sinks, context_.size() / 2);
  const size_t newest = (context_.size() - sinks) / 2;
  context_.erase(context_.begin() + static_cast<ptrdiff_t>(sinks),
                 context_.end() - static_cast<ptrdiff_t>(newest));
  kv_->Clear();
}

}  // namespace sluice
