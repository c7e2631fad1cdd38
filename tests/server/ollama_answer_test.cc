// Answers in Ollama's form, from what an engine would say; no model.
#include "src/server/ollama_answer.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "tests/server/recorded_exchange.h"

namespace sluice {
namespace {

namespace json = boost::json;

TokenDelta Token(int32_t id, const char* text) {
  TokenDelta token;
  token.id = id;
  token.text = text;
  token.piece = text;
  return token;
}

ChoiceEnd EndOf(FinishReason reason, size_t prompt, size_t cached, size_t generated) {
  ChoiceEnd end;
  end.reason = reason;
  end.stats.prompt_tokens = prompt;
  end.stats.cached_tokens = cached;
  end.stats.generated_tokens = generated;
  end.stats.prefill_s = 0.25;
  end.stats.decode_s = 0.5;
  return end;
}

class OllamaAnswerTest : public testing::Test {
 protected:
  OllamaAnswerTest() {
    options_.model = "tiny:latest";
    options_.piece = [](int32_t id) { return "<" + std::to_string(id) + ">"; };
  }
  // A template that knows tools and thoughts, in the marks of Qwen.
  void ExpectMarks() {
    ChatOutputOptions output;
    output.template_source =
        "{% if tools %}<tool_call>{{ tools }}</tool_call>{% endif %}<think></think>";
    output.tools = true;
    options_.output = output;
  }
  void Tell(const std::vector<TokenDelta>& tokens, const ChoiceEnd& end) {
    OllamaAnswer answer(exchange_, options_);
    for (const TokenDelta& token : tokens) answer.OnToken(token);
    answer.OnEnd(end);
  }
  std::vector<json::object> Lines() const { return exchange_->lines("", "\n"); }

  OllamaAnswerOptions options_;
  std::shared_ptr<RecordedExchange> exchange_ = std::make_shared<RecordedExchange>();
};

TEST_F(OllamaAnswerTest, StreamsOneLineForEachText) {
  Tell({Token(5, "Hel"), Token(6, ""), Token(7, "lo")}, EndOf(FinishReason::kStop, 4, 1, 3));
  EXPECT_EQ(exchange_->status(), 200);
  EXPECT_EQ(exchange_->type(), "application/x-ndjson");
  EXPECT_EQ(exchange_->header("X-Accel-Buffering"), "no");
  EXPECT_EQ(exchange_->ended(), 1);
  const std::vector<json::object> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].at("model"), "tiny:latest");
  EXPECT_EQ(lines[0].at("response"), "Hel");
  EXPECT_EQ(lines[0].at("done"), false);
  EXPECT_EQ(lines[1].at("response"), "lo");
  EXPECT_EQ(lines[2].at("response"), "");
  EXPECT_EQ(lines[2].at("done"), true);
  EXPECT_EQ(lines[2].at("done_reason"), "stop");
  EXPECT_FALSE(lines[2].contains("context"));
}

TEST_F(OllamaAnswerTest, MetricsAreWholeNanosecondsAndAlwaysThere) {
  options_.stream = false;
  options_.load_s = 1.5;
  Tell({Token(5, "x")}, EndOf(FinishReason::kLength, 40, 30, 1));
  const json::object reply = exchange_->json().as_object();
  EXPECT_EQ(reply.at("done_reason"), "length");
  EXPECT_EQ(reply.at("load_duration"), 1500000000);
  EXPECT_EQ(reply.at("prompt_eval_count"), 40);  // cached ones too
  EXPECT_EQ(reply.at("prompt_cached_count"), 30);
  EXPECT_EQ(reply.at("prompt_eval_duration"), 250000000);
  EXPECT_EQ(reply.at("eval_count"), 1);
  EXPECT_EQ(reply.at("eval_duration"), 500000000);
  EXPECT_TRUE(reply.at("total_duration").is_int64());
}

// Clients divide counts by durations.
TEST_F(OllamaAnswerTest, DurationsOfSomethingAreNeverZero) {
  options_.stream = false;
  ChoiceEnd end = EndOf(FinishReason::kStop, 3, 0, 1);
  end.stats.prefill_s = end.stats.decode_s = 0;
  Tell({Token(5, "x")}, end);
  const json::object reply = exchange_->json().as_object();
  EXPECT_EQ(reply.at("eval_duration"), 1);
  EXPECT_EQ(reply.at("prompt_eval_duration"), 1);
}

TEST_F(OllamaAnswerTest, MetricsOfNothingAreZeroesAndStillThere) {
  const json::object reply = OllamaLoadReply(true, "m", "load", 0);
  EXPECT_EQ(reply.at("done_reason"), "load");
  EXPECT_EQ(reply.at("message").at("content"), "");
  for (const char* key : {"load_duration", "prompt_eval_count", "prompt_eval_duration",
                          "eval_count", "eval_duration"}) {
    EXPECT_EQ(reply.at(key), 0) << key;
  }
}

TEST_F(OllamaAnswerTest, ContextIsThePromptAndTheAnswer) {
  options_.context = true;
  options_.prompt = {1, 2};
  Tell({Token(5, "a"), Token(6, "b"), Token(-1, "rest")}, EndOf(FinishReason::kStop, 2, 0, 2));
  EXPECT_EQ(Lines().back().at("context"), (json::array{1, 2, 5, 6}));
}

TEST_F(OllamaAnswerTest, ThoughtsAndCallsHaveTheirOwnFields) {
  options_.chat = true;
  ExpectMarks();
  Tell({Token(1, "<think>hm"), Token(2, "</think>"), Token(3, "Let me see.\n"),
        Token(4, "<tool_call>\n{\"name\": \"time\", \"arguments\": {\"zone\": "),
        Token(5, "\"UTC\"}}\n</tool_call>")},
       EndOf(FinishReason::kStop, 2, 0, 5));
  std::string thinking, content;
  std::vector<json::object> calls;
  for (const json::object& line : Lines()) {
    const json::object& message = line.at("message").as_object();
    EXPECT_EQ(message.at("role"), "assistant");
    content += std::string(message.at("content").as_string());
    if (message.contains("thinking")) thinking += std::string(message.at("thinking").as_string());
    if (!message.contains("tool_calls")) continue;
    EXPECT_EQ(line.at("done"), false);  // clients look for them before the last line
    for (const json::value& call : message.at("tool_calls").as_array()) {
      calls.push_back(call.as_object());
    }
  }
  EXPECT_EQ(thinking, "hm");
  EXPECT_EQ(content.substr(0, 11), "Let me see.");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].at("function").at("name"), "time");
  EXPECT_EQ(calls[0].at("function").at("arguments"), (json::object{{"zone", "UTC"}}));
}

TEST_F(OllamaAnswerTest, CallsWithoutAnObjectBecomeText) {
  options_.chat = true;
  options_.stream = false;
  ExpectMarks();
  Tell({Token(4, "<tool_call>\n{\"name\": \"time\", \"arguments\": {\"zone\": ")},
       EndOf(FinishReason::kLength, 2, 0, 1));
  const json::object message = exchange_->json().at("message").as_object();
  EXPECT_FALSE(message.contains("tool_calls"));
  EXPECT_NE(std::string(message.at("content").as_string()).find("zone"), std::string::npos);
}

TEST_F(OllamaAnswerTest, WithoutAStreamAllIsInOneObject) {
  options_.chat = true;
  options_.stream = false;
  ExpectMarks();
  Tell({Token(1, "<think>a"), Token(2, "b</think>c"), Token(3, "d"),
        Token(4, "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>")},
       EndOf(FinishReason::kStop, 2, 0, 4));
  EXPECT_EQ(exchange_->type(), "application/json");
  const json::object message = exchange_->json().at("message").as_object();
  EXPECT_EQ(message.at("thinking"), "ab");
  EXPECT_EQ(message.at("content"), "cd");
  EXPECT_EQ(message.at("tool_calls").as_array().size(), 1u);
}

TEST_F(OllamaAnswerTest, LogprobsTravelWithTheirTextAndNoneIsLost) {
  options_.logprobs = true;
  TokenDelta half = Token(5, "");
  half.piece = "\xC3";
  half.logprob = -std::numeric_limits<float>::infinity();
  TokenDelta rest = Token(6, "\xC3\xA9");
  rest.piece = "\xA9";
  rest.logprob = -0.5f;
  rest.top = {{9, -0.25f}};
  Tell({half, rest, Token(7, "")}, EndOf(FinishReason::kStop, 2, 0, 3));
  const std::vector<json::object> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  const json::array& first = lines[0].at("logprobs").as_array();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].at("bytes"), (json::array{0xC3}));
  EXPECT_EQ(first[0].at("logprob"), -9999.0);
  EXPECT_EQ(first[1].at("logprob"), -0.5);
  EXPECT_EQ(first[1].at("top_logprobs").at(0).at("token"), "<9>");
  EXPECT_EQ(lines[1].at("logprobs").as_array().size(), 1u);
}

TEST_F(OllamaAnswerTest, SaysWhatItIgnored) {
  options_.ignored = {"temp", "b\xC3\xA4r\n"};
  options_.notes = {"options.num_ctx: 9 asked for, 8 served"};
  options_.truncated = true;
  Tell({Token(5, "x")}, EndOf(FinishReason::kStop, 2, 0, 1));
  const std::string header = exchange_->header("X-Ignored-Options");
  EXPECT_EQ(header.substr(0, 6), "temp, ");
  for (const char c : header) EXPECT_TRUE(c >= ' ' && c <= '~') << header;
  const json::object last = Lines().back();
  EXPECT_EQ(last.at("warnings").as_array().size(), 3u);
  EXPECT_EQ(last.at("warnings").at(0), "options.temp: unknown, ignored");
  EXPECT_EQ(last.at("truncated"), true);
}

TEST_F(OllamaAnswerTest, ErrorsBeforeTheFirstTextHaveAStatus) {
  OllamaAnswer(exchange_, options_).OnError(Status(StatusCode::kBusy, "full"));
  EXPECT_EQ(exchange_->status(), 503);
  EXPECT_EQ(exchange_->header("Retry-After"), "1");
  EXPECT_EQ(exchange_->json().at("error"), "full");
}

TEST_F(OllamaAnswerTest, LaterErrorsAreALine) {
  OllamaAnswer answer(exchange_, options_);
  answer.OnToken(Token(5, "x"));
  answer.OnError(Status(StatusCode::kOutOfMemory, "no memory"));
  EXPECT_EQ(exchange_->status(), 200);
  EXPECT_EQ(exchange_->ended(), 1);
  EXPECT_EQ(Lines().back().at("error"), "no memory");
}

}  // namespace
}  // namespace sluice
