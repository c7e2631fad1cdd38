#include "src/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "src/engine/evaluate.h"

namespace sluice {

Engine::Engine(ModelRunner& runner, const Tokenizer& tokenizer, const EngineOptions& options)
    : runner_(runner), tokenizer_(tokenizer) { (void)options; }

Status Engine::Check(const Request& request) const {
  const size_t vocab = runner_.config().vocab;
  if (request.prompt.empty()) {
    return Status(StatusCode::kInvalidArgument, "the prompt is empty: expected at least one token");
  }
  if (request.prompt.size() > runner_.context()) {
    return Status(StatusCode::kInvalidArgument,
                  "the prompt has " + std::to_string(request.prompt.size()) +
                      " tokens, the context holds " + std::to_string(runner_.context()) +
                      "; raise --ctx-size or shorten the prompt");
  }
  RETURN_IF_ERROR(CheckTokens(request.prompt, vocab));
  return CheckSamplerOptions(request.sampler, vocab);
}

Result<Sequence*> Engine::Add(Request request) {
  RETURN_IF_ERROR(Check(request));
  sequences_.push_back(std::make_unique<Sequence>(std::move(request), tokenizer_,
                                                  runner_.config().vocab, runner_.NewSequence()));
  running_.push_back(sequences_.back().get());
  return sequences_.back().get();
}

Status Engine::Restart(Sequence& sequence, Request request) {
  RETURN_IF_ERROR(Check(request));
  CHECK(sequence.finished());
  sequence.Restart(std::move(request));
  running_.push_back(&sequence);
  return Status();
}

void Engine::Remove(Sequence* sequence) {
  std::erase(running_, sequence);
  std::erase_if(sequences_, [&](const auto& s) { return s.get() == sequence; });
}

Result<bool> Engine::Step() {
  RETURN_IF_ERROR(PrepareContexts());
  if (!Schedule(running_, runner_.chunk(), &plan_)) return false;
  RETURN_IF_ERROR(Forward());
  SampleAll();
  return true;
}

// Ends what was cancelled or has filled its context, shifts where that was asked for.
Status Engine::PrepareContexts() {
  for (Sequence* s : running_) {
    if (s->cancelled()) {
      s->Finish(FinishReason::kCancelled);
    } else if (s->context().size() > runner_.context()) {
      if (s->request().context_shift) {
        s->ShiftContext();
      } else {
        s->Finish(FinishReason::kLength);
      }
    }
    // Past LongRoPE's border every key has to be rotated anew: the sequence is computed again.
    const bool long_rope = runner_.model().UsesLongRope(s->context().size());
    if (s->kv().long_rope != long_rope) {
      s->kv().Clear();
      s->kv().long_rope = long_rope;
    }
  }
  std::erase_if(running_, [](const Sequence* s) { return s->finished(); });
  return Status();
}

namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Time goes to the phase a sequence was in. What a decoding sequence computes again (a shifted
// context) is decode time: its user waits for it there.
void AddSeconds(Sequence& s, bool decoding, double seconds) {
  SequenceStats& stats = s.mutable_stats();
  (decoding ? stats.decode_s : stats.prefill_s) += seconds;
}

}  // namespace

Status Engine::Forward() {
  for (const BatchSegment& segment : plan_.segments) {
    RETURN_IF_ERROR(segment.kv->Reserve(segment.rows));
  }
  const size_t sampled = plan_.sampled.size(), vocab = runner_.config().vocab;
  logits_.resize(sampled * vocab);
  largest_.resize(sampled * LogitBlocks(vocab));
  const auto start = std::chrono::steady_clock::now();
  runner_.Forward(plan_.batch(), plan_.decode,
                  sampled == 0 ? LogitsOut() : LogitsOut{logits_.data(), largest_.data()});
  const double seconds = SecondsSince(start);

  for (size_t i = 0; i < plan_.segments.size(); ++i) {
    const BatchSegment& segment = plan_.segments[i];
    Sequence& s = *plan_.sequences[i];
    AddSeconds(s, s.decoding(), seconds);
    if (s.decoding()) {
      s.mutable_stats().decode_bytes +=
          runner_.model().WeightBytesPerToken() +
          runner_.model().KvBytesPerToken(runner_.kv_type(), segment.kv->length());
    } else {
      s.mutable_stats().prefill_rows += segment.rows;
    }
    segment.kv->Advance(segment.rows);
  }
  return Status();
}

void Engine::SampleAll() {
  const size_t vocab = runner_.config().vocab, blocks = LogitBlocks(vocab);
  for (size_t i = 0; i < plan_.sampled.size(); ++i) {
    Sequence& s = *plan_.sampled[i];
    const bool decoding = s.decoding();
    if (decoding) ++s.mutable_stats().decode_passes;
    const auto start = std::chrono::steady_clock::now();
    s.Sample({{logits_.data() + i * vocab, vocab}, {largest_.data() + i * blocks, blocks}});
    AddSeconds(s, decoding, SecondsSince(start));
  }
  std::erase_if(running_, [](const Sequence* s) { return s->finished(); });
}

}  // namespace sluice
