// What `sluice serve` promises: a request's tokens and log-probabilities do not
// depend on what else runs, on prefixes kept of earlier requests, on being put
// off when memory runs out, or on how its prompt was cut into chunks.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/engine/tiny_engine.h"

namespace sluice {
namespace {

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  uint64_t logits_hash = 0;
  bool operator==(const Answer&) const = default;
};

class ConcurrencyTest : public TinyEngineTest {
 protected:
  // `positions` of KV memory over all sequences; a chunk that makes rings wrap.
  void Start(const EngineOptions& options, size_t positions, size_t chunk = 32, int threads = 1) {
    RunnerOptions o = TestOptions(kContext);
    o.chunk = chunk;
    o.threads = threads;
    o.sequences = 1;
    StartEngine(options, o, PagesFor(positions));
  }

  // Prompts of every length around page borders; families of them begin the same way.
  std::vector<Request> Requests(size_t count) {
    std::vector<Request> requests;
    for (size_t i = 0; i < count; ++i) {
      Request r;
      const size_t common = 40 + 37 * (i % 4);
      r.prompt = tiny_.Tokens(common, i % 4);
      const auto own = tiny_.Tokens(1 + 7 * (i % 5), 100 + i / 2);
      r.prompt.insert(r.prompt.end(), own.begin(), own.end());
      r.sampler.temp = i % 2 == 0 ? 0.0f : 1.0f;
      r.sampler.seed = i;
      r.max_tokens = 3 + i % 9;
      r.ignore_eos = true;
      r.hash_logits = true;
      r.logprobs = static_cast<int>(i % 3);
      requests.push_back(r);
    }
    return requests;
  }

  // Adds them, `every` steps apart, and runs all to their end.
  std::vector<Answer> RunAll(const std::vector<Request>& requests, size_t every) {
    std::vector<Answer> answers(requests.size());
    std::vector<Sequence*> done;
    size_t next = 0, ended = 0;
    for (size_t step = 0; ended < requests.size(); ++step) {
      while (next < requests.size() && (every == 0 || next * every <= step)) {
        Request r = requests[next];
        Answer& answer = answers[next];
        r.on_token = [&answer](const TokenEvent& e) {
          answer.tokens.push_back(e.id);
          answer.logprobs.push_back(e.logprob);
          for (const TokenLogprob& t : e.top) answer.logprobs.push_back(t.logprob);
        };
        r.on_finish = [&](const Sequence& s) {
          answer.logits_hash = s.stats().logits_hash;
          preemptions_ += s.stats().preemptions;
          cached_ += s.stats().cached_tokens;
          EXPECT_EQ(s.finish_reason(), FinishReason::kLength);
          ++ended;
        };
        Result<Sequence*> s = engine_->Add(r);
        EXPECT_TRUE(s.ok()) << s.status().message();
        done.push_back(*s);
        ++next;
      }
      EXPECT_TRUE(engine_->Step().ok());
    }
    for (Sequence* s : done) engine_->Remove(s);
    return answers;
  }

  // Which answers differ, and in what.
  static std::string Differences(const std::vector<Answer>& found,
                                 const std::vector<Answer>& want) {
    std::string text;
    for (size_t i = 0; i < want.size(); ++i) {
      if (found[i].tokens != want[i].tokens)
        text += std::to_string(i) + " tokens; ";
      else if (!(found[i] == want[i]))
        text += std::to_string(i) + " logits; ";
    }
    return text;
  }

  std::vector<Answer> Alone(const std::vector<Request>& requests) {
    Start({}, kContext, 512);
    std::vector<Answer> answers;
    for (const Request& r : requests) answers.push_back(RunAll({r}, 0).front());
    return answers;
  }

  size_t preemptions_ = 0, cached_ = 0;
};

TEST_P(ConcurrencyTest, NeighboursDoNotMatter) {
  const std::vector<Request> requests = Requests(64);
  const std::vector<Answer> alone = Alone(requests);
  for (size_t together : {1, 2, 8, 32, 64}) {
    Start({.max_sequences = together}, 64 * kContext, 64, 2);
    EXPECT_EQ(Differences(RunAll(requests, together == 64 ? 0 : 3), alone), "") << together;
    EXPECT_EQ(runner_->pool().free_pages(), runner_->pool().total_pages());
  }
}

TEST_P(ConcurrencyTest, KeptPrefixesDoNotMatter) {
  const std::vector<Request> requests = Requests(32);
  const std::vector<Answer> alone = Alone(requests);
  for (size_t together : {1, 2, 8, 32}) {
    Start({.max_sequences = together, .prefix_cache = true}, 64 * kContext);
    cached_ = 0;
    EXPECT_EQ(Differences(RunAll(requests, 2), alone), "") << together;
    EXPECT_EQ(Differences(RunAll(requests, 0), alone), "") << together << ", again";
    EXPECT_GT(cached_, 0u);
    // Nothing runs: what is not free is kept.
    EXPECT_EQ(runner_->pool().free_pages() + runner_->pool().kept_only(),
              runner_->pool().total_pages());
  }
}

TEST_P(ConcurrencyTest, ARepeatedPromptComputesOneToken) {
  Start({.prefix_cache = true}, 8 * kContext);
  Request r = Requests(1).front();
  r.prompt = tiny_.Tokens(200, 5);
  const Answer first = RunAll({r}, 0).front();
  cached_ = 0;
  EXPECT_EQ(Differences(RunAll({r}, 0), {first}), "");
  EXPECT_EQ(cached_, 199u);

  // The negative control: were a kept page wrong, this comparison would see it.
  cached_ = 0;
  Request longer = r;
  longer.on_prefill = {};
  Result<Sequence*> s = engine_->Add(longer);
  ASSERT_TRUE(s.ok());
  ASSERT_TRUE(*engine_->Step());
  const size_t layer = runner_->config().layers - 1;
  std::memset((*s)->kv().page_of(layer, 0, 190), 0, runner_->pool().page_bytes());
  while (*engine_->Step()) {
  }
  EXPECT_NE((*s)->stats().logits_hash, first.logits_hash);
}

TEST_P(ConcurrencyTest, CachedFromEveryLength) {
  const std::vector<int32_t> all = tiny_.Tokens(200, 3);
  std::vector<Request> requests;
  for (size_t length = 1; length <= 200; length += length < 60 || length > 70 ? 9 : 1) {
    Request r = Requests(1).front();
    r.prompt.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(length));
    r.prompt.push_back(7);
    r.max_tokens = 3;
    requests.push_back(r);
  }
  const std::vector<Answer> alone = Alone(requests);
  Start({.prefix_cache = true}, 30 * kContext);
  EXPECT_EQ(Differences(RunAll(requests, 5), alone), "");
  EXPECT_EQ(
      Differences(RunAll({requests.rbegin(), requests.rend()}, 5), {alone.rbegin(), alone.rend()}),
      "");
}

// A prompt whose common part ends in the last page of a pool that it fills alone: there is no page
// left to copy the one that is kept to.
TEST_P(ConcurrencyTest, KeptPrefixesLeaveRoomForOne) {
  std::vector<Request> requests;
  for (const size_t common : {0, 299, 298, 297, 6, 250}) {
    Request r;
    r.prompt = tiny_.Tokens(common, 1);
    const auto own = tiny_.Tokens(305 - common, 100 + common);
    r.prompt.insert(r.prompt.end(), own.begin(), own.end());
    r.max_tokens = 12;
    r.ignore_eos = true;
    r.hash_logits = true;
    requests.push_back(r);
  }
  const std::vector<Answer> alone = Alone(requests);
  Start({.prefix_cache = true}, kContext);
  std::vector<Answer> answers;
  for (const Request& r : requests) answers.push_back(RunAll({r}, 0).front());
  EXPECT_EQ(Differences(answers, alone), "");
  EXPECT_GT(cached_, 0u);
}

TEST_P(ConcurrencyTest, BeingPutOffDoesNotMatter) {
  const std::vector<Request> requests = Requests(32);
  const std::vector<Answer> alone = Alone(requests);
  for (const bool keep : {false, true}) {
    for (size_t together : {2, 8, 32}) {
      preemptions_ = 0;
      // Room for a few; those who are let in grow out of it.
      Start({.max_sequences = together, .prefix_cache = keep}, 450);
      EXPECT_EQ(Differences(RunAll(requests, 1), alone), "") << together;
    }
  }
  // Growing contexts in a pool that their prompts fit in.
  std::vector<Request> growing = Requests(8);
  for (Request& r : growing) {
    r.prompt.resize(30);
    r.max_tokens = 150;
  }
  const std::vector<Answer> grown = Alone(growing);
  Start({.max_sequences = 8, .prefix_cache = true}, 420);
  preemptions_ = 0;
  EXPECT_EQ(Differences(RunAll(growing, 1), grown), "");
  EXPECT_GT(preemptions_, 0u);
}

TEST_P(ConcurrencyTest, AStallBudgetDoesNotMatter) {
  const std::vector<Request> requests = Requests(16);
  const std::vector<Answer> alone = Alone(requests);
  Start({.max_sequences = 8, .prefix_cache = true, .max_stall_s = 1e-6}, 30 * kContext, 64);
  EXPECT_EQ(Differences(RunAll(requests, 2), alone), "");
}

// It has adopted half of a kept block and computed nothing: what it leaves is kept already, and a
// page with two keepers would never come back.
TEST_P(ConcurrencyTest, ANewcomerCancelledBeforeItsFirstRowKeepsNothingTwice) {
  Start({.max_sequences = 3, .prefix_cache = true}, 3 * kContext, 8);
  const auto request = [&](std::vector<int32_t> prompt) {
    Request r;
    r.prompt = std::move(prompt);
    r.max_tokens = 2;
    r.ignore_eos = true;
    return r;
  };
  const std::vector<int32_t> kept = tiny_.Tokens(130, 1);
  RunAll({request(kept)}, 0);
  for (size_t common : {30, 64, 100}) {
    // The other prompt takes every row of the step in which the newcomer is let in.
    Result<Sequence*> other = engine_->Add(request(tiny_.Tokens(90, 50 + common)));
    std::vector<int32_t> prompt(kept.begin(), kept.begin() + static_cast<ptrdiff_t>(common));
    const auto own = tiny_.Tokens(20, 70 + common);
    prompt.insert(prompt.end(), own.begin(), own.end());
    Result<Sequence*> newcomer = engine_->Add(request(prompt));
    ASSERT_TRUE(other.ok() && newcomer.ok());
    ASSERT_TRUE(engine_->Step().ok());
    EXPECT_EQ((*newcomer)->kv().length(), (*newcomer)->stats().cached_tokens);
    (*newcomer)->Cancel();
    for (bool more = true; more;) more = *engine_->Step();
    engine_->Remove(*other);
    engine_->Remove(*newcomer);
    const EngineSnapshot s = engine_->snapshot();
    EXPECT_EQ(s.free_pages + s.kept_pages, s.pages) << common;
  }
}

TEST_P(ConcurrencyTest, ScopesDoNotShare) {
  Start({.prefix_cache = true}, 8 * kContext);
  Request r = Requests(1).front();
  r.prompt = tiny_.Tokens(150, 5);
  r.cache_scope = 1;
  RunAll({r}, 0);
  cached_ = 0;
  r.cache_scope = 2;
  RunAll({r}, 0);
  EXPECT_EQ(cached_, 0u);
  r.use_cache = false;
  RunAll({r}, 0);
  EXPECT_EQ(cached_, 0u);
}

TEST_P(ConcurrencyTest, APoolForOneEndsAtItsLength) {
  Start({.max_sequences = 2}, 128);
  Request r = Requests(1).front();
  r.prompt.resize(40);
  r.max_tokens = 250;
  EXPECT_EQ(RunAll({r}, 0).front().tokens.size(), 128u - 40 + 1);
  r.prompt = tiny_.Tokens(129, 1);
  const Status refused = engine_->Add(r).status();
  EXPECT_EQ(refused.code(), StatusCode::kTooLong);
  EXPECT_NE(refused.message().find("129"), std::string::npos) << refused.message();
}

INSTANTIATE_TEST_SUITE_P(Models, ConcurrencyTest, testing::Values("llama", "gemma3", "moe"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice
