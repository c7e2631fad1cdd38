#include "src/engine/engine.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <string>

#include "src/engine/evaluate.h"

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr size_t kFirstRows = 64;  // of prompts that a pass takes before any speed is known
constexpr double kNewest = 0.3;    // weight of the last pass in the moving means

void Learn(double sample, double* mean) {
  *mean = *mean == 0 ? sample : *mean + kNewest * (sample - *mean);
}

}  // namespace

Engine::Engine(ModelRunner& runner, const Tokenizer& tokenizer, const EngineOptions& options)
    : runner_(runner),
      tokenizer_(tokenizer),
      options_(options),
      cache_(runner.config(), runner.pool()) {}

Status Engine::Check(const Request& request) const {
  const size_t vocab = runner_.config().vocab;
  if (request.prompt.empty()) {
    return Status(StatusCode::kInvalidArgument, "the prompt is empty: expected at least one token");
  }
  if (request.prompt.size() > runner_.context()) {
    return Status(StatusCode::kTooLong, "the prompt has " + std::to_string(request.prompt.size()) +
                                            " tokens, the context holds " +
                                            std::to_string(runner_.context()) +
                                            "; raise --ctx-size or shorten the prompt");
  }
  if (const size_t most = runner_.MostPositions(); request.prompt.size() > most) {
    return Status(StatusCode::kTooLong, "the prompt has " + std::to_string(request.prompt.size()) +
                                            " tokens, the memory for keys and values holds " +
                                            std::to_string(most) +
                                            "; raise --kv-memory or shorten the prompt");
  }
  RETURN_IF_ERROR(CheckTokens(request.prompt, vocab));
  return CheckSamplerOptions(request.sampler, vocab);
}

Result<Sequence*> Engine::Add(Request request) {
  RETURN_IF_ERROR(Check(request));
  sequences_.push_back(std::make_unique<Sequence>(std::move(request), tokenizer_,
                                                  runner_.config().vocab, runner_.NewSequence()));
  waiting_.push_back(sequences_.back().get());
  return sequences_.back().get();
}

void Engine::Remove(Sequence* sequence) {
  std::erase(running_, sequence);
  std::erase(waiting_, sequence);
  std::erase_if(sequences_, [&](const auto& s) { return s.get() == sequence; });
}

Result<bool> Engine::Step() {
  PrepareContexts();
  Admit();
  do {
    if (!Schedule(running_, runner_.chunk(), PrefillRows(), &plan_)) return !waiting_.empty();
  } while (!ReservePlan());
  Forward();
  SampleAll();
  DropFinished();
  return true;
}

void Engine::DropFinished() {
  const auto finished = [](const Sequence* s) { return s->finished(); };
  std::erase_if(running_, finished);
  std::erase_if(waiting_, finished);
}

// Ends what was cancelled or has filled its context, shifts where that was asked for.
void Engine::PrepareContexts() {
  for (Sequence* s : waiting_) {
    if (s->cancelled()) End(*s, FinishReason::kCancelled);
  }
  for (Sequence* s : running_) {
    if (s->cancelled()) {
      End(*s, FinishReason::kCancelled);
      continue;
    }
    if (s->context().size() > runner_.context()) {
      if (!s->request().context_shift) {
        End(*s, FinishReason::kLength);
        continue;
      }
      s->ShiftContext();
    }
    // Past LongRoPE's border every key has to be rotated anew: the sequence is computed again.
    const bool long_rope = runner_.model().UsesLongRope(s->context().size());
    if (s->kv().long_rope != long_rope) {
      s->kv().Clear();
      s->kv().long_rope = long_rope;
    }
  }
  DropFinished();
}

// Lets those who wait run while there is room for all their contexts: what is let in and put off
// again is computed twice.
void Engine::Admit() {
  size_t planned = 0;  // pages that the running ones have yet to take
  for (const Sequence* s : running_) {
    planned += runner_.PagesOf(s->context().size()) - runner_.PagesOf(s->kv().length());
  }
  const KvPool& pool = runner_.pool();
  while (!waiting_.empty() && running_.size() < options_.max_sequences) {
    Sequence* s = waiting_.front();
    const size_t pages = runner_.PagesOf(s->context().size() + 1);
    if (!running_.empty() && planned + pages > pool.free_pages() + pool.kept_only()) return;
    waiting_.pop_front();
    running_.push_back(s);
    Begin(*s);
    planned += runner_.PagesOf(s->context().size()) - runner_.PagesOf(s->kv().length());
  }
}

// Takes up what is kept of the sequence's beginning.
void Engine::Begin(Sequence& s) {
  s.StartedRunning();
  s.kv().long_rope = runner_.model().UsesLongRope(s.context().size());
  if (!options_.prefix_cache || !s.cacheable()) return;
  const PrefixCache::Match match = cache_.Adopt(s.context(), ScopeOf(s), s.kv());
  s.SetCacheMatch(match);
  if (!s.decoding()) {
    done_.cache_queries += s.context().size();
    done_.cache_hits += match.length;
  }
}

uint64_t Engine::ScopeOf(const Sequence& s) const {
  return s.request().cache_scope * 2 + (s.kv().long_rope ? 1 : 0);
}

// As many rows of prompts as the streams that run beside them can wait for.
size_t Engine::PrefillRows() const {
  const size_t most = runner_.chunk();
  if (options_.max_stall_s <= 0) return most;
  const bool streams =
      std::any_of(running_.begin(), running_.end(), [](const Sequence* s) { return s->one_row(); });
  if (row_s_ == 0) return streams ? std::min(most, kFirstRows) : most;
  return RowsWithin(options_.max_stall_s, streams, row_s_, most);
}

// Pages for every row of the plan. False: somebody had to give up his, and the plan is another.
bool Engine::ReservePlan() {
  for (const BatchSegment& segment : plan_.segments) {
    while (!segment.kv->Reserve(segment.rows).ok()) {
      if (cache_.EvictOne()) continue;
      if (!MakeRoom()) {
        // Alone with the whole pool: this is as long as a context can get here.
        End(*running_.front(), FinishReason::kLength);
        DropFinished();
      }
      return false;
    }
  }
  return true;
}

// Puts off the youngest sequence; false: there is only one.
bool Engine::MakeRoom() {
  if (running_.size() == 1) return false;
  const auto found = std::find_if(running_.rbegin(), running_.rend(),
                                  [](const Sequence* s) { return !s->shifted(); });
  if (found == running_.rend()) {
    // What has lost its middle cannot be computed again as it was.
    running_.back()->SetError(Status(StatusCode::kOutOfMemory,
                                     "the memory for keys and values is full; raise --kv-memory"));
    End(*running_.back(), FinishReason::kError);
    DropFinished();
    return true;
  }
  Preempt(**found);
  return true;
}

void Engine::Preempt(Sequence& s) {
  s.kv().Clear();
  ++s.mutable_stats().preemptions;
  ++done_.preemptions;
  std::erase(running_, &s);
  waiting_.push_front(&s);
}

void Engine::Forward() {
  const size_t sampled = plan_.sampled.size(), vocab = runner_.config().vocab;
  logits_.resize(sampled * vocab);
  largest_.resize(sampled * LogitBlocks(vocab));
  const auto start = Clock::now();
  runner_.Forward(plan_.batch(), plan_.decode,
                  sampled == 0 ? LogitsOut() : LogitsOut{logits_.data(), largest_.data()});
  const double seconds = SecondsSince(start);
  LearnSpeed(seconds);
  CountBytes();
  for (size_t i = 0; i < plan_.segments.size(); ++i) {
    Account(plan_.segments[i], *plan_.sequences[i], seconds);
  }
}

// Time goes to the phase a sequence was in. What a decoding sequence computes again (a shifted or
// preempted context) is decode time: its user waits for it there.
void Engine::Account(const BatchSegment& segment, Sequence& s, double seconds) {
  SequenceStats& stats = s.mutable_stats();
  const size_t before = segment.kv->length();
  if (s.decoding()) {
    const uint64_t bytes = runner_.model().WeightBytesPerToken() +
                           runner_.model().KvBytesPerToken(runner_.kv_type(), before);
    stats.decode_s += seconds;
    stats.decode_bytes += bytes;
  } else {
    stats.prefill_s += seconds;
    stats.prefill_rows += segment.rows;
    done_.prefill_tokens += segment.rows;
  }
  segment.kv->Advance(segment.rows);
  KeepPrefix(s, before);
  if (!s.decoding() && s.request().on_prefill) s.request().on_prefill(segment.kv->length());
}

// Of a pure decode pass, before its rows are counted as computed.
void Engine::CountBytes() {
  if (!plan_.decode) return;
  const Model& model = runner_.model();
  done_.decode_bytes += model.WeightBytesPerToken();
  for (const BatchSegment& segment : plan_.segments) {
    done_.decode_bytes += model.KvBytesPerToken(runner_.kv_type(), segment.kv->length());
  }
}

void Engine::LearnSpeed(double seconds) {
  const size_t rows = plan_.tokens.size();
  ++done_.steps;
  done_.last_step_tokens = rows;
  ++done_.step_sizes[std::min<size_t>(std::bit_width(rows - 1), kStepSizes - 1)];
  done_.last_step_s = seconds;
  (plan_.decode ? done_.decode_s : done_.prefill_s) += seconds;
  if (plan_.decode) return Learn(seconds, &decode_step_s_);
  size_t prompt_rows = 0;
  for (const BatchSegment& segment : plan_.segments) {
    if (segment.rows > 1) prompt_rows += segment.rows;
  }
  // A few rows cost what reading the weights costs, which the streams beside them pay for: their
  // rate says nothing about more of them.
  if (prompt_rows >= 16) Learn(seconds / static_cast<double>(rows), &row_s_);
  if (prompt_rows > 0 && prompt_rows < 16 && rows > prompt_rows) {
    const double own_s = std::max(seconds - decode_step_s_, 0.0);
    Learn(own_s / static_cast<double>(prompt_rows), &row_s_);
  }
}

// When the end of the prompt was computed, and where an earlier prompt parted from this one.
void Engine::KeepPrefix(Sequence& s, size_t before) {
  if (!options_.prefix_cache || !s.cacheable()) return;
  const auto crossed = [&](size_t position) {
    return before < position && position <= s.kv().length();
  };
  if (crossed(s.checkpoint())) cache_.Keep(s.context(), ScopeOf(s), s.checkpoint(), false, s.kv());
  if (crossed(s.stats().prompt_tokens)) {
    cache_.Keep(s.context(), ScopeOf(s), s.stats().prompt_tokens, false, s.kv());
  }
}

// Sequences draw side by side: without top-k a draw looks at every token, milliseconds for a large
// vocabulary. Everybody waits for all of them, so the time is everybody's.
void Engine::SampleAll() {
  if (plan_.sampled.empty()) return;
  const auto start = Clock::now();
  DrawAll();
  const double seconds = SecondsSince(start);
  for (Sequence* s : plan_.sampled) {
    if (s->request().max_tokens == 0) {  // wanted its prompt computed and no more
      End(*s, FinishReason::kLength);
      continue;
    }
    SequenceStats& stats = s->mutable_stats();
    if (s->decoding()) ++stats.decode_passes;
    (s->decoding() ? stats.decode_s : stats.prefill_s) += seconds;
    const size_t generated = stats.generated_tokens;
    const FinishReason reason = s->Take();
    done_.generated_tokens += stats.generated_tokens - generated;
    if (reason != FinishReason::kNone) End(*s, reason);
  }
}

void Engine::DrawAll() {
  const size_t vocab = runner_.config().vocab, blocks = LogitBlocks(vocab);
  const auto draw = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      plan_.sampled[i]->Draw(
          {{logits_.data() + i * vocab, vocab}, {largest_.data() + i * blocks, blocks}});
    }
  };
  const size_t count = plan_.sampled.size();
  if (count == 1) return draw(0, 1);
  runner_.team().Run([&](Worker& worker) { worker.ForTiles(count, draw); },
                     runner_.decode_threads());
}

// The last text leaves, the pages go back, prefixes stay while there is room for them.
void Engine::End(Sequence& s, FinishReason reason) {
  if (options_.prefix_cache && s.cacheable() && s.kv().length() > 0) {
    cache_.Keep(s.context(), ScopeOf(s), s.stats().prompt_tokens, true, s.kv());
  }
  s.kv().Clear();
  s.Finish(reason);
}

EngineSnapshot Engine::snapshot() const {
  EngineSnapshot s = done_;
  s.running = running_.size();
  s.waiting = waiting_.size();
  s.max_sequences = options_.max_sequences;
  s.cache_evictions = cache_.evictions();
  s.pages = runner_.pool().total_pages();
  s.free_pages = runner_.pool().free_pages();
  s.kept_pages = runner_.pool().kept_only();
  return s;
}

}  // namespace sluice
