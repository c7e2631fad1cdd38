#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <thread>

#include "src/server/openai_chat.h"
#include "src/server/openai_completions.h"
#include "src/server/openai_models.h"
#include "src/server/openai_responses.h"
#include "tests/server/fake_exchange.h"
#include "tests/server/tiny_served_model.h"

namespace sluice {
namespace {

namespace json = boost::json;

using Parse = Result<OpenAiRequest> (*)(const ServedModel&, const json::object&, std::string*);

class OpenAiRequestTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = new std::shared_ptr<ServedModel>(LoadTiny()); }
  static void TearDownTestSuite() {
    // The engine's thread must not be the last to let go of its model.
    for (int i = 0; i < 60'000 && model_->use_count() > 1; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    delete model_;
    model_ = nullptr;
  }
  static const std::shared_ptr<ServedModel>& model() { return *model_; }

  static Result<OpenAiRequest> Read(Parse parse, const std::string& body, std::string* param) {
    return parse(*model(), json::parse(body).as_object(), param);
  }
  static OpenAiRequest Completion(const std::string& fields) {
    return Good(ParseCompletion, R"({"prompt": "abc")" + fields + "}");
  }
  static OpenAiRequest Chat(const std::string& fields) {
    return Good(ParseChat, R"({"messages": [{"role": "user", "content": "hi"}])" + fields + "}");
  }
  static OpenAiRequest Good(Parse parse, const std::string& body) {
    std::string param;
    Result<OpenAiRequest> request = Read(parse, body, &param);
    EXPECT_TRUE(request.ok()) << body << ": " << request.status().message();
    return request.ok() ? *std::move(request) : OpenAiRequest();
  }
  // The param and the message.
  static std::string Refusal(Parse parse, const std::string& body) {
    std::string param;
    const Result<OpenAiRequest> request = Read(parse, body, &param);
    if (request.ok()) return "accepted";
    return param + "|" + request.status().message();
  }
  static void ExpectRefusal(Parse parse, const std::string& body, const std::string& param) {
    const std::string refusal = Refusal(parse, body);
    EXPECT_TRUE(refusal.starts_with(param + "|")) << body << ": " << refusal;
  }
  static void ExpectCompletionRefusal(const std::string& fields, const std::string& param) {
    ExpectRefusal(ParseCompletion, R"({"prompt": "abc")" + fields + "}", param);
  }
  static void ExpectChatRefusal(const std::string& fields, const std::string& param) {
    ExpectRefusal(ParseChat, R"({"messages": [{"role": "user", "content": "hi"}])" + fields + "}",
                  param);
  }

 private:
  static std::shared_ptr<ServedModel>* model_;
};

std::shared_ptr<ServedModel>* OpenAiRequestTest::model_ = nullptr;

TEST_F(OpenAiRequestTest, DefaultsAreOpenAis) {
  const OpenAiRequest completion = Completion("");
  const Request& options = completion.call.options;
  EXPECT_EQ(options.sampler.temp, 1);
  EXPECT_EQ(options.sampler.top_p, 1);
  EXPECT_LE(options.sampler.top_k, 0);
  EXPECT_EQ(options.sampler.min_p, 0);
  EXPECT_EQ(options.max_tokens, 16u);
  EXPECT_EQ(options.logprobs, -1);
  EXPECT_EQ(completion.call.n, 1u);
  EXPECT_FALSE(completion.answer.stream);
  EXPECT_TRUE(completion.answer.id.starts_with("cmpl-"));
  const OpenAiRequest chat = Chat("");
  EXPECT_EQ(chat.call.options.max_tokens, SIZE_MAX);
  EXPECT_TRUE(chat.answer.id.starts_with("chatcmpl-"));
}

TEST_F(OpenAiRequestTest, FieldsReachTheCall) {
  const OpenAiRequest request = Completion(
      R"(, "n": 2, "best_of": 2, "seed": 7, "stop": ["x", "y"], "max_tokens": 5, "temperature": 0.5,
         "top_p": 0.25, "top_k": 3, "repetition_penalty": 1.5, "ignore_eos": true, "min_tokens": 2,
         "logprobs": 3, "stream": true, "unknown": {"a": 1}, "cache_prompt": false,
         "stream_options": {"include_usage": true, "continuous_usage_stats": true},
         "logit_bias": {"5": -100})");
  const Request& o = request.call.options;
  EXPECT_EQ(request.call.n, 2u);
  EXPECT_EQ(o.sampler.seed, 7u);
  EXPECT_EQ(o.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(o.max_tokens, 5u);
  EXPECT_EQ(o.sampler.temp, 0.5f);
  EXPECT_EQ(o.sampler.top_p, 0.25f);
  EXPECT_EQ(o.sampler.top_k, 3);
  EXPECT_EQ(o.sampler.repeat_penalty, 1.5f);
  EXPECT_TRUE(o.ignore_eos);
  EXPECT_EQ(o.min_tokens, 2u);
  EXPECT_EQ(o.logprobs, 3);
  EXPECT_FALSE(o.use_cache);
  EXPECT_EQ(o.sampler.logit_bias.size(), 1u);
  EXPECT_TRUE(request.answer.stream && request.answer.include_usage &&
              request.answer.continuous_usage);
}

TEST_F(OpenAiRequestTest, PromptsInFourForms) {
  const auto count = [](const std::string& prompt) {
    return Good(ParseCompletion, "{\"prompt\": " + prompt + "}").call.prompts.size();
  };
  EXPECT_EQ(count("\"abc\""), 1u);
  EXPECT_EQ(count("[\"abc\", \"d\", \"e\"]"), 3u);
  EXPECT_EQ(count("[5, 6, 7]"), 1u);
  EXPECT_EQ(count("[[5, 6], [7]]"), 2u);
  EXPECT_EQ(Good(ParseCompletion, "{\"prompt\": [[5, 6], [7]]}").call.prompts[0],
            (std::vector<int32_t>{5, 6}));
  for (const char* bad : {"[[5], 6]", "[5, 320]", "[-1]", "[1.5]", "[]", "[[]]", "5", "{}", "null",
                          "[\"a\", 5]", "[true]"}) {
    ExpectRefusal(ParseCompletion, std::string("{\"prompt\": ") + bad + "}", "prompt");
  }
}

TEST_F(OpenAiRequestTest, RefusalsNameTheField) {
  ExpectCompletionRefusal(R"(, "n": 0)", "n");
  ExpectCompletionRefusal(R"(, "n": "2")", "n");
  ExpectCompletionRefusal(R"(, "n": 2, "best_of": 4)", "best_of");
  ExpectCompletionRefusal(R"(, "max_tokens": -2)", "max_tokens");
  ExpectCompletionRefusal(R"(, "temperature": "hot")", "temperature");
  ExpectCompletionRefusal(R"(, "suffix": "x")", "suffix");  // it has no tokens for that
  ExpectCompletionRefusal(R"(, "suffix": "x", "echo": true)", "suffix");
  ExpectCompletionRefusal(R"(, "logprobs": true)", "logprobs");
  ExpectCompletionRefusal(R"(, "logprobs": 21)", "logprobs");
  ExpectCompletionRefusal(R"(, "stop": 5)", "stop");
  ExpectCompletionRefusal(
      R"(, "stop": ["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"])", "stop");
  ExpectCompletionRefusal(R"(, "stream": "yes")", "stream");
  ExpectCompletionRefusal(R"(, "stream_options": {"include_usage": 1})", "stream_options");
  ExpectCompletionRefusal(R"(, "prompt_logprobs": 21)", "prompt_logprobs");
  ExpectCompletionRefusal(R"(, "prompt_logprobs": -1)", "prompt_logprobs");
  ExpectCompletionRefusal(R"(, "prompt_logprobs": 1, "stream": true)", "prompt_logprobs");
  ExpectChatRefusal(R"(, "prompt_logprobs": true)", "prompt_logprobs");
  ExpectRefusal(ParseResponses, R"({"input": "x", "prompt_logprobs": 1})", "prompt_logprobs");
  ExpectCompletionRefusal(R"(, "use_beam_search": true)", "use_beam_search");
  ExpectCompletionRefusal(R"(, "stop_token_ids": [5])", "stop_token_ids");
  ExpectCompletionRefusal(R"(, "guided_regex": "(a")", "guided_regex");
  ExpectCompletionRefusal(R"(, "response_format": {"type": "xml"})", "response_format");
  ExpectCompletionRefusal(R"(, "response_format": {"type": "json_schema"})", "response_format");
  ExpectCompletionRefusal(R"(, "response_format": 5)", "response_format");
  ExpectCompletionRefusal(R"(, "structured_outputs": {"regex": 5})", "structured_outputs");
  ExpectCompletionRefusal(R"(, "structured_outputs": {"structural_tag": "{}"})",
                          "structured_outputs");
  ExpectChatRefusal(R"(, "logprobs": 5)", "logprobs");
  ExpectChatRefusal(R"(, "top_logprobs": 5)", "top_logprobs");
  ExpectChatRefusal(R"(, "logprobs": true, "top_logprobs": 21)", "top_logprobs");
  ExpectChatRefusal(R"(, "tools": 5)", "tools");
  ExpectChatRefusal(R"(, "tools": [{"type": "web_search"}])", "tools");
  ExpectChatRefusal(R"(, "tool_choice": "required")", "tool_choice");
  ExpectChatRefusal(R"(, "continue_final_message": true, "add_generation_prompt": true)",
                    "continue_final_message");
  ExpectRefusal(ParseChat, "{}", "messages");
  ExpectRefusal(ParseChat, R"({"messages": []})", "messages");
  ExpectRefusal(ParseChat, R"({"messages": [{"role": "user", "content": 5}]})", "messages");
  EXPECT_EQ(Completion(R"(, "suffix": null, "logprobs": null, "best_of": null)").call.n, 1u);
  EXPECT_EQ(Completion(R"(, "stop_token_ids": [2])").call.n, 1u);  // an end token
}

TEST_F(OpenAiRequestTest, TooLongSaysBothNumbers) {
  std::string prompt;
  for (int i = 0; i < 300; ++i) prompt += "5,";
  std::string param;
  const Result<OpenAiRequest> request =
      Read(ParseCompletion, "{\"prompt\": [" + prompt + "5]}", &param);
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.status().code(), StatusCode::kTooLong);
  // LiteLLM and others know the error by these words.
  EXPECT_TRUE(request.status().message().starts_with("this model's maximum context length is 128"))
      << request.status().message();
  EXPECT_NE(request.status().message().find("301"), std::string::npos);
  EXPECT_EQ(param, "prompt");
  const OpenAiRequest cut =
      Good(ParseCompletion, "{\"truncate_prompt_tokens\": 4, \"prompt\": [" + prompt + "6]}");
  EXPECT_EQ(cut.call.prompts[0], (std::vector<int32_t>{5, 5, 5, 6}));
}

TEST_F(OpenAiRequestTest, GrammarsFromEveryDialect) {
  for (const char* fields :
       {R"(, "response_format": {"type": "json_object"})",
        R"(, "response_format": {"type": "json_object", "schema": {"type": "object"}})",
        R"(, "response_format": {"type": "json_schema", "schema": {"type": "object"}})",
        R"(, "response_format": {"type": "json_schema",
                                 "json_schema": {"name": "x", "schema": {"type": "object"}}})",
        R"(, "guided_json": {"type": "object"})", R"(, "guided_json": "{\"type\": \"object\"}")",
        R"(, "guided_grammar": "root ::= \"a\"")", R"(, "guided_choice": ["yes", "no"])",
        R"(, "structured_outputs": {"json": {"type": "object"}})",
        R"(, "structured_outputs": {"choice": ["a"]})", R"(, "guided_regex": "\\d+")",
        R"(, "structured_outputs": {"regex": "a|b"})", R"(, "grammar": "root ::= [a-z]")",
        R"(, "json_schema": {"type": "object"})"}) {
    EXPECT_NE(Chat(fields).call.grammar, nullptr) << fields;
  }
  EXPECT_EQ(Chat(R"(, "response_format": {"type": "text"}, "grammar": "")").call.grammar, nullptr);
  ExpectChatRefusal(R"(, "grammar": "root ::= (")", "grammar");
  ExpectChatRefusal(R"(, "grammar": "root ::= \"a\"", "response_format": {"type": "json_object"})",
                    "grammar");
}

constexpr char kTool[] =
    R"({"type": "function", "function": {"name": "f", "parameters": {"type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}}})";

TEST_F(OpenAiRequestTest, ToolsAndTheirChoice) {
  const std::string tools = std::string(R"(, "tools": [)") + kTool + "]";
  const OpenAiRequest automatic = Chat(tools);
  EXPECT_TRUE(automatic.answer.output.tools);
  EXPECT_FALSE(automatic.answer.output.only_calls);
  EXPECT_EQ(automatic.call.grammar, nullptr);
  const OpenAiRequest none = Chat(tools + R"(, "tool_choice": "none")");
  EXPECT_FALSE(none.answer.output.tools);
  EXPECT_LT(none.call.prompts[0].size(), automatic.call.prompts[0].size());
  for (const char* choice : {R"("required")", R"({"type": "function", "function": {"name": "f"}})",
                             R"({"type": "function", "name": "f"})"}) {
    const OpenAiRequest forced = Chat(tools + ", \"tool_choice\": " + choice);
    EXPECT_TRUE(forced.answer.output.only_calls) << choice;
    EXPECT_NE(forced.call.grammar, nullptr) << choice;
  }
  ExpectChatRefusal(tools + R"(, "tool_choice": "maybe")", "tool_choice");
  ExpectChatRefusal(tools + R"(, "tool_choice": {"function": {"name": "g"}})", "tool_choice");
  const OpenAiRequest deprecated =
      Chat(R"(, "functions": [{"name": "f"}], "function_call": "auto")");
  EXPECT_TRUE(deprecated.answer.output.tools);
}

TEST_F(OpenAiRequestTest, ForcedCallsHaveTheirDefinitionsAtTheRoot) {
  const json::object body =
      json::parse(std::string(R"({"tool_choice": "required", "tools": [)") + kTool + "]}")
          .as_object();
  Fields fields(body);
  const json::value schema = ForcedCallSchema(ReadTools(&fields));
  EXPECT_EQ(json::serialize(schema.at_pointer("/$defs/A/type")), "\"string\"");
  EXPECT_EQ(json::serialize(schema.at_pointer("/type")), "\"array\"");
  EXPECT_EQ(json::serialize(schema.at_pointer("/items/properties/name/const")), "\"f\"");
}

TEST_F(OpenAiRequestTest, ResponsesBecomeChats) {
  std::string param;
  const auto chat = ResponsesToChat(json::parse(R"({"model": "m", "instructions": "Be brief.",
      "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "5"}],
      "max_output_tokens": 9, "reasoning": {"effort": "low"},
      "text": {"format": {"type": "json_object"}}})")
                                        .as_object(),
                                    &param);
  ASSERT_TRUE(chat.ok()) << chat.status().message();
  const json::array& messages = chat->at("messages").as_array();
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(json::serialize(messages[0]), R"({"role":"system","content":"Be brief."})");
  EXPECT_EQ(messages[2].at("tool_calls").as_array().size(), 2u);
  EXPECT_EQ(json::serialize(messages[3]), R"({"role":"tool","tool_call_id":"c1","content":"5"})");
  EXPECT_EQ(chat->at("max_completion_tokens").as_int64(), 9);
  EXPECT_EQ(chat->at("reasoning_effort").as_string(), "low");
  EXPECT_TRUE(chat->contains("response_format"));
  ExpectRefusal(ParseResponses, R"({"input": "x", "previous_response_id": "r"})",
                "previous_response_id");
  ExpectRefusal(ParseResponses, "{}", "input");
  ExpectRefusal(ParseResponses, R"({"input": "x", "max_output_tokens": "9"})", "max_output_tokens");
}

TEST_F(OpenAiRequestTest, BaseModelsDoNotChat) {
  const std::shared_ptr<ServedModel> base = LoadTiny("");
  std::string param;
  const Result<OpenAiRequest> request = ParseChat(
      *base, json::parse(R"({"messages": [{"role": "user", "content": "x"}]})").as_object(),
      &param);
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(OpenAiError(request.status()).status, 400);
}

TEST_F(OpenAiRequestTest, TokensInBothDialects) {
  std::string param;
  const auto tokens = [&](const char* body) {
    const auto answer = Tokenize(*model(), json::parse(body).as_object(), &param);
    return answer.ok() ? json::serialize(*answer) : "error " + param;
  };
  EXPECT_EQ(tokens(R"({"content": "<s>"})"), R"({"tokens":[1]})");
  EXPECT_EQ(tokens(R"({"content": "<s>", "with_pieces": true})"),
            R"({"tokens":[{"id":1,"piece":"<s>"}]})");
  const std::string vllm = tokens(R"({"prompt": "<s>", "add_special_tokens": false,
                                      "return_token_strs": true})");
  EXPECT_EQ(vllm, R"({"count":1,"max_model_len":128,"tokens":[1],"token_strs":["<s>"]})");
  EXPECT_NE(tokens(R"({"messages": [{"role": "user", "content": "x"}]})").find("\"count\""),
            std::string::npos);
  EXPECT_EQ(tokens("{}"), "error prompt");
  EXPECT_EQ(tokens(R"({"prompt": 5})"), "error prompt");
  const auto text =
      Detokenize(*model(), json::parse(R"({"tokens": [100, 101]})").as_object(), &param);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(json::serialize(*text), R"({"content":"ab","prompt":"ab"})");
  EXPECT_FALSE(Detokenize(*model(), json::parse(R"({"tokens": [320]})").as_object(), &param).ok());
}

// From a request to its whole answer, and the same tokens as a stream.
TEST_F(OpenAiRequestTest, AnswersAreTheSameWholeAndStreamed) {
  std::string text[2];
  for (const bool stream : {false, true}) {
    OpenAiRequest request =
        Completion(std::string(R"(, "max_tokens": 12, "n": 2, "seed": 3, "ignore_eos": true)") +
                   (stream ? R"(, "stream": true)" : ""));
    auto exchange = std::make_shared<FakeExchange>();
    auto answer = std::make_shared<CompletionAnswer>(request.answer, exchange);
    ASSERT_TRUE(Complete(model(), request.call, exchange, answer).ok());
    ASSERT_TRUE(exchange->Wait());
    if (!stream) {
      const json::value body = exchange->Body();
      EXPECT_EQ(json::serialize(body.at_pointer("/usage/completion_tokens")), "24");
      for (int i = 0; i < 2; ++i) {
        text[i] = body.at("choices").at(i).at("text").as_string();
      }
      continue;
    }
    std::string streamed[2];
    for (const json::value& event : exchange->Events()) {
      if (event.is_string()) continue;
      const json::value& choice = event.at_pointer("/choices/0");
      streamed[choice.at("index").as_int64()] += std::string(choice.at("text").as_string());
    }
    EXPECT_EQ(streamed[0], text[0]);
    EXPECT_EQ(streamed[1], text[1]);
    EXPECT_NE(text[0], text[1]);
  }
}

TEST_F(OpenAiRequestTest, PromptLogprobsHaveALimit) {
  std::string prompts = "[[5]";
  for (int i = 0; i < 200; ++i) {
    prompts += ", [5";
    for (int k = 0; k < 100; ++k) prompts += ",6";
    prompts += "]";
  }
  const std::string body = "{\"prompt\": " + prompts + "]";
  ExpectRefusal(ParseCompletion, body + R"(, "prompt_logprobs": 20})", "prompt_logprobs");
  ExpectRefusal(ParseCompletion, body + R"(, "echo": true, "logprobs": 20})", "logprobs");
  EXPECT_EQ(Good(ParseCompletion, body + R"(, "echo": true, "logprobs": 5})")
                .call.options.prompt_logprobs,
            5);
  EXPECT_EQ(Completion(R"(, "logprobs": 5)").call.options.prompt_logprobs, -1);
  EXPECT_EQ(Completion(R"(, "logprobs": 2, "echo": true, "prompt_logprobs": 4)")
                .call.options.prompt_logprobs,
            4);
}

// What evaluation harnesses do: the log-likelihood of a text's end, read off its echo.
TEST_F(OpenAiRequestTest, EchoedLogprobsAreThoseOfThePrompt) {
  const auto run = [&](const std::string& fields) {
    OpenAiRequest request = Good(ParseCompletion, "{\"prompt\": \"abc de\", " + fields + "}");
    auto exchange = std::make_shared<FakeExchange>();
    auto answer = std::make_shared<CompletionAnswer>(request.answer, exchange);
    EXPECT_TRUE(Complete(model(), request.call, exchange, answer).ok());
    EXPECT_TRUE(exchange->Wait());
    return std::make_pair(request, exchange);
  };
  const auto [request, exchange] =
      run(R"("echo": true, "logprobs": 1, "max_tokens": 0, "prompt_logprobs": 2)");
  const size_t tokens = request.call.prompts[0].size();
  const json::value body = exchange->Body();
  const json::value& choice = body.at_pointer("/choices/0");
  EXPECT_EQ(choice.at("text").as_string(), "abc de");
  EXPECT_EQ(choice.at("finish_reason").as_string(), "length");
  const json::array& values = choice.at_pointer("/logprobs/token_logprobs").as_array();
  const json::array& vllm = choice.at("prompt_logprobs").as_array();
  ASSERT_EQ(values.size(), tokens);
  ASSERT_EQ(vllm.size(), tokens);
  for (const char* list : {"tokens", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(choice.at("logprobs").at(list).as_array().size(), tokens) << list;
  }
  EXPECT_TRUE(values[0].is_null());
  EXPECT_TRUE(choice.at_pointer("/logprobs/top_logprobs/0").is_null());
  EXPECT_TRUE(vllm[0].is_null());
  for (size_t i = 1; i < tokens; ++i) {
    const int32_t id = request.call.prompts[0][i];
    const json::object& entry = vllm[i].as_object();
    const json::value& own = entry.at(std::to_string(id));
    EXPECT_EQ(own.at("logprob"), values[i]);
    EXPECT_LT(values[i].as_double(), 0);
    EXPECT_GE(entry.size(), 2u);
    EXPECT_EQ(entry.size() == 2, own.at("rank").to_number<int>() <= 2);
    EXPECT_EQ(own.at("decoded_token"), choice.at("logprobs").at("tokens").at(i));
  }
  EXPECT_EQ(json::serialize(body.at_pointer("/usage/completion_tokens")), "0");

  // With a token more, and as a stream: the same numbers first.
  const auto [longer_request, longer] =
      run(R"("echo": true, "logprobs": 1, "max_tokens": 1, "temperature": 0, "ignore_eos": true)");
  const json::value longer_body = longer->Body();
  const json::array& more = longer_body.at_pointer("/choices/0/logprobs/token_logprobs").as_array();
  ASSERT_EQ(more.size(), tokens + 1);
  const auto [stream_request, stream] =
      run(R"("echo": true, "logprobs": 1, "max_tokens": 1, "temperature": 0, "ignore_eos": true,
             "stream": true)");
  json::array streamed;
  for (const json::value& event : stream->Events()) {
    if (event.is_string() || event.at("choices").as_array().empty()) continue;
    const json::value& logprobs = event.at_pointer("/choices/0/logprobs");
    if (!logprobs.is_object()) continue;
    for (const json::value& value : logprobs.at("token_logprobs").as_array()) {
      streamed.push_back(value);
    }
  }
  EXPECT_EQ(streamed, more);
  EXPECT_EQ(json::array(more.begin(), more.end() - 1), values);
}

TEST_F(OpenAiRequestTest, ChatsHavePromptLogprobsToo) {
  OpenAiRequest request = Chat(R"(, "prompt_logprobs": 0, "max_tokens": 1)");
  auto exchange = std::make_shared<FakeExchange>();
  auto answer = std::make_shared<ChatAnswer>(request.answer, exchange);
  ASSERT_TRUE(Complete(model(), request.call, exchange, answer).ok());
  ASSERT_TRUE(exchange->Wait());
  const json::value body = exchange->Body();
  const json::array& list = body.at("prompt_logprobs").as_array();
  ASSERT_EQ(list.size(), request.call.prompts[0].size());
  EXPECT_TRUE(list[0].is_null());
  EXPECT_EQ(list[1].as_object().size(), 1u);
}

TEST_F(OpenAiRequestTest, ASuffixIsFilledInBefore) {
  TinyModel tiny;
  tiny.SetPiece(310, "<|fim_prefix|>");
  tiny.SetPiece(311, "<|fim_suffix|>");
  tiny.SetPiece(312, "<|fim_middle|>");
  const std::shared_ptr<ServedModel> coder = LoadTiny("", tiny);
  std::string param;
  const auto parse = [&](const char* body) {
    return ParseCompletion(*coder, json::parse(body).as_object(), &param);
  };
  const auto request = parse(R"({"prompt": "ab", "suffix": "c"})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  const std::vector<int32_t>& ids = request->call.prompts[0];
  EXPECT_EQ(ids[1], 310);
  EXPECT_EQ(ids.back(), 312);
  EXPECT_NE(std::find(ids.begin(), ids.end(), 311), ids.end());
  EXPECT_FALSE(parse(R"({"prompt": [5, 6], "suffix": "c"})").ok());
  EXPECT_EQ(param, "suffix");
}

TEST_F(OpenAiRequestTest, NothingLeftToDrawIsAnError) {
  OpenAiRequest request = Completion(
      R"(, "grammar": "root ::= \"a\"", "logit_bias": [[259, false], [100, false], [286, false]])");
  auto exchange = std::make_shared<FakeExchange>();
  auto answer = std::make_shared<CompletionAnswer>(request.answer, exchange);
  ASSERT_TRUE(Complete(model(), request.call, exchange, answer).ok());
  ASSERT_TRUE(exchange->Wait());
  EXPECT_EQ(exchange->answer.status, 400) << exchange->answer.body;
  EXPECT_NE(exchange->answer.body.find("logit_bias"), std::string::npos) << exchange->answer.body;
}

// A control token has a text only where it is to be shown.
TEST_F(OpenAiRequestTest, ControlTokensAreShownOnRequest) {
  for (const bool shown : {false, true}) {
    const OpenAiRequest request =
        Completion(std::string(R"(, "max_tokens": 2, "logit_bias": {"1": 1000})") +
                   (shown ? R"(, "skip_special_tokens": false)" : ""));
    auto exchange = std::make_shared<FakeExchange>();
    auto answer = std::make_shared<CompletionAnswer>(request.answer, exchange);
    ASSERT_TRUE(Complete(model(), request.call, exchange, answer).ok());
    ASSERT_TRUE(exchange->Wait());
    EXPECT_EQ(exchange->Body().at_pointer("/choices/0/text").as_string(), shown ? "<s><s>" : "");
  }
}

}  // namespace
}  // namespace sluice
