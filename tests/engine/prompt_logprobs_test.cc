// Log-probabilities of a prompt's tokens: those of the model's own logits, to the
// bit, however the prompt was cut, batched, cached or put off.
#include "src/engine/prompt_logprobs.h"

#include <cmath>

#include "src/engine/perplexity.h"
#include "tests/engine/tiny_engine.h"

namespace sluice {
namespace {

constexpr int kAlternatives = 3;

// Everything that a PromptLogprobs says, for comparisons.
struct Scores {
  std::vector<float> logprobs;
  std::vector<size_t> ranks;
  std::vector<int32_t> ids;
  bool operator==(const Scores&) const = default;
};

Scores ScoresOf(const PromptLogprobs& prompt) {
  Scores scores;
  for (size_t i = 1; i < prompt.size(); ++i) {
    const PromptLogprobs::Entry entry = prompt.at(i);
    scores.logprobs.push_back(entry.token.logprob);
    scores.ranks.push_back(entry.rank);
    scores.ids.push_back(entry.token.id);
    for (const TokenLogprob& t : entry.top) {
      scores.logprobs.push_back(t.logprob);
      scores.ids.push_back(t.id);
    }
  }
  return scores;
}

class PromptLogprobsTest : public TinyEngineTest {
 protected:
  PromptLogprobsTest() {
    for (size_t i = 0; i < 8; ++i) {
      Request r;
      r.prompt = tiny_.Tokens(i == 0 ? 1 : 20 + 37 * (i % 4), i % 3);
      const auto own = tiny_.Tokens(5 * (i % 5), 100 + i);
      r.prompt.insert(r.prompt.end(), own.begin(), own.end());
      r.prompt_logprobs = i % 4 == 3 ? 0 : kAlternatives;
      r.sampler.temp = 0;
      r.max_tokens = i % 3;
      r.ignore_eos = true;
      requests_.push_back(r);
    }
  }

  void Start(const EngineOptions& options, size_t chunk, int threads, size_t positions) {
    RunnerOptions o = TestOptions(kContext);
    o.chunk = chunk;
    o.threads = threads;
    StartEngine(options, o, PagesFor(positions));
  }

  // All at once; each must be told exactly once, before its first token.
  std::vector<Scores> RunAll(std::vector<Request> requests) {
    std::vector<Scores> scores(requests.size());
    std::vector<Sequence*> sequences;
    for (size_t i = 0; i < requests.size(); ++i) {
      Request& r = requests[i];
      const auto told = std::make_shared<int>(0);
      r.on_prompt = [&scores, i, told](const PromptLogprobs& prompt) {
        EXPECT_TRUE(prompt.complete());
        EXPECT_EQ(++*told, 1);
        scores[i] = ScoresOf(prompt);
      };
      r.on_token = [told](const TokenEvent&) { EXPECT_EQ(*told, 1); };
      r.on_finish = [told, this](const Sequence& s) {
        EXPECT_EQ(*told, 1);
        EXPECT_EQ(s.finish_reason(), FinishReason::kLength);
        EXPECT_EQ(s.stats().generated_tokens, s.request().max_tokens);
        preemptions_ += s.stats().preemptions;
        cached_ += s.stats().cached_tokens;
      };
      sequences.push_back(*engine_->Add(r));
    }
    while (*engine_->Step()) {
    }
    for (Sequence* s : sequences) engine_->Remove(s);
    return scores;
  }

  // From the logits that `eval` and `perplexity` see.
  std::vector<Scores> Expected() {
    Start({}, 512, 1, kContext);
    std::vector<Scores> all;
    for (const Request& r : requests_) {
      PromptLogprobs prompt(r.prompt, static_cast<size_t>(r.prompt_logprobs));
      Evaluator evaluator(*runner_);
      EXPECT_TRUE(evaluator
                      .Append(r.prompt, 0,
                              [&](size_t position, std::span<const float> logits) {
                                if (position + 1 < r.prompt.size()) {
                                  prompt.Score(position + 1, logits);
                                }
                              })
                      .ok());
      all.push_back(ScoresOf(prompt));
    }
    return all;
  }

  std::vector<Request> requests_;
  size_t preemptions_ = 0, cached_ = 0;
};

TEST_P(PromptLogprobsTest, NeitherChunkNorBatchNorThreadsNorCacheMatter) {
  const std::vector<Scores> expected = Expected();
  for (size_t chunk : {7, 512}) {
    for (size_t batch : {1, 8}) {
      for (int threads : {1, 2}) {
        Start({.max_sequences = batch, .prefix_cache = true}, chunk, threads, 64 * kContext);
        for (int again = 0; again < 2; ++again) {
          EXPECT_EQ(RunAll(requests_), expected)
              << chunk << " rows, batches of " << batch << ", " << threads << " threads";
        }
        EXPECT_EQ(cached_, 0u) << "cached positions have no logits";
      }
    }
  }
}

// It leaves its prompt in the cache for others, who decode beside it.
TEST_P(PromptLogprobsTest, OthersReadWhatItLeft) {
  const std::vector<Scores> expected = Expected();
  Start({.max_sequences = 4, .prefix_cache = true}, 32, 1, 64 * kContext);
  RunAll(requests_);
  std::vector<Request> mixed = requests_;
  std::vector<Scores> mixed_expected = expected;
  Request plain = requests_[3];
  plain.prompt_logprobs = -1;
  plain.max_tokens = 9;
  size_t cached = 0, generated = 0;
  plain.on_finish = [&](const Sequence& s) {
    cached = s.stats().cached_tokens;
    generated = s.stats().generated_tokens;
  };
  ASSERT_TRUE(engine_->Add(plain).ok());
  EXPECT_EQ(RunAll(mixed), mixed_expected);
  EXPECT_EQ(cached, plain.prompt.size() - 1);
  EXPECT_EQ(generated, 9u);
}

TEST_P(PromptLogprobsTest, BeingPutOffDoesNotMatter) {
  for (Request& r : requests_) r.max_tokens = 60;
  const std::vector<Scores> expected = Expected();
  Start({.max_sequences = 8, .prefix_cache = true}, 32, 1, 330);
  EXPECT_EQ(RunAll(requests_), expected);
  EXPECT_GT(preemptions_, 0u);
}

// Put off between two chunks of its prompt: what was scored is not scored again.
TEST_P(PromptLogprobsTest, BeingPutOffInTheMiddleDoesNotMatter) {
  Request stream = requests_[1];
  stream.prompt = tiny_.Tokens(58, 1);
  stream.prompt_logprobs = -1;
  stream.max_tokens = 30;
  Request late = requests_[2];
  late.prompt = tiny_.Tokens(120, 2);
  late.max_tokens = 1;
  requests_ = {late};
  const std::vector<Scores> expected = Expected();
  // Three times 64 positions: the stream's second page is the one that the prompt was to have.
  Start({.max_sequences = 2, .prefix_cache = true}, 4, 1, 192);
  ASSERT_TRUE(engine_->Add(stream).ok());
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(*engine_->Step());
  EXPECT_EQ(RunAll(requests_), expected);
  if (std::string(GetParam()) == "llama") {
    EXPECT_GT(preemptions_, 0u);
  }
}

TEST_P(PromptLogprobsTest, TheirSumIsThatOfPerplexity) {
  Start({.max_sequences = 2}, 64, 1, 2 * kContext);
  Request r = requests_[1];
  r.prompt = tiny_.Tokens(200, 9);
  const Scores scores = RunAll({r}).front();
  double sum = 0;
  for (size_t i = 101; i < 200; ++i) sum -= scores.logprobs[(i - 1) * (1 + kAlternatives)];
  const Result<Perplexity> perplexity = MeasurePerplexity(
      *runner_, r.prompt, std::nullopt, 200, [](const Perplexity&, size_t) { return true; });
  ASSERT_TRUE(perplexity.ok());
  EXPECT_EQ(perplexity->scored, 99u);
  EXPECT_NEAR(sum, perplexity->nll_sum, 1e-4 * perplexity->nll_sum);
}

// A prompt alone needs no logits of its last row; neither is anything drawn.
TEST_P(PromptLogprobsTest, NoTokensNoDraw) {
  Start({.prefix_cache = true}, 64, 1, 2 * kContext);
  Request r = requests_[2];
  r.prompt_logprobs = -1;
  r.max_tokens = 0;
  r.hash_logits = true;
  size_t tokens = 0;
  r.on_token = [&](const TokenEvent&) { ++tokens; };
  Sequence& s = **engine_->Add(r);
  while (*engine_->Step()) {
  }
  EXPECT_EQ(s.finish_reason(), FinishReason::kLength);
  EXPECT_EQ(s.stats().logits_hash, 0u);
  EXPECT_EQ(s.stats().prefill_rows, r.prompt.size());
  EXPECT_EQ(tokens, 0u);
  r.max_tokens = 1;
  const Sequence& next = **engine_->Add(r);
  while (*engine_->Step()) {
  }
  EXPECT_EQ(next.stats().cached_tokens, r.prompt.size() - 1);
}

INSTANTIATE_TEST_SUITE_P(Models, PromptLogprobsTest, testing::Values("llama", "gemma3", "moe"),
                         [](const auto& info) { return std::string(info.param); });

TEST(PromptLogprobs, RanksCountWhatIsLikelierTiesToTheLowerId) {
  const std::vector<float> logits = {1, 3, 3, 0, 3};
  PromptLogprobs prompt({0, 4, 1, 3}, 2);
  for (size_t i = 1; i < 4; ++i) prompt.Score(i, logits);
  EXPECT_EQ(prompt.at(1).rank, 3u);
  EXPECT_EQ(prompt.at(2).rank, 1u);
  EXPECT_EQ(prompt.at(3).rank, 5u);
  ASSERT_EQ(prompt.at(3).top.size(), 2u);
  EXPECT_EQ(prompt.at(3).top[0].id, 1);
  EXPECT_EQ(prompt.at(3).top[1].id, 2);
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit);
  EXPECT_NEAR(prompt.at(3).token.logprob, -std::log(sum), 1e-6);
}

TEST(PromptLogprobs, FewerThanAskedForInASmallVocabulary) {
  PromptLogprobs prompt({0, 1}, 20);
  prompt.Score(1, std::vector<float>{1, 2, 3});
  EXPECT_EQ(prompt.at(1).top.size(), 3u);
}

}  // namespace
}  // namespace sluice
