// That the engine's account of a request is its wall time, whoever it shared the
// steps with, and that injected time is found under its name.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <thread>

#include "src/engine/engine.h"
#include "src/machine/ceilings.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

class AccountingTest : public testing::Test {
 protected:
  AccountingTest() : tiny_(TinyLlama("Q4_0")) { Start(TestOptions(96), {.max_sequences = 4}); }

  void Start(RunnerOptions o, const EngineOptions& options) {
    engine_.reset();
    o.threads = 2;
    runner_ = MakeRunner(tiny_.Write(folder_.path("m.gguf")), o);
    ASSERT_TRUE(runner_);
    tokenizer_ = *Tokenizer::Load(runner_->model().gguf());
    engine_ = std::make_unique<Engine>(*runner_, *tokenizer_, options);
  }

  // Remembers its wall time by a clock of its own.
  void Add(size_t prompt_tokens, size_t max_tokens, uint64_t seed,
           std::function<void(const TokenEvent&)> on_token = {}) {
    Request r;
    r.prompt = tiny_.Tokens(prompt_tokens, seed);
    r.max_tokens = max_tokens;
    r.ignore_eos = true;
    r.on_token = std::move(on_token);
    const auto begin = Clock::now();
    r.on_finish = [this, begin](const Sequence& s) {
      const std::chrono::duration<double> wall = Clock::now() - begin;
      ends_.push_back({wall.count(), s.stats()});
    };
    ASSERT_TRUE(engine_->Add(std::move(r)).ok());
  }
  void RunAll() {
    for (bool more = true; more;) {
      const Result<bool> step = engine_->Step();
      ASSERT_TRUE(step.ok());
      more = *step;
    }
  }
  // Runs what `add` adds and expects whole accounts. Another program can have the CPU between the
  // test's clock and the engine's, so one undisturbed turn of five is enough.
  template <class F>
  void ExpectWholeAccounts(const F& add) {
    const auto whole = [](const End& e) {
      return std::abs(e.stats.work.Stalls().sum() - e.wall_s) <= 0.03 * e.wall_s + 2e-4 &&
             e.stats.work.other_s < 0.5 * e.wall_s;
    };
    for (int turn = 0; turn < 5; ++turn) {
      ends_.clear();
      add();
      RunAll();
      if (std::all_of(ends_.begin(), ends_.end(), whole)) return;
    }
    for (const End& e : ends_) {
      EXPECT_TRUE(whole(e)) << e.stats.work.Stalls().sum() << " of " << e.wall_s << " s, other "
                            << e.stats.work.other_s;
    }
  }

  struct End {
    double wall_s;
    SequenceStats stats;
  };
  const TempFolder folder_;
  const TinyModel tiny_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
  std::vector<End> ends_;
};

TEST_F(AccountingTest, ARequestAloneIsItsPassesAndLittleElse) {
  ExpectWholeAccounts([&] { Add(40, 30, 1); });
  ASSERT_EQ(ends_.size(), 1u);
  const RequestWork& work = ends_[0].stats.work;
  EXPECT_EQ(work.prefill.rows, 40);
  EXPECT_EQ(work.decode.passes, 29);
  EXPECT_EQ(work.decode.logit_rows, 29);
  EXPECT_GT(work.decode.weight_bytes, 0);
  EXPECT_GT(work.decode.kv_bytes, 0);
  EXPECT_GT(work.prefill.seconds, 0);
}

// More than run at once, with a chunk so small that prompts wait for each other's rows.
TEST_F(AccountingTest, RequestsThatWaitAndShareStepsAccountForAllOfIt) {
  RunnerOptions o = TestOptions(96);
  o.chunk = 8;
  o.sequences = 3;
  Start(o, {.max_sequences = 3});
  ExpectWholeAccounts([&] {
    for (uint64_t i = 0; i < 8; ++i) Add(10 + 7 * i, 12, i);
  });
  ASSERT_EQ(ends_.size(), 8u);
  EXPECT_GT(ends_.back().stats.work.queue_s, 0);
}

TEST_F(AccountingTest, ThoseThatArePutOffWaitInTheQueue) {
  RunnerOptions o = TestOptions(96);
  o.sequences = 2;
  Start(o, {.max_sequences = 4});
  ExpectWholeAccounts([&] {
    for (uint64_t i = 0; i < 4; ++i) Add(8, 80, i);
  });
  ASSERT_EQ(ends_.size(), 4u);
  size_t put_off = 0;
  for (const End& e : ends_) put_off += e.stats.preemptions;
  EXPECT_GT(put_off, 0u);
}

TEST_F(AccountingTest, ASlowReceiverIsTextAndNothingElse) {
  constexpr auto kDelay = std::chrono::milliseconds(5);
  ExpectWholeAccounts(
      [&] { Add(4, 10, 1, [&](const TokenEvent&) { std::this_thread::sleep_for(kDelay); }); });
  ASSERT_EQ(ends_.size(), 1u);
  const StallTimes stalls = ends_[0].stats.work.Stalls();
  EXPECT_GE(stalls[Cause::kSampling], 0.050);
  EXPECT_GE(engine_->snapshot().stalls[Cause::kSampling], 0.045);  // the last token's is no step's
}

TEST_F(AccountingTest, CancelledBeforeItRanWasOnlyWaiting) {
  Request request;
  request.prompt = {1, 2, 3};
  Result<Sequence*> s = engine_->Add(std::move(request));
  ASSERT_TRUE(s.ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  (*s)->Cancel();
  RunAll();
  const StallTimes stalls = (*s)->stats().work.Stalls();
  EXPECT_GE(stalls[Cause::kQueue], 0.010);
  EXPECT_EQ(stalls[Cause::kQueue], stalls.sum());
}

TEST_F(AccountingTest, TheQueueCountsFromTheArrival) {
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 2;
  request.arrived = Clock::now() - std::chrono::seconds(5);
  Result<Sequence*> s = engine_->Add(std::move(request));
  ASSERT_TRUE(s.ok());
  RunAll();
  EXPECT_GE((*s)->stats().queue_s, 5);
  EXPECT_GE((*s)->stats().work.queue_s, 5);
  EXPECT_LT((*s)->stats().work.queue_s, (*s)->stats().work.Stalls().sum());
}

// Between the steps a neighbour may take the CPU, so that one turn of five is enough.
TEST_F(AccountingTest, TheEnginesTotalsAreItsSteps) {
  const auto in_steps = [&] {
    const EngineSnapshot s = engine_->snapshot();
    return s.stalls.sum() - s.stalls[Cause::kQueue];
  };
  double wall = 0, found = 0;
  for (int turn = 0; turn < 5; ++turn) {
    const double before = in_steps();
    const auto begin = Clock::now();
    Add(40, 40, 1);
    Add(20, 40, 2);
    RunAll();
    wall = std::chrono::duration<double>(Clock::now() - begin).count();
    found = in_steps() - before;
    if (std::abs(found - wall) <= 0.05 * wall + 1e-3) return;
  }
  ADD_FAILURE() << found << " of " << wall << " s";
}

TEST_F(AccountingTest, CeilingsGiveSharesAndMoveNoTime) {
  const char* before = std::getenv("SLUICE_CACHE");
  const std::string old = before == nullptr ? "" : before;
  setenv("SLUICE_CACHE", folder_.path("cache").c_str(), 1);
  Add(16, 20, 1);
  RunAll();
  RequestWork work = ends_[0].stats.work;
  const double sum = work.Stalls().sum();
  EXPECT_STREQ(work.decode_shares().binds(), "");
  work.ceilings = runner_->MeasureCeilings();
  EXPECT_GT(work.ceilings.decode.first_row_s, 0);
  EXPECT_GT(work.ceilings.decode.row_s, 0);
  EXPECT_GT(work.ceilings.decode.attention_gmac_s, 0);
  EXPECT_GT(work.decode_shares().compute, 0);
  EXPECT_NEAR(work.Stalls().sum(), sum, 1e-9);
  engine_->SetCeilings(work.ceilings);
  Add(16, 20, 2);
  RunAll();
  EXPECT_GT(engine_->snapshot().recent.compute, 0);
  EXPECT_EQ(ends_[1].stats.work.ceilings.decode.row_s, work.ceilings.decode.row_s);
  // What was measured is what is kept: the same numbers for whoever asks.
  const Ceilings kept =
      KeptCeilings(ThisMachine().RunningAtOnce(2), ThisMachine().RunningAtOnce(2));
  const std::string read = ReadRate(runner_->model().WeightBytesPerToken());
  ASSERT_TRUE(kept.Now(read).has_value());
  EXPECT_NEAR(*kept.Now(read), runner_->ReadBandwidth(), 1e-3 * runner_->ReadBandwidth());
  EXPECT_EQ(work.ceilings.decode.quiet_read_gb_s, work.ceilings.decode.read_gb_s);
  const auto has = [&](const char* prefix) {
    return std::any_of(kept.rates.begin(), kept.rates.end(),
                       [&](const auto& rate) { return rate.first.starts_with(prefix); });
  };
  EXPECT_TRUE(has("multiply.Q4_0."));
  EXPECT_FALSE(has(kStreamPrefix));
  before == nullptr ? unsetenv("SLUICE_CACHE") : setenv("SLUICE_CACHE", old.c_str(), 1);
}

}  // namespace
}  // namespace sluice
