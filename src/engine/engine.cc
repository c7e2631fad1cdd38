#include "src/engine/engine.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <string>

#include "src/engine/evaluate.h"

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr size_t kFirstScored = 64;  // rows of a pass before it is known what scoring them costs
// Rows of logits held to score a prompt: 32 of a 262k vocabulary are 34 MB. One reading of the
// output matrix serves them all, so more of them gain little.
constexpr size_t kScoredAtOnce = 32;

}  // namespace

Engine::Engine(ModelRunner& runner, const Tokenizer& tokenizer, const EngineOptions& options)
    : runner_(runner),
      tokenizer_(tokenizer),
      options_(options),
      cache_(runner.config(), runner.pool()),
      meter_(runner) {}

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
  if (request.embed == Pooling::kRank) {
    return Status(StatusCode::kUnsupported,
                  "pooling rank is a reranker's own head, which is not offered here; for vectors "
                  "start with --pooling last or mean");
  }
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
  const auto end = Clock::now();
  text_s_ = std::chrono::duration<double>(end - accounted_).count();
  accounted_ = end;
  busy_ = !running_.empty();
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
      s->DropComputed();
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
  const double waited_s = s.stats().work.queue_s;
  s.StartedRunning();
  done_.stalls[Cause::kQueue] += s.stats().work.queue_s - waited_s;
  s.kv().long_rope = runner_.model().UsesLongRope(s.context().size());
  // What is kept has no logits, so a prompt that is scored is computed.
  const bool scores = s.prompt_logprobs() != nullptr && !s.prompt_logprobs()->complete();
  if (!options_.prefix_cache || !s.cacheable() || scores) return;
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
  const auto any = [&](bool (*is)(const Sequence*)) {
    return std::any_of(running_.begin(), running_.end(), is);
  };
  const bool streams = any([](const Sequence* s) { return s->one_row(); });
  const bool scores = any([](const Sequence* s) {
    return s->prompt_logprobs() != nullptr && !s->prompt_logprobs()->complete();
  });
  if (options_.max_stall_s > 0 && scores && streams && scored_row_s_ == 0) {
    return std::min(most, kFirstScored);
  }
  return pace_.Rows(options_.max_stall_s, streams, most, scores ? scored_row_s_ : 0);
}

// Pages for every row of the plan. False: somebody had to give up his, and the plan is another.
bool Engine::ReservePlan() {
  for (const BatchSegment& segment : plan_.segments) {
    while (!segment.kv->Reserve(segment.rows).ok()) {
      if (cache_.EvictOne()) continue;
      if (MakeRoom()) return false;
      // Alone with the whole pool, of which the cache holds the page that would have to be copied.
      if (cache_.EvictOne(true)) continue;
      // This is as long as a context can get here.
      End(*running_.front(), FinishReason::kLength);
      DropFinished();
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
  s.DropComputed();
  s.PutOff();
  ++s.mutable_stats().preemptions;
  ++done_.preemptions;
  std::erase(running_, &s);
  waiting_.push_front(&s);
}

void Engine::Forward() {
  const size_t sampled = plan_.sampled.size(), vocab = runner_.config().vocab;
  logits_.resize(sampled * vocab);
  largest_.resize(sampled * LogitBlocks(vocab));
  hidden_.resize(plan_.hidden_rows.size() * runner_.config().dim);
  const bool scores = !plan_.scored.empty();
  if (busy_) done_.stalls[Cause::kOther] += SecondsSince(accounted_);
  pass_ = meter_.Forward(
      plan_.batch(), plan_.decode,
      sampled == 0 || scores ? LogitsOut() : LogitsOut{logits_.data(), largest_.data()},
      hidden_.data());
  LearnSpeed(pass_.seconds);
  scoring_s_ = scores ? ScorePrompts() : 0;
  const double seconds = pass_.seconds + scoring_s_;
  CountBytes();
  const auto decoding = static_cast<size_t>(std::count_if(
      plan_.sequences.begin(), plan_.sequences.end(), [](auto* s) { return s->decoding(); }));
  const uint64_t weight_bytes =
      runner_.model().WeightBytesPerToken() / std::max<size_t>(decoding, 1);
  for (size_t i = 0; i < plan_.segments.size(); ++i) {
    Account(plan_.segments[i], *plan_.sequences[i], seconds, weight_bytes);
  }
}

// The logits to draw from, apart from those that only score: rows that follow each other at once.
void Engine::SampledLogits() {
  const size_t vocab = runner_.config().vocab, blocks = LogitBlocks(vocab);
  const std::vector<size_t>& rows = plan_.sampled_rows;
  for (size_t i = 0, n = 1; i < rows.size(); i += n) {
    for (n = 1; i + n < rows.size() && rows[i + n] == rows[i] + n;) ++n;
    runner_.Logits(rows[i], n, {logits_.data() + i * vocab, largest_.data() + i * blocks});
  }
}

// A few rows of logits at a time, however long the prompts are. The seconds that all logits took.
double Engine::ScorePrompts() {
  const size_t vocab = runner_.config().vocab;
  const auto start = Clock::now();
  SampledLogits();
  size_t most = 0, scored = 0;
  for (const StepPlan::ScoredRows& rows : plan_.scored) most = std::max(most, rows.count);
  scored_logits_.resize(std::min(most, kScoredAtOnce) * vocab);
  float* const logits = scored_logits_.data();
  for (const StepPlan::ScoredRows& rows : plan_.scored) {
    PromptLogprobs& prompt = *rows.sequence->mutable_prompt_logprobs();
    for (size_t done = 0, n; done < rows.count; done += n) {
      n = std::min(rows.count - done, kScoredAtOnce);
      runner_.Logits(rows.first + done, n, {logits});
      const auto score = [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          prompt.Score(prompt.next() + i, {logits + i * vocab, vocab});
        }
      };
      runner_.team().Run([&](Worker& worker) { worker.ForTiles(n, score); },
                         runner_.prefill_threads());
      prompt.Scored(n);
    }
    scored += rows.count;
  }
  const double seconds = SecondsSince(start);
  LearnMean(seconds / static_cast<double>(scored), &scored_row_s_);
  done_.prefill_s += seconds;
  done_.last_step_s += seconds;
  return seconds;
}

// Time goes to the phase a sequence was in. What a decoding sequence computes again (a shifted or
// preempted context) is decode time: its user waits for it there. `weight_bytes`: its share.
void Engine::Account(const BatchSegment& segment, Sequence& s, double seconds,
                     uint64_t weight_bytes) {
  SequenceStats& stats = s.mutable_stats();
  const size_t before = segment.kv->length();
  if (s.decoding()) {
    stats.decode_s += seconds;
    stats.decode_bytes += weight_bytes + runner_.model().KvBytesPerToken(runner_.kv_type(), before);
  } else {
    stats.prefill_s += seconds;
    stats.prefill_rows += segment.rows;
    done_.prefill_tokens += segment.rows;
  }
  segment.kv->Advance(segment.rows);
  KeepPrefix(s, before);
  if (!s.decoding() && s.request().on_prefill) {
    s.request().on_prefill(segment.kv->length(), stats.cached_tokens);
  }
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
  size_t prompt_rows = 0;
  for (const BatchSegment& segment : plan_.segments) {
    if (segment.rows > 1) prompt_rows += segment.rows;
  }
  pace_.Learn(seconds, rows, prompt_rows);
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

// Gives every embedding the states of its rows, in order of position; the vector is whole with the
// last of them.
void Engine::PoolAll() {
  std::span<const float> left(hidden_);
  const size_t dim = runner_.config().dim;
  for (size_t i = 0; i < plan_.segments.size(); ++i) {
    Sequence& s = *plan_.sequences[i];
    Pooler* const pooler = s.pooler();
    if (pooler == nullptr) continue;
    const auto first = static_cast<size_t>(plan_.segments[i].first_position);
    for (size_t position = first; position < first + plan_.segments[i].rows; ++position) {
      if (!pooler->Wants(position)) continue;
      pooler->Add(left.first(dim));
      left = left.subspan(dim);
    }
    if (s.uncomputed() == 0) End(s, FinishReason::kStop);
  }
}

// Sequences draw side by side: without top-k a draw looks at every token, milliseconds for a large
// vocabulary. Everybody waits for all of them, so the time is everybody's.
void Engine::SampleAll() {
  const auto start = Clock::now();
  if (!plan_.sampled.empty()) DrawAll();
  const double seconds = SecondsSince(start);
  AccountStep(seconds);
  PoolAll();
  for (Sequence* s : plan_.prompt_only) {
    s->DeliverPrompt();
    End(*s, FinishReason::kLength);
  }
  for (Sequence* s : plan_.sampled) {
    if (!s->decoding()) s->DeliverPrompt();
    SequenceStats& stats = s->mutable_stats();
    if (s->decoding()) ++stats.decode_passes;
    (s->decoding() ? stats.decode_s : stats.prefill_s) += seconds;
    const size_t generated = stats.generated_tokens;
    const FinishReason reason = s->Take();
    done_.generated_tokens += stats.generated_tokens - generated;
    if (reason != FinishReason::kNone) End(*s, reason);
  }
}

// Before anybody is told of a token, so that who ends knows all of its time.
void Engine::AccountStep(double draw_s) {
  const double sampling_s = scoring_s_ + draw_s + text_s_;
  done_.stalls += Attribute(pass_, plan_.decode ? ceilings_.decode : ceilings_.prefill);
  done_.stalls[Cause::kSampling] += sampling_s;
  done_.throttled_periods += static_cast<uint64_t>(pass_.throttled_periods);
  const double fade = std::exp(-pass_.seconds);
  recent_prefill_ *= fade;
  recent_decode_ *= fade;
  (plan_.decode ? recent_decode_ : recent_prefill_) += pass_;
  const auto planned = [&](const Sequence* s) {
    return std::find(plan_.sequences.begin(), plan_.sequences.end(), s) != plan_.sequences.end();
  };
  for (Sequence* s : plan_.sequences) s->Account(&pass_, sampling_s);
  if (plan_.sequences.size() < running_.size()) {
    for (Sequence* s : running_) {
      if (planned(s)) continue;
      const double waited_s = s->stats().work.queue_s;
      s->Account(nullptr, 0);
      done_.stalls[Cause::kQueue] += s->stats().work.queue_s - waited_s;
    }
  }
  accounted_ = Clock::now();
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
  s.mutable_stats().work.ceilings = ceilings_;
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
  s.read_bandwidth_gb_s = ceilings_.decode.read_gb_s;
  const PhaseCeilings &p = ceilings_.prefill, &d = ceilings_.decode;
  s.row_s = p.row_s + p.logits_s;
  if (const double seconds = recent_prefill_.seconds + recent_decode_.seconds; seconds > 0) {
    const auto share = [&](double CeilingShares::* of) {
      return (SharesOf(recent_prefill_, p).*of * recent_prefill_.seconds +
              SharesOf(recent_decode_, d).*of * recent_decode_.seconds) /
             seconds;
    };
    s.recent = {share(&CeilingShares::bandwidth), share(&CeilingShares::compute)};
    s.recent_read_gb_s = 1e-9 * (recent_prefill_.bytes() + recent_decode_.bytes()) / seconds;
  }
  return s;
}

}  // namespace sluice
