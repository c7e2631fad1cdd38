// The engine as a whole on a model of a few thousand weights: what comes out of
// a request, how it ends, and that its neighbours do not matter.
#include "src/engine/engine.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"
#include "tests/text/shared_oracles.h"

namespace sluice {
namespace {

constexpr size_t kContext = 96;

class EngineTest : public testing::Test {
 protected:
  EngineTest() : tiny_(TinyLlama("Q4_0")) { Start({}); }

  // A new engine; what is zero in `o` becomes what these tests use.
  void Start(RunnerOptions o) {
    const RunnerOptions defaults = TestOptions(kContext);
    o.weights = defaults.weights;
    o.kv_type = defaults.kv_type;
    if (o.context == 0) o.context = kContext;
    if (o.threads == 0) o.threads = 1;
    engine_.reset();
    runner_ = MakeRunner(tiny_.Write(folder_.path("m.gguf")), o);
    ASSERT_TRUE(runner_);
    tokenizer_ = *Tokenizer::Load(runner_->model().gguf());
    engine_ = std::make_unique<Engine>(*runner_, *tokenizer_, EngineOptions{.max_sequences = 16});
  }

  // Greedy, end tokens ignored.
  Request Greedy(size_t prompt_tokens, size_t max_tokens, uint64_t seed = 7) {
    Request r;
    r.prompt = tiny_.Tokens(prompt_tokens, seed);
    r.sampler.temp = 0;
    r.max_tokens = max_tokens;
    r.hash_logits = true;
    r.ignore_eos = true;
    return r;
  }
  Request Random(size_t prompt_tokens, size_t max_tokens, uint64_t seed) {
    Request r = Greedy(prompt_tokens, max_tokens);
    r.sampler.temp = 1;
    r.sampler.seed = seed;
    return r;
  }

  Sequence& Add(Request request) {
    Result<Sequence*> s = engine_->Add(std::move(request));
    EXPECT_TRUE(s.ok()) << s.status().message();
    return **s;
  }
  size_t RunAll() {
    size_t steps = 0;
    for (bool more = true; more; ++steps) {
      Result<bool> step = engine_->Step();
      EXPECT_TRUE(step.ok()) << step.status().message();
      more = step.ok() && *step;
    }
    return steps - 1;
  }
  Sequence& Run(Request request) {
    Sequence& s = Add(std::move(request));
    RunAll();
    return s;
  }
  // A finished sequence keeps its pages until it is removed.
  struct Said {
    std::string text;
    uint64_t hash;
  };
  Said RunAndRemove(Request request) {
    Sequence& s = Run(std::move(request));
    const Said said{s.text(), s.stats().logits_hash};
    engine_->Remove(&s);
    return said;
  }
  static std::vector<int32_t> Generated(const Sequence& s) {
    return {s.context().begin() + static_cast<ptrdiff_t>(s.stats().prompt_tokens),
            s.context().end()};
  }
  Status Refusal(Request request) { return engine_->Add(std::move(request)).status(); }

  const TempFolder folder_;
  const TinyModel tiny_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, GeneratesTheGreedyTokensOfTheModel) {
  const Request request = Greedy(11, 30);
  const Sequence& s = Run(request);
  EXPECT_EQ(Generated(s), GreedyTokens(*runner_, request.prompt, 30));
  EXPECT_EQ(s.finish_reason(), FinishReason::kLength);
  EXPECT_EQ(s.stats().prompt_tokens, 11u);
  EXPECT_EQ(s.stats().prefill_rows, 11u);
  EXPECT_EQ(s.stats().generated_tokens, 30u);
  EXPECT_EQ(s.stats().decode_passes, 29u);
  EXPECT_GT(s.stats().decode_bytes, 29 * runner_->model().WeightBytesPerToken());
}

// The weights that a pass reads for all its streams are shared out among them.
TEST_F(EngineTest, DecodeBytesOfABatchAreWhatItRead) {
  constexpr size_t kStreams = 4, kTokens = 20;
  RunnerOptions o;
  o.sequences = kStreams;
  Start(o);
  std::vector<Sequence*> streams;
  for (size_t i = 0; i < kStreams; ++i) streams.push_back(&Add(Greedy(8, kTokens, i)));
  RunAll();
  const EngineSnapshot snapshot = engine_->snapshot();
  uint64_t sum = 0;
  for (const Sequence* s : streams) sum += s->stats().decode_bytes;
  // Rounded down for each row.
  EXPECT_LE(sum, snapshot.decode_bytes);
  EXPECT_GE(sum + kStreams * kTokens, snapshot.decode_bytes);
  EXPECT_LT(streams[0]->stats().decode_bytes,
            (kTokens - 1) * runner_->model().WeightBytesPerToken());
}

TEST_F(EngineTest, BiasThatLeavesNothingToDrawEndsInAnError) {
  Request request = Greedy(5, 10);
  for (size_t id = 0; id < runner_->config().vocab; ++id) {
    request.sampler.logit_bias.emplace_back(static_cast<int32_t>(id),
                                            -std::numeric_limits<float>::infinity());
  }
  const Sequence& s = Run(request);
  EXPECT_EQ(s.finish_reason(), FinishReason::kError);
  EXPECT_EQ(s.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(s.error().message().find("logit_bias"), std::string::npos);
  EXPECT_EQ(s.stats().generated_tokens, 0u);
}

TEST_F(EngineTest, TextIsThatOfTheTokensInPieces) {
  std::string streamed;
  Request request = Greedy(5, 40);
  request.on_token = [&](const TokenEvent& token) { streamed += token.text; };
  const Sequence& s = Run(request);
  EXPECT_EQ(streamed, s.text());
  StreamDecoder decoder(*tokenizer_, true, StreamDecoder::Start::kContinuation);
  std::string expected;
  for (int32_t id : Generated(s)) expected += decoder.Push(id);
  EXPECT_EQ(s.text(), expected + decoder.Flush());
}

TEST_F(EngineTest, ChunksDoNotMatter) {
  const Sequence& whole = Run(Greedy(50, 20));
  const std::string text = whole.text();
  const uint64_t hash = whole.stats().logits_hash;
  for (size_t chunk : {1, 7, 49}) {
    RunnerOptions o;
    o.chunk = chunk;
    Start(o);
    const Sequence& s = Run(Greedy(50, 20));
    EXPECT_EQ(s.text(), text) << chunk;
    EXPECT_EQ(s.stats().logits_hash, hash) << chunk;
  }
}

TEST_F(EngineTest, AnEndTokenStopsAndIsNotText) {
  // The third greedy token is made the end token of the vocabulary.
  const std::vector<int32_t> greedy = GreedyTokens(*runner_, Greedy(9, 1).prompt, 3);
  ASSERT_TRUE(greedy[0] != greedy[2] && greedy[1] != greedy[2]);
  TinyModel other = tiny_;
  other.SetU32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(greedy[2]));
  runner_ = MakeRunner(other.Write(folder_.path("eos.gguf")), TestOptions(kContext));
  tokenizer_ = *Tokenizer::Load(runner_->model().gguf());
  engine_ = std::make_unique<Engine>(*runner_, *tokenizer_, EngineOptions{.max_sequences = 16});

  Request request = Greedy(9, 20);
  request.ignore_eos = false;
  const Sequence& s = Run(request);
  EXPECT_EQ(s.finish_reason(), FinishReason::kStop);
  EXPECT_EQ(s.stats().generated_tokens, 2u);
  EXPECT_EQ(Generated(s), (std::vector<int32_t>{greedy[0], greedy[1]}));
  ASSERT_NE(s.end_token(), nullptr);
  EXPECT_EQ(s.end_token()->id, greedy[2]);
  request.ignore_eos = true;
  EXPECT_EQ(Run(request).stats().generated_tokens, 20u);
}

TEST_F(EngineTest, TheEndOfTheContextIsLength) {
  const Sequence& s = Run(Greedy(90, SIZE_MAX));
  EXPECT_EQ(s.finish_reason(), FinishReason::kLength);
  // Position 95 is the last that can be computed; the token drawn from it is delivered.
  EXPECT_EQ(s.stats().generated_tokens, kContext - 90 + 1);
  EXPECT_STREQ(FinishReasonName(s.finish_reason()), "length");
}

TEST_F(EngineTest, APromptThatFillsTheContextGivesOneToken) {
  const Sequence& s = Run(Greedy(kContext, SIZE_MAX));
  EXPECT_EQ(s.finish_reason(), FinishReason::kLength);
  EXPECT_EQ(s.stats().generated_tokens, 1u);
}

TEST_F(EngineTest, ContextShiftGoesOn) {
  Request request = Greedy(60, 200);
  request.context_shift = true;
  request.sinks = 3;
  const Sequence& s = Run(request);
  EXPECT_EQ(s.finish_reason(), FinishReason::kLength);
  EXPECT_EQ(s.stats().generated_tokens, 200u);
  EXPECT_LE(s.context().size(), kContext + 1);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(s.context()[i], request.prompt[i]);
}

TEST_F(EngineTest, AShiftedContextIsComputedLikeAFreshPrompt) {
  Request request = Greedy(60, 38);  // one token after the context was full
  request.context_shift = true;
  request.sinks = 4;
  const Sequence& s = Run(request);
  const std::vector<int32_t> context(s.context().begin(), s.context().end() - 1);
  EXPECT_LT(context.size(), kContext);
  EXPECT_EQ(s.context().back(), GreedyTokens(*runner_, context, 1)[0]);
}

TEST_F(EngineTest, StopStringsAcrossTokens) {
  const std::string text = RunAndRemove(Greedy(11, 40)).text;
  ASSERT_GT(text.size(), 20u);
  // Five bytes from the middle: they cross tokens, which are one or two characters here.
  const size_t at = text.find_first_not_of(text[0], text.size() / 2);
  const std::string stop = text.substr(at, 5);
  std::string streamed;
  Request request = Greedy(11, 40);
  request.stop = {"never said", stop};
  request.on_token = [&](const TokenEvent& token) { streamed += token.text; };
  const Sequence& s = Run(request);
  EXPECT_EQ(s.finish_reason(), FinishReason::kStop);
  EXPECT_EQ(s.text(), text.substr(0, text.find(stop)));
  EXPECT_EQ(streamed, s.text());
}

TEST_F(EngineTest, AnUnfinishedStopStringIsDeliveredAtTheEnd) {
  const std::string text = RunAndRemove(Greedy(11, 12)).text;
  Request request = Greedy(11, 12);
  request.stop = {text.substr(text.size() - 2) + "\x01 never"};
  EXPECT_EQ(Run(request).text(), text);
}

TEST_F(EngineTest, CancelEndsBeforeTheNextStep) {
  Sequence& s = Add(Greedy(10, 50));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(*engine_->Step());
  const std::string text = s.text();
  s.Cancel();
  EXPECT_FALSE(*engine_->Step());
  EXPECT_EQ(s.finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(s.stats().generated_tokens, 5u);
  EXPECT_TRUE(s.text().starts_with(text));  // and what the decoder held back
  engine_->Remove(&s);
  EXPECT_FALSE(*engine_->Step());
}

TEST_F(EngineTest, SequencesTogetherSayWhatTheySayAlone) {
  std::vector<Request> requests = {Greedy(40, 30, 1), Random(3, 25, 5), Greedy(17, 30, 3)};
  std::vector<Said> alone;
  for (const Request& r : requests) alone.push_back(RunAndRemove(r));
  for (size_t chunk : {8, 512}) {
    RunnerOptions o;
    o.chunk = chunk;
    o.sequences = 3;
    o.threads = 2;
    Start(o);
    std::vector<Sequence*> together;
    for (const Request& r : requests) {
      together.push_back(&Add(r));
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(*engine_->Step());  // they arrive one after another
    }
    RunAll();
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(together[i]->text(), alone[i].text) << i << ", chunks of " << chunk;
      EXPECT_EQ(together[i]->stats().logits_hash, alone[i].hash) << i;
    }
  }
}

TEST_F(EngineTest, ALongPromptDoesNotHoldUpARunningSequence) {
  RunnerOptions o;
  o.chunk = 8;
  o.sequences = 2;
  Start(o);
  Sequence& running = Add(Greedy(4, 40));
  ASSERT_TRUE(*engine_->Step());
  Sequence& late = Add(Greedy(70, 2));
  for (size_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(*engine_->Step());
    EXPECT_EQ(running.stats().generated_tokens, 1 + i);
    EXPECT_EQ(late.kv().length(), 7 * i);  // the rest of each chunk
  }
}

TEST_F(EngineTest, SeedsReproduceAndDiffer) {
  const std::string first = RunAndRemove(Random(9, 40, 1)).text;
  EXPECT_EQ(RunAndRemove(Random(9, 40, 1)).text, first);
  EXPECT_NE(RunAndRemove(Random(9, 40, 2)).text, first);
}

TEST_F(EngineTest, RefusesWhatItCannotRun) {
  Request empty = Greedy(1, 1);
  empty.prompt.clear();
  EXPECT_EQ(Refusal(empty).code(), StatusCode::kInvalidArgument);
  EXPECT_NE(Refusal(empty).message().find("empty"), std::string::npos);

  const Status length = Refusal(Greedy(kContext + 1, 1));
  EXPECT_EQ(length.code(), StatusCode::kTooLong);
  EXPECT_NE(length.message().find("97"), std::string::npos) << length.message();
  EXPECT_NE(length.message().find("96"), std::string::npos) << length.message();
  EXPECT_NE(length.message().find("--ctx-size"), std::string::npos);

  for (int32_t id : {-1, static_cast<int32_t>(TinyModel::kVocab), INT32_MAX}) {
    Request foreign = Greedy(3, 1);
    foreign.prompt[2] = id;
    EXPECT_NE(Refusal(foreign).message().find("token 2"), std::string::npos);
    EXPECT_NE(Refusal(foreign).message().find(std::to_string(id)), std::string::npos);
  }

  Request sampler = Greedy(3, 1);
  sampler.sampler.top_p = 7;
  EXPECT_EQ(Refusal(sampler).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(*engine_->Step());  // nothing was left behind
}

// LongRoPE: past the original context all keys are rotated by the long factors, also those of a
// sequence that began short. Its tokens are then those of a fresh evaluation.
TEST(EngineLongRope, TheSwitchComputesTheSequenceAgain) {
  const std::filesystem::path path = SharedOracles("arch") / "tiny-phi3-longrope-long-a.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no shared oracles";
  const std::unique_ptr<ModelRunner> runner = MakeRunner(path.string(), TestOptions(128));
  ASSERT_TRUE(runner);
  const size_t border = runner->config().rope.original_context;
  ASSERT_GT(border, 4u);
  ASSERT_LT(border, 100u);
  TinyModel vocabulary;  // the oracle has no tokenizer
  const TempFolder folder;
  const std::unique_ptr<Gguf> gguf = *Gguf::Open(vocabulary.Write(folder.path("v.gguf")));
  const std::unique_ptr<Tokenizer> tokenizer = *Tokenizer::Load(*gguf);

  Engine engine(*runner, *tokenizer);
  Request request;
  request.prompt = vocabulary.Tokens(border - 4);
  request.sampler.temp = 0;
  request.ignore_eos = true;
  request.max_tokens = 12;
  Sequence& s = **engine.Add(request);
  while (*engine.Step()) {
  }
  ASSERT_EQ(s.context().size(), border + 8);
  for (size_t i = request.prompt.size(); i < s.context().size(); ++i) {
    EXPECT_EQ(s.context()[i], GreedyTokens(*runner, {s.context().data(), i}, 1)[0]) << i;
  }
  EXPECT_TRUE(runner->model().UsesLongRope(border + 1));
  EXPECT_FALSE(runner->model().UsesLongRope(border));
}

}  // namespace
}  // namespace sluice
