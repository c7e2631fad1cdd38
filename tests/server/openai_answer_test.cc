#include <boost/json/serialize.hpp>

#include "src/server/openai_chat.h"
#include "src/server/openai_completions.h"
#include "tests/server/fake_exchange.h"

namespace sluice {
namespace {

namespace json = boost::json;

AnswerOptions Options() {
  AnswerOptions options;
  options.id = "id-1";
  options.model = "m";
  options.fingerprint = "fp";
  options.created = 5;
  options.prompts = {{1, 2, 3}};
  options.piece = [](int32_t id) {
    return id == 7 ? std::string("\xC3") : "t" + std::to_string(id);
  };
  return options;
}

TokenDelta Token(std::string text, int32_t id = 10, size_t choice = 0) {
  TokenDelta token;
  token.choice = choice;
  token.id = id;
  token.piece = text;
  token.text = std::move(text);
  return token;
}

ChoiceEnd Ending(FinishReason reason = FinishReason::kStop, size_t choice = 0) {
  ChoiceEnd end;
  end.choice = choice;
  end.reason = reason;
  end.stats.prompt_tokens = 3;
  end.stats.cached_tokens = 1;
  end.stats.generated_tokens = 2;
  end.stats.decode_passes = 1;
  end.stats.prefill_s = 0.5;
  end.stats.decode_s = 0.25;
  return end;
}

std::string At(const json::value& value, const char* pointer) {
  boost::system::error_code error;
  const json::value* found = value.find_pointer(pointer, error);
  return found == nullptr ? "absent" : json::serialize(*found);
}

TEST(OpenAiCompletionAnswer, Whole) {
  auto exchange = std::make_shared<FakeExchange>();
  CompletionAnswer answer(Options(), exchange);
  answer.OnToken(Token(" Paris"));
  answer.OnToken(Token("."));
  EXPECT_FALSE(exchange->responded);
  answer.OnEnd(Ending());
  const json::value body = exchange->Body();
  EXPECT_EQ(At(body, "/object"), "\"text_completion\"");
  EXPECT_EQ(At(body, "/choices/0/text"), "\" Paris.\"");
  EXPECT_EQ(At(body, "/choices/0/finish_reason"), "\"stop\"");
  EXPECT_EQ(At(body, "/choices/0/logprobs"), "null");
  EXPECT_EQ(At(body, "/usage/prompt_tokens"), "3");
  EXPECT_EQ(At(body, "/usage/completion_tokens"), "2");
  EXPECT_EQ(At(body, "/usage/total_tokens"), "5");
  EXPECT_EQ(At(body, "/usage/prompt_tokens_details/cached_tokens"), "1");
  EXPECT_EQ(At(body, "/timings/cache_n"), "1");
  EXPECT_EQ(At(body, "/timings/prompt_n"), "2");
  EXPECT_EQ(body.at_pointer("/timings/prompt_ms").to_number<double>(), 500);
  EXPECT_EQ(body.at_pointer("/timings/prompt_per_second").to_number<double>(), 4);
  EXPECT_EQ(body.at_pointer("/timings/predicted_per_second").to_number<double>(), 4);
}

TEST(OpenAiCompletionAnswer, SeveralPromptsAndChoices) {
  AnswerOptions options = Options();
  options.n = 2;
  options.prompts = {{1}, {1, 2}};
  options.echo = {"one", "two"};
  auto exchange = std::make_shared<FakeExchange>();
  CompletionAnswer answer(options, exchange);
  for (const size_t i : {size_t{3}, size_t{0}, size_t{2}, size_t{1}}) {
    answer.OnToken(Token(std::to_string(i), 10, i));
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(exchange->responded);
    answer.OnEnd(Ending(FinishReason::kLength, i));
  }
  const json::value body = exchange->Body();
  EXPECT_EQ(At(body, "/choices/1/text"), "\"one1\"");
  EXPECT_EQ(At(body, "/choices/3/text"), "\"two3\"");
  EXPECT_EQ(At(body, "/choices/3/index"), "3");
  EXPECT_EQ(At(body, "/choices/3/finish_reason"), "\"length\"");
  EXPECT_EQ(At(body, "/usage/prompt_tokens"), "3");  // each prompt once
  EXPECT_EQ(At(body, "/usage/completion_tokens"), "4");
}

TEST(OpenAiCompletionAnswer, StreamIsOneEventForEachTokenThenTheEnd) {
  AnswerOptions options = Options();
  options.stream = true;
  options.include_usage = true;
  auto exchange = std::make_shared<FakeExchange>();
  CompletionAnswer answer(options, exchange);
  EXPECT_FALSE(exchange->streaming) << "nothing leaves before the first token";
  answer.OnToken(Token("a"));
  answer.OnToken(Token(""));  // held back: no chunk
  answer.OnToken(Token("b"));
  answer.OnToken(Token("rest", -1));
  answer.OnEnd(Ending(FinishReason::kLength));
  EXPECT_TRUE(exchange->ended);
  EXPECT_EQ(exchange->answer.content_type, "text/event-stream");
  const auto events = exchange->Events();
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(At(events[0], "/choices/0/text"), "\"a\"");
  EXPECT_EQ(At(events[0], "/choices/0/finish_reason"), "null");
  EXPECT_EQ(At(events[0], "/usage"), "null");
  EXPECT_EQ(At(events[1], "/choices/0/text"), "\"b\"");
  EXPECT_EQ(At(events[2], "/choices/0/text"), "\"rest\"");
  EXPECT_EQ(At(events[3], "/choices/0/finish_reason"), "\"length\"");
  EXPECT_EQ(At(events[4], "/choices"), "[]");
  EXPECT_EQ(At(events[4], "/usage/completion_tokens"), "3");
  EXPECT_EQ(events[5], json::value("[DONE]"));
}

TEST(OpenAiCompletionAnswer, UsageOnlyWhereAskedFor) {
  AnswerOptions options = Options();
  options.stream = true;
  auto plain = std::make_shared<FakeExchange>();
  CompletionAnswer first(options, plain);
  first.OnToken(Token("a"));
  first.OnEnd(Ending());
  EXPECT_EQ(At(plain->Events()[0], "/usage"), "absent");
  EXPECT_EQ(plain->Events().size(), 3u);
  EXPECT_EQ(At(plain->Events()[1], "/timings/cache_n"), "1");

  options.continuous_usage = true;
  auto all = std::make_shared<FakeExchange>();
  CompletionAnswer second(options, all);
  second.OnToken(Token("a"));
  second.OnToken(Token("b"));
  EXPECT_EQ(At(all->Events()[1], "/usage/completion_tokens"), "2");
  EXPECT_EQ(At(all->Events()[1], "/usage/total_tokens"), "5");
}

TEST(OpenAiCompletionAnswer, LogprobsOfHeldBackTokensAreNotLost) {
  AnswerOptions options = Options();
  options.stream = true;
  options.logprobs = 2;
  auto exchange = std::make_shared<FakeExchange>();
  CompletionAnswer answer(options, exchange);
  TokenDelta token = Token("\u00E9");
  token.piece = "\xC3";  // half a character
  token.text = "";
  token.logprob = -0.5f;
  token.top = {{7, -0.5f}, {8, -1e30f * 1e30f}};
  answer.OnToken(token);
  answer.OnToken(Token("ab"));
  answer.OnToken(Token("c"));
  const auto events = exchange->Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(At(events[0], "/choices/0/text"), "\"\"");
  EXPECT_EQ(At(events[0], "/choices/0/logprobs/tokens"), "[\"\uFFFD\"]");
  EXPECT_EQ(At(events[0], "/choices/0/logprobs/token_logprobs/0"), "-5E-1");
  EXPECT_EQ(At(events[0], "/choices/0/logprobs/top_logprobs/0/t8"), "-9.999E3");
  EXPECT_EQ(At(events[1], "/choices/0/logprobs/text_offset"), "[0]");
  EXPECT_EQ(At(events[2], "/choices/0/logprobs/text_offset"), "[2]");
}

TEST(OpenAiCompletionAnswer, EchoedLogprobsCountTheEndTokenThatWasDrawn) {
  AnswerOptions options = Options();
  options.logprobs = 2;
  options.prompts = {{1, 7, 8}};
  options.echo = {"xy"};
  options.echo_offsets = {{0, 0, 1}};
  auto exchange = std::make_shared<FakeExchange>();
  CompletionAnswer answer(options, exchange);
  PromptLogprobs prompt({1, 7, 8}, 2);
  prompt.Score(1, std::vector<float>{0, 0, 0, 0, 0, 0, 0, 5, 5});
  prompt.Score(2, std::vector<float>{0, 0, 0, 0, 0, 0, 0, 5, 5});
  answer.OnPrompt(0, prompt);
  ChoiceEnd end = Ending();
  end.end_token = Token("</s>", 2);
  end.end_token->text = "";
  answer.OnEnd(end);
  const json::value body = exchange->Body();
  const json::value& logprobs = body.at_pointer("/choices/0/logprobs");
  EXPECT_EQ(At(body, "/choices/0/text"), "\"xy\"");
  EXPECT_EQ(At(logprobs, "/tokens"), "[\"t1\",\"\uFFFD\",\"t8\",\"</s>\"]");
  EXPECT_EQ(At(logprobs, "/text_offset"), "[0,0,1,2]");
  EXPECT_EQ(logprobs.at("token_logprobs").as_array().size(), 4u);
  EXPECT_EQ(logprobs.at_pointer("/top_logprobs/1").as_object().size(), 2u);
  EXPECT_EQ(At(body, "/usage/completion_tokens"), "0");
}

TEST(OpenAiChatAnswer, StreamBeginsWithRoleAndContentTogether) {
  AnswerOptions options = Options();
  options.stream = true;
  auto exchange = std::make_shared<FakeExchange>();
  ChatAnswer answer(options, exchange);
  answer.OnToken(Token(""));
  EXPECT_FALSE(exchange->streaming);
  answer.OnToken(Token("Hi"));
  answer.OnToken(Token("!"));
  answer.OnEnd(Ending());
  const auto events = exchange->Events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(At(events[0], "/choices/0/delta"), R"({"role":"assistant","content":"Hi"})");
  EXPECT_EQ(At(events[1], "/choices/0/delta"), R"({"content":"!"})");
  EXPECT_EQ(At(events[2], "/choices/0/delta"), "{}");
  EXPECT_EQ(At(events[2], "/choices/0/finish_reason"), "\"stop\"");
  for (const char* key : {"/id", "/created", "/model", "/object", "/system_fingerprint"}) {
    EXPECT_EQ(At(events[0], key), At(events[2], key)) << key;
    EXPECT_NE(At(events[0], key), "absent") << key;
  }
}

TEST(OpenAiChatAnswer, NothingButTheEnd) {
  AnswerOptions options = Options();
  options.stream = true;
  auto exchange = std::make_shared<FakeExchange>();
  ChatAnswer answer(options, exchange);
  answer.OnEnd(Ending());
  const auto events = exchange->Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(At(events[0], "/choices/0/delta"), R"({"role":"assistant","content":""})");
}

AnswerOptions WithTools() {
  AnswerOptions options = Options();
  options.output.template_source = "{% if tools %}<tool_call>{% endif %}<think>";
  options.output.tools = true;
  return options;
}

constexpr const char* kCallTokens[] = {
    "<think>",          "hm",       "</think>", "Look.\n",     "<tool_call>", "{\"name\": \"f\", ",
    "\"arguments\": {", "\"a\": 1", "}}",       "</tool_call>"};

TEST(OpenAiChatAnswer, StreamsCallsInFragments) {
  AnswerOptions options = WithTools();
  options.stream = true;
  auto exchange = std::make_shared<FakeExchange>();
  ChatAnswer answer(options, exchange);
  for (const char* token : kCallTokens) answer.OnToken(Token(token));
  answer.OnEnd(Ending());
  const auto events = exchange->Events();
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(At(events[0], "/choices/0/delta"), R"({"role":"assistant","reasoning_content":"hm"})");
  EXPECT_EQ(At(events[1], "/choices/0/delta"), R"({"content":"Look."})");
  EXPECT_EQ(At(events[2], "/choices/0/delta/tool_calls/0/type"), "\"function\"");
  EXPECT_EQ(At(events[2], "/choices/0/delta/tool_calls/0/function"),
            R"({"name":"f","arguments":"{"})");
  EXPECT_EQ(At(events[3], "/choices/0/delta/tool_calls"),
            R"([{"index":0,"function":{"arguments":"\"a\": 1"}}])");
  EXPECT_EQ(At(events[4], "/choices/0/delta/tool_calls"),
            R"([{"index":0,"function":{"arguments":"}"}}])");
  EXPECT_EQ(At(events[5], "/choices/0/finish_reason"), "\"tool_calls\"");
}

TEST(OpenAiChatAnswer, WholeAnswerWithACall) {
  auto exchange = std::make_shared<FakeExchange>();
  ChatAnswer answer(WithTools(), exchange);
  for (const char* token : kCallTokens) answer.OnToken(Token(token));
  answer.OnEnd(Ending());
  const json::value body = exchange->Body();
  const json::value& message = body.at_pointer("/choices/0/message");
  EXPECT_EQ(At(message, "/content"), "\"Look.\"");
  EXPECT_EQ(At(message, "/reasoning_content"), "\"hm\"");
  EXPECT_EQ(At(message, "/tool_calls/0/function/arguments"), R"("{\"a\": 1}")");
  EXPECT_EQ(At(body, "/choices/0/finish_reason"), "\"tool_calls\"");
  EXPECT_EQ(At(body, "/usage/completion_tokens_details/reasoning_tokens"), "2");
}

TEST(OpenAiChatAnswer, OneCallWhereTheyMustNotBeParallel) {
  AnswerOptions options = WithTools();
  options.parallel_tool_calls = false;
  auto exchange = std::make_shared<FakeExchange>();
  ChatAnswer answer(options, exchange);
  for (int i = 0; i < 2; ++i) {
    answer.OnToken(Token("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"));
  }
  answer.OnEnd(Ending());
  const json::value body = exchange->Body();
  EXPECT_EQ(body.at_pointer("/choices/0/message/tool_calls").as_array().size(), 1u);
  EXPECT_EQ(At(body, "/choices/0/message/content"), "null");
}

TEST(OpenAiChatAnswer, Logprobs) {
  AnswerOptions options = Options();
  options.logprobs = 1;
  auto exchange = std::make_shared<FakeExchange>();
  ChatAnswer answer(options, exchange);
  TokenDelta token = Token("A");
  token.logprob = -1;
  token.top = {{7, -0.25f}};
  answer.OnToken(token);
  answer.OnEnd(Ending());
  const json::value body = exchange->Body();
  const json::value& entry = body.at_pointer("/choices/0/logprobs/content/0");
  EXPECT_EQ(At(entry, "/token"), "\"A\"");
  EXPECT_EQ(At(entry, "/bytes"), "[65]");
  EXPECT_EQ(At(entry, "/top_logprobs/0/bytes"), "[195]");
  EXPECT_EQ(At(entry, "/top_logprobs/0/token"), "\"\uFFFD\"");
}

TEST(OpenAiChatAnswer, TheStopStringIfItIsAskedFor) {
  AnswerOptions options = Options();
  options.include_stop = true;
  auto exchange = std::make_shared<FakeExchange>();
  ChatAnswer answer(options, exchange);
  answer.OnToken(Token("a"));
  ChoiceEnd end = Ending();
  end.stop_text = "END";
  answer.OnEnd(end);
  EXPECT_EQ(At(exchange->Body(), "/choices/0/message/content"), "\"aEND\"");
}

TEST(OpenAiChatAnswer, ErrorsBeforeAndAfterTheFirstToken) {
  AnswerOptions options = Options();
  options.stream = true;
  auto early = std::make_shared<FakeExchange>();
  ChatAnswer(options, early).OnError(Status(StatusCode::kOutOfMemory, "no memory left"));
  EXPECT_TRUE(early->responded);
  EXPECT_GE(early->answer.status, 500);

  auto late = std::make_shared<FakeExchange>();
  ChatAnswer answer(options, late);
  answer.OnToken(Token("a"));
  answer.OnError(Status(StatusCode::kOutOfMemory, "no memory left"));
  EXPECT_TRUE(late->ended);
  const auto events = late->Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(At(events[1], "/error/message"), "\"no memory left\"");
}

TEST(OpenAiError, CodesAndRetryAfter) {
  const HttpResponse busy = OpenAiError(Status(StatusCode::kBusy, "full"), "", 7);
  EXPECT_EQ(busy.status, 429);
  EXPECT_EQ(busy.headers, (HttpHeaders{{"Retry-After", "7"}}));
  const HttpResponse missing = OpenAiError(Status(StatusCode::kNotFound, "no model"), "model");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(At(json::parse(missing.body), "/error/code"), "\"model_not_found\"");
  EXPECT_EQ(At(json::parse(missing.body), "/error/param"), "\"model\"");
  const HttpResponse big = OpenAiError(Status(StatusCode::kTooLong, "5000 of 4096"));
  EXPECT_EQ(big.status, 400);
  EXPECT_EQ(At(json::parse(big.body), "/error/code"), "\"context_length_exceeded\"");
}

}  // namespace
}  // namespace sluice
