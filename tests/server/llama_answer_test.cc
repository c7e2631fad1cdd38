// Answers in llama-server's form, from what an engine would say; no model.
#include "src/server/llama_answer.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "src/server/timings.h"
#include "tests/server/recorded_exchange.h"

namespace sluice {
namespace {

namespace json = boost::json;

TokenDelta Token(size_t choice, int32_t id, const char* text) {
  TokenDelta token;
  token.choice = choice;
  token.id = id;
  token.text = text;
  token.piece = text;
  return token;
}

ChoiceEnd EndOf(size_t choice, FinishReason reason, size_t generated, std::string stop = "") {
  ChoiceEnd end;
  end.choice = choice;
  end.reason = reason;
  end.stop_text = std::move(stop);
  end.stats.prompt_tokens = 10;
  end.stats.cached_tokens = 4;
  end.stats.generated_tokens = generated;
  end.stats.decode_passes = generated;
  end.stats.prefill_s = 0.5;
  end.stats.decode_s = 0.25;
  return end;
}

class LlamaAnswerTest : public testing::Test {
 protected:
  LlamaAnswerTest() { SetPrompts(1); }
  void SetPrompts(size_t n) {
    options_.model = "tiny";
    options_.prompts.clear();
    for (size_t i = 0; i < n; ++i) options_.prompts.push_back("prompt " + std::to_string(i));
    options_.prompt_tokens.assign(n, 10);
    options_.settings = {{"n_predict", 5}, {"top_k", 40}};
    options_.piece = [](int32_t id) { return "<" + std::to_string(id) + ">"; };
  }
  std::unique_ptr<LlamaAnswer> Make() { return std::make_unique<LlamaAnswer>(exchange_, options_); }
  std::vector<json::object> Events() const { return exchange_->lines("data: ", "\n\n"); }

  LlamaAnswerOptions options_;
  std::shared_ptr<RecordedExchange> exchange_ = std::make_shared<RecordedExchange>();
};

TEST_F(LlamaAnswerTest, OneObjectHasTheTextAndTheTotals) {
  const auto answer = Make();
  answer->OnToken(Token(0, 5, "a\n"));
  answer->OnToken(Token(0, 6, "b"));
  answer->OnEnd(EndOf(0, FinishReason::kStop, 2, "###"));
  const json::object reply = exchange_->json().as_object();
  EXPECT_EQ(reply.at("content"), "a\nb");
  EXPECT_EQ(reply.at("stop"), true);
  EXPECT_EQ(reply.at("stop_type"), "word");
  EXPECT_EQ(reply.at("stopping_word"), "###");
  EXPECT_EQ(reply.at("has_new_line"), true);
  EXPECT_EQ(reply.at("prompt"), "prompt 0");
  EXPECT_EQ(reply.at("tokens_evaluated"), 10);
  EXPECT_EQ(reply.at("tokens_predicted"), 2);
  EXPECT_EQ(reply.at("tokens_cached"), 4);
  EXPECT_EQ(reply.at("truncated"), false);
  EXPECT_EQ(reply.at("generation_settings").at("top_k"), 40);
  EXPECT_EQ(reply.at("tokens"), json::array());
  const json::object& timings = reply.at("timings").as_object();
  EXPECT_EQ(timings.at("cache_n"), 4);
  EXPECT_EQ(timings.at("prompt_n"), 6);
  EXPECT_EQ(timings.at("prompt_per_second"), 12.0);
  EXPECT_EQ(timings.at("predicted_per_token_ms"), 125.0);
}

TEST_F(LlamaAnswerTest, StopTypes) {
  const auto type = [&](FinishReason reason, std::string stop) {
    exchange_ = std::make_shared<RecordedExchange>();
    Make()->OnEnd(EndOf(0, reason, 0, std::move(stop)));
    return std::string(exchange_->json().at("stop_type").as_string());
  };
  EXPECT_EQ(type(FinishReason::kStop, ""), "eos");
  EXPECT_EQ(type(FinishReason::kStop, "x"), "word");
  EXPECT_EQ(type(FinishReason::kLength, ""), "limit");
  EXPECT_EQ(type(FinishReason::kCancelled, ""), "none");
  options_.out_of_time = std::make_shared<std::atomic<bool>>(true);
  EXPECT_EQ(type(FinishReason::kStop, ""), "limit");
}

TEST_F(LlamaAnswerTest, StreamsAnEventForEachTextAndTheTotalsLast) {
  options_.stream = options_.return_tokens = true;
  const auto answer = Make();
  answer->OnToken(Token(0, 5, ""));
  answer->OnToken(Token(0, 6, "ab"));
  answer->OnToken(Token(0, 7, ""));
  answer->OnEnd(EndOf(0, FinishReason::kLength, 3));
  EXPECT_EQ(exchange_->type(), "text/event-stream");
  EXPECT_EQ(exchange_->header("X-Accel-Buffering"), "no");
  EXPECT_EQ(exchange_->ended(), 1);
  const std::vector<json::object> events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("content"), "ab");
  EXPECT_EQ(events[0].at("stop"), false);
  EXPECT_EQ(events[0].at("tokens"), (json::array{5, 6}));
  EXPECT_EQ(events[0].at("tokens_predicted"), 2);
  EXPECT_FALSE(events[0].contains("timings"));
  EXPECT_EQ(events[1].at("content"), "");
  EXPECT_EQ(events[1].at("stop"), true);
  EXPECT_EQ(events[1].at("tokens"), (json::array{7}));  // no token is lost
  EXPECT_EQ(events[1].at("tokens_predicted"), 3);
}

TEST_F(LlamaAnswerTest, AListOfPromptsIsAListOfAnswersInItsOrder) {
  SetPrompts(2);
  const auto answer = Make();
  answer->OnToken(Token(1, 6, "second"));
  answer->OnEnd(EndOf(1, FinishReason::kStop, 1));
  EXPECT_EQ(exchange_->ended(), 0);
  answer->OnToken(Token(0, 5, "first"));
  answer->OnEnd(EndOf(0, FinishReason::kStop, 1));
  const json::array replies = exchange_->json().as_array();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].at("content"), "first");
  EXPECT_EQ(replies[0].at("index"), 0);
  EXPECT_EQ(replies[1].at("content"), "second");
  EXPECT_EQ(replies[1].at("prompt"), "prompt 1");
}

TEST_F(LlamaAnswerTest, AStreamOfSeveralEndsWithTheLast) {
  SetPrompts(2);
  options_.stream = true;
  const auto answer = Make();
  answer->OnToken(Token(0, 5, "a"));
  answer->OnEnd(EndOf(0, FinishReason::kStop, 1));
  EXPECT_EQ(exchange_->ended(), 0);
  answer->OnToken(Token(1, 5, "b"));
  answer->OnEnd(EndOf(1, FinishReason::kStop, 1));
  EXPECT_EQ(exchange_->ended(), 1);
  const std::vector<json::object> events = Events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[1].at("stop"), true);
  EXPECT_EQ(events[2].at("index"), 1);
}

TEST_F(LlamaAnswerTest, ProbabilitiesOfEveryToken) {
  options_.probs = true;
  const auto answer = Make();
  TokenDelta token = Token(0, 5, "a");
  token.logprob = -0.5f;
  token.top = {{5, -0.5f}, {9, -std::numeric_limits<float>::infinity()}};
  answer->OnToken(token);
  answer->OnEnd(EndOf(0, FinishReason::kStop, 1));
  const json::value reply = exchange_->json();
  const json::array& probs = reply.at("completion_probabilities").as_array();
  ASSERT_EQ(probs.size(), 1u);
  EXPECT_EQ(probs[0].at("id"), 5);
  EXPECT_EQ(probs[0].at("bytes"), (json::array{97}));
  EXPECT_EQ(probs[0].at("top_logprobs").at(1).at("token"), "<9>");
  EXPECT_EQ(probs[0].at("top_logprobs").at(1).at("logprob"), -9999.0);
}

TEST_F(LlamaAnswerTest, ProgressOnlyWhereItWasAskedFor) {
  options_.stream = true;
  Make()->OnPrefill(0, 4, 2, 10);
  EXPECT_TRUE(exchange_->chunks().empty());
  options_.return_progress = options_.timings_per_token = true;
  const auto answer = Make();
  answer->OnPrefill(0, 4, 2, 10);
  answer->OnToken(Token(0, 5, "a"));
  const std::vector<json::object> events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("prompt_progress").at("processed"), 4);
  EXPECT_EQ(events[0].at("prompt_progress").at("total"), 10);
  EXPECT_EQ(events[0].at("prompt_progress").at("cache"), 2);
  EXPECT_EQ(events[1].at("timings").at("predicted_n"), 1);
  EXPECT_EQ(events[1].at("timings").at("cache_n"), 2);
  EXPECT_EQ(events[1].at("timings").at("prompt_n"), 8);
}

TEST_F(LlamaAnswerTest, FieldsThatWereAskedFor) {
  options_.response_fields = {"content", "generation_settings/n_predict", "no/such", "timings/x",
                              "content/deeper"};
  const auto answer = Make();
  answer->OnToken(Token(0, 5, "a"));
  answer->OnEnd(EndOf(0, FinishReason::kStop, 1));
  EXPECT_EQ(exchange_->json(),
            (json::object{{"content", "a"}, {"generation_settings/n_predict", 5}}));
}

TEST_F(LlamaAnswerTest, SpeedsOfNothingAreZero) {
  const json::object timings = Timings(SequenceStats());
  for (const auto& entry : timings) EXPECT_EQ(entry.value().to_number<double>(), 0) << entry.key();
}

TEST_F(LlamaAnswerTest, Errors) {
  Make()->OnError(Status(StatusCode::kInvalidArgument, "bad"));
  EXPECT_EQ(exchange_->status(), 400);
  EXPECT_EQ(exchange_->json().at("error").at("message"), "bad");
  exchange_ = std::make_shared<RecordedExchange>();
  options_.stream = true;
  const auto answer = Make();
  answer->OnToken(Token(0, 5, "a"));
  answer->OnError(Status(StatusCode::kOutOfMemory, "no memory"));
  EXPECT_EQ(Events().back().at("error").at("message"), "no memory");
  EXPECT_EQ(Events().back().at("error").at("code"), 500);
  EXPECT_EQ(exchange_->ended(), 1);
}

}  // namespace
}  // namespace sluice
