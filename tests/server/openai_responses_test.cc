#include "src/server/openai_responses.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "tests/server/fake_exchange.h"

namespace sluice {
namespace {

namespace json = boost::json;

AnswerOptions Options(bool stream) {
  AnswerOptions options;
  options.id = "resp_1";
  options.model = "m";
  options.stream = stream;
  options.prompts = {{1, 2, 3}};
  options.output.template_source = "{% if tools %}<tool_call>{% endif %}<think>";
  options.output.tools = true;
  return options;
}

std::shared_ptr<FakeExchange> Tell(bool stream, std::initializer_list<const char*> tokens,
                                   FinishReason reason = FinishReason::kStop) {
  auto exchange = std::make_shared<FakeExchange>();
  ResponsesAnswer answer(Options(stream),
                         json::parse(R"({"instructions": "Be brief.", "top_p": 0.5})").as_object(),
                         exchange);
  for (const char* text : tokens) {
    TokenDelta token;
    token.id = 5;
    token.text = text;
    answer.OnToken(token);
  }
  ChoiceEnd end;
  end.reason = reason;
  answer.OnEnd(end);
  return exchange;
}

TEST(OpenAiResponses, StreamNamesEveryStep) {
  const auto exchange = Tell(true, {"Hel", "lo"});
  const std::vector<json::value> events = exchange->Events();
  std::vector<std::string> types;
  for (size_t i = 0; i < events.size(); ++i) {
    types.emplace_back(events[i].at("type").as_string());
    EXPECT_EQ(events[i].at("sequence_number").as_int64(), static_cast<int64_t>(i));
    EXPECT_TRUE(exchange->writes[i].starts_with("event: " + types.back() + "\ndata: "));
  }
  EXPECT_EQ(types,
            (std::vector<std::string>{"response.created", "response.in_progress",
                                      "response.output_item.added", "response.content_part.added",
                                      "response.output_text.delta", "response.output_text.delta",
                                      "response.output_text.done", "response.content_part.done",
                                      "response.output_item.done", "response.completed"}));
  EXPECT_EQ(events[4].at("delta").as_string(), "Hel");
  EXPECT_EQ(events[6].at("text").as_string(), "Hello");
  EXPECT_EQ(events[4].at("item_id"), events[2].at_pointer("/item/id"));
  const json::value& response = events.back().at("response");
  EXPECT_EQ(response.at_pointer("/output/0/content/0/text").as_string(), "Hello");
  EXPECT_EQ(json::serialize(response.at_pointer("/usage/input_tokens")), "3");
  EXPECT_EQ(json::serialize(response.at_pointer("/usage/output_tokens")), "2");
  EXPECT_EQ(response.at("instructions").as_string(), "Be brief.");
  EXPECT_EQ(response.at("status").as_string(), "completed");
}

TEST(OpenAiResponses, WholeAnswerWithReasoningAndACall) {
  const json::value body =
      Tell(false, {"<think>hm</think>Look.\n", "<tool_call>{\"name\": \"f\", \"arguments\": {}}",
                   "</tool_call>"})
          ->Body();
  const json::array& output = body.at("output").as_array();
  ASSERT_EQ(output.size(), 3u);
  EXPECT_EQ(output[0].at("type").as_string(), "reasoning");
  EXPECT_EQ(output[0].at_pointer("/content/0/text").as_string(), "hm");
  EXPECT_EQ(output[1].at("type").as_string(), "message");
  EXPECT_EQ(output[2].at("type").as_string(), "function_call");
  EXPECT_EQ(output[2].at("name").as_string(), "f");
  EXPECT_EQ(output[2].at("arguments").as_string(), "{}");
  EXPECT_FALSE(output[2].at("call_id").as_string().empty());
}

TEST(OpenAiResponses, SaysThatItWasCut) {
  const json::value body = Tell(false, {"Hel"}, FinishReason::kLength)->Body();
  EXPECT_EQ(body.at("status").as_string(), "incomplete");
  EXPECT_EQ(body.at_pointer("/incomplete_details/reason").as_string(), "max_output_tokens");
}

TEST(OpenAiResponses, AnEmptyAnswerIsAnEmptyMessage) {
  const json::value body = Tell(false, {})->Body();
  EXPECT_EQ(body.at_pointer("/output/0/content/0/text").as_string(), "");
}

}  // namespace
}  // namespace sluice
