// Bodies as Ollama's clients send them, read for a tiny model.
#include "src/server/ollama_request.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "tests/server/tiny_served.h"

namespace sluice {
namespace {

namespace json = boost::json;

json::object Parse(const std::string& text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  EXPECT_FALSE(error) << text;
  return error ? json::object() : value.as_object();
}

class OllamaRequestTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { served_ = new TinyServed(kTinyTemplate); }
  static void TearDownTestSuite() {
    delete served_;
    served_ = nullptr;
  }
  Result<OllamaRequest> Read(const std::string& body, bool chat) {
    return ReadOllamaRequest(Parse(body), chat, *served_->model());
  }
  OllamaRequest Good(const std::string& body, bool chat = false) {
    Result<OllamaRequest> request = Read(body, chat);
    EXPECT_TRUE(request.ok()) << body << ": " << request.status().message();
    return request.ok() ? *std::move(request) : OllamaRequest();
  }
  std::string Bad(const std::string& body, bool chat = false) {
    const Result<OllamaRequest> request = Read(body, chat);
    EXPECT_FALSE(request.ok()) << body;
    EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument) << body;
    return request.status().message();
  }
  std::string PromptOf(const OllamaRequest& request) {
    return served_->Text(request.call.prompts.at(0));
  }

  static TinyServed* served_;
};
TinyServed* OllamaRequestTest::served_ = nullptr;

TEST_F(OllamaRequestTest, DefaultsAreOllamas) {
  const OllamaRequest request = Good(R"({"model": "tiny", "prompt": "hi"})");
  const SamplerOptions& sampler = request.call.options.sampler;
  EXPECT_EQ(sampler.temp, 0.8f);
  EXPECT_EQ(sampler.top_k, 40);
  EXPECT_EQ(sampler.top_p, 0.9f);
  EXPECT_EQ(sampler.min_p, 0.0f);
  EXPECT_EQ(sampler.repeat_last_n, 64);
  EXPECT_EQ(sampler.repeat_penalty, 1.1f);
  EXPECT_EQ(request.call.options.max_tokens, SIZE_MAX);
  EXPECT_EQ(request.call.options.sinks, 4u);
  EXPECT_FALSE(request.call.options.context_shift);
  EXPECT_TRUE(request.answer.stream);
  EXPECT_TRUE(request.answer.context);
  EXPECT_EQ(request.answer.model, "tiny");
  EXPECT_TRUE(request.answer.notes.empty());
}

TEST_F(OllamaRequestTest, OptionsReachTheEngine) {
  const OllamaRequest request = Good(
      R"({"prompt": "hi", "stream": false, "shift": true, "options": {"temperature": 0,
          "top_k": 3, "seed": 7, "num_predict": 9, "num_keep": -1, "stop": ["x", "y"],
          "num_ctx": 128, "num_gpu": 99, "use_mmap": true, "repeat_last_n": -1}})");
  EXPECT_EQ(request.call.options.sampler.temp, 0);
  EXPECT_EQ(request.call.options.sampler.top_k, 3);
  EXPECT_EQ(request.call.options.sampler.seed, 7u);
  EXPECT_EQ(request.call.options.max_tokens, 9u);
  EXPECT_EQ(request.call.options.sinks, request.call.prompts[0].size());
  EXPECT_EQ(request.call.options.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(request.call.options.context_shift);
  EXPECT_TRUE(request.answer.ignored.empty());
  EXPECT_TRUE(request.answer.notes.empty());
  EXPECT_FALSE(request.answer.stream);
}

TEST_F(OllamaRequestTest, UnknownOptionsAreToldAndWrongTypesRefused) {
  const OllamaRequest request = Good(
      R"({"prompt": "hi", "options": {"temp": 0.1, "mirostat": 2, "num_ctx": 4096,
          "temperature": null}})");
  EXPECT_EQ(request.answer.ignored, (std::vector<std::string>{"temp"}));
  ASSERT_EQ(request.answer.notes.size(), 2u);
  EXPECT_NE(request.answer.notes[0].find("num_ctx: 4096 asked for, 128 served"), std::string::npos);
  EXPECT_NE(request.answer.notes[1].find("mirostat"), std::string::npos);
  for (const char* options : {R"({"temperature": "0.1"})", R"({"top_k": 1.5})", R"({"stop": 5})",
                              R"({"seed": []})", R"({"num_ctx": "big"})", R"({"num_gpu": "all"})",
                              R"({"use_mmap": 1})", R"([])", R"("x")", R"({"num_predict": {}})"}) {
    const std::string message = Bad(std::string(R"({"prompt": "hi", "options": )") + options + "}");
    EXPECT_EQ(message.substr(0, 7), "options") << message;
  }
}

// An endless answer of a context that shifts has an end all the same.
TEST_F(OllamaRequestTest, NumPredict) {
  EXPECT_EQ(Good(R"({"prompt": "a", "options": {"num_predict": 0}})").call.options.max_tokens,
            SIZE_MAX);
  EXPECT_EQ(Good(R"({"prompt": "a", "options": {"num_predict": -2}})").call.options.max_tokens,
            SIZE_MAX);
  EXPECT_EQ(Good(R"({"prompt": "a", "shift": true})").call.options.max_tokens, 1280u);
}

TEST_F(OllamaRequestTest, GeneratePutsThePromptIntoTheTemplate) {
  const OllamaRequest request = Good(R"({"prompt": "hi", "system": "be brief"})");
  EXPECT_EQ(request.rendered, "[system]be brief[user]hi[assistant]");
  EXPECT_EQ(PromptOf(request), request.rendered);
  EXPECT_TRUE(request.answer.output.has_value());
  EXPECT_EQ(request.answer.prompt, request.call.prompts[0]);
}

TEST_F(OllamaRequestTest, RawIsThePromptItself) {
  const OllamaRequest request = Good(R"({"prompt": "hi", "raw": true})");
  const std::vector<int32_t>& ids = request.call.prompts[0];
  EXPECT_EQ(ids[0], TinyModel::kBos);
  EXPECT_EQ(served_->model()->tokenizer().Decode(ids, true), "hi");
  EXPECT_FALSE(request.answer.context);
  EXPECT_FALSE(request.answer.output.has_value());
  // One BOS, whoever wrote it.
  EXPECT_EQ(Good(R"({"prompt": "<s>hi", "raw": true})").call.prompts[0][1],
            Good(R"({"prompt": "hi", "raw": true})").call.prompts[0][1]);
  Bad(R"({"prompt": "hi", "raw": true, "system": "x"})");
}

TEST_F(OllamaRequestTest, AModelWithoutTemplateGoesOnFromThePrompt) {
  TinyServed base("");
  const Result<OllamaRequest> request =
      ReadOllamaRequest(Parse(R"({"prompt": "hi"})"), false, *base.model());
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(base.model()->tokenizer().Decode(request->call.prompts[0], true), "hi");
  const auto refused = [&](const char* body, bool chat) {
    return ReadOllamaRequest(Parse(body), chat, *base.model()).status().code();
  };
  EXPECT_EQ(refused(R"({"prompt": "hi", "system": "x"})", false), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused(R"({"messages": [{"role": "user", "content": "x"}]})", true),
            StatusCode::kInvalidArgument);
  const std::string message =
      ReadOllamaRequest(Parse(R"({"messages": [{"role": "user"}]})"), true, *base.model())
          .status()
          .message();
  EXPECT_EQ(message.find(base.folder()), std::string::npos) << message;
  EXPECT_EQ(refused(R"({"prompt": "hi", "think": true})", false), StatusCode::kInvalidArgument);
}

TEST_F(OllamaRequestTest, ContextComesBeforeThePrompt) {
  const OllamaRequest request = Good(R"({"prompt": "hi", "context": [1, 104, 105]})");
  const std::vector<int32_t>& ids = request.call.prompts[0];
  EXPECT_EQ(std::vector<int32_t>(ids.begin(), ids.begin() + 3),
            (std::vector<int32_t>{1, 104, 105}));
  EXPECT_EQ(request.answer.prompt, ids);
  for (const char* context : {"[320]", "[-1]", "[\"x\"]", "[1.5]", "5"}) {
    Bad(std::string(R"({"prompt": "hi", "context": )") + context + "}");
  }
}

TEST_F(OllamaRequestTest, WhatIsNotOfferedIsRefusedByName) {
  EXPECT_EQ(Bad(R"({"prompt": "a", "suffix": "b"})").substr(0, 7), "suffix:");
  EXPECT_NE(Bad(R"({"prompt": "a", "suffix": "b"})").find("cannot fill in"), std::string::npos);
  EXPECT_EQ(Bad(R"({"prompt": "a", "template": "{{ .Prompt }}"})").substr(0, 9), "template:");
  EXPECT_EQ(Bad(R"({"prompt": "a", "images": ["aGk="]})").substr(0, 7), "images:");
  Good(R"({"prompt": "a", "suffix": "", "template": "", "images": [], "unknown": 5})");
  Bad(R"({"prompt": "a", "stream": "yes"})");
  Bad(R"({"prompt": "a", "top_logprobs": 3})");
  Bad(R"({"prompt": "a", "logprobs": true, "top_logprobs": 21})");
  EXPECT_EQ(Good(R"({"prompt": "a", "logprobs": true, "top_logprobs": 3})").call.options.logprobs,
            3);
  EXPECT_EQ(Good(R"({"prompt": "a", "logprobs": true})").call.options.logprobs, 0);
}

TEST_F(OllamaRequestTest, Format) {
  EXPECT_NE(Good(R"({"prompt": "a", "format": "json"})").call.grammar, nullptr);
  EXPECT_NE(Good(R"({"prompt": "a", "format": {"type": "object"}})").call.grammar, nullptr);
  EXPECT_EQ(Good(R"({"prompt": "a", "format": ""})").call.grammar, nullptr);
  EXPECT_EQ(Good(R"({"prompt": "a", "format": null})").call.grammar, nullptr);
  for (const char* format : {"\"xml\"", "5", "[]", R"({"type": "nonsense"})"}) {
    EXPECT_EQ(Bad(std::string(R"({"prompt": "a", "format": )") + format + "}").substr(0, 6),
              "format");
  }
}

TEST_F(OllamaRequestTest, ThinkTurnsTheTemplatesSwitch) {
  EXPECT_EQ(Good(R"({"prompt": "a"})").rendered, "[user]a[assistant]");
  EXPECT_EQ(Good(R"({"prompt": "a", "think": false})").rendered,
            "[user]a[assistant]<think></think>");
  EXPECT_EQ(Good(R"({"prompt": "a", "think": true})").rendered, "[user]a[assistant]");
  EXPECT_EQ(Good(R"({"prompt": "a", "think": "high"})").rendered, "[user]a[assistant]");
  for (const char* think : {"\"hihg\"", "1", "[]"}) {
    EXPECT_EQ(Bad(std::string(R"({"prompt": "a", "think": )") + think + "}").substr(0, 19),
              "invalid think value");
  }
}

TEST_F(OllamaRequestTest, ChatTakesMessagesInOllamasForm) {
  const OllamaRequest request = Good(
      R"({"messages": [{"role": "User", "content": "a"},
          {"role": "assistant", "thinking": "hm", "tool_calls": [
            {"function": {"name": "f", "arguments": {"x": 1}}}]},
          {"role": "tool", "tool_name": "f", "content": "1"}],
          "tools": [{"type": "function", "function": {"name": "f"}}]})",
      true);
  EXPECT_NE(request.rendered.find("[user]a[assistant]<think>hm</think>"), std::string::npos)
      << request.rendered;
  EXPECT_NE(request.rendered.find(R"("arguments": {"x": 1})"), std::string::npos)
      << request.rendered;
  EXPECT_NE(request.rendered.find("[tool]1[assistant]"), std::string::npos) << request.rendered;
  EXPECT_TRUE(request.answer.output->tools);
  EXPECT_FALSE(request.answer.context);
}

TEST_F(OllamaRequestTest, OddMessagesHaveADefinedEnd) {
  Good(R"({"messages": [{"role": "user", "content": ""}]})", true);
  Good(R"({"messages": [{"role": "user"}]})", true);
  Good(R"({"messages": [{"role": "user", "content": " \n"}]})", true);
  Good(R"({"messages": [{"role": "system", "content": "x"}]})", true);
  for (const char* messages :
       {"5", "[5]", "[{}]", R"([{"role": 5, "content": "a"}])", R"([{"content": "a"}])",
        R"([{"role": "user", "content": {}}])", R"([{"role": "user", "images": ["aGk="]}])",
        R"([{"role": "assistant", "tool_calls": [5]}])",
        R"([{"role": "assistant", "tool_calls": [{"id": "x"}]}])"}) {
    const std::string message = Bad(std::string(R"({"messages": )") + messages + "}", true);
    EXPECT_EQ(message.substr(0, 8), "messages") << message;
  }
}

TEST_F(OllamaRequestTest, PromptsAreCutOnlyIfAskedAndThatIsTold) {
  std::string messages = R"({"role": "system", "content": "S"})";
  for (int i = 0; i < 6; ++i) {
    messages += R"(, {"role": "user", "content": ")" + std::to_string(i) + std::string(20, 'q') +
                R"("}, {"role": "assistant", "content": "r"})";
  }
  messages += R"(, {"role": "user", "content": "last"})";
  const std::string body = R"({"options": {"num_predict": 8}, "messages": [)" + messages + "]";
  const OllamaRequest whole = Good(body + "}", true);
  EXPECT_GT(whole.call.prompts[0].size(), served_->model()->context());
  EXPECT_FALSE(whole.answer.truncated);
  const OllamaRequest cut = Good(body + R"(, "truncate": true})", true);
  EXPECT_LE(cut.call.prompts[0].size(), served_->model()->context() - 8);
  EXPECT_TRUE(cut.answer.truncated);
  EXPECT_EQ(cut.rendered.substr(0, 15), "[system]S[user]");
  EXPECT_TRUE(cut.rendered.ends_with("[user]last[assistant]"));
  EXPECT_EQ(cut.rendered.find("[user]0q"), std::string::npos);
  ASSERT_EQ(cut.answer.notes.size(), 1u);
  EXPECT_NE(cut.answer.notes[0].find("dropped the oldest"), std::string::npos);
}

TEST_F(OllamaRequestTest, AGeneratePromptLosesItsMiddle) {
  const std::string body =
      R"({"raw": true, "options": {"num_predict": 8, "num_keep": 3}, "prompt": ")" +
      std::string(300, 'q') + "end\"";
  const OllamaRequest cut = Good(body + R"(, "truncate": true})");
  EXPECT_EQ(cut.call.prompts[0].size(), served_->model()->context() - 8);
  EXPECT_EQ(cut.call.prompts[0][0], TinyModel::kBos);
  EXPECT_TRUE(PromptOf(cut).ends_with("end"));
  EXPECT_TRUE(cut.answer.truncated);
  EXPECT_GT(Good(body + "}").call.prompts[0].size(), 300u);
}

TEST(OllamaHeadTest, NothingToSayLoadsOrUnloads) {
  const auto head = [](const char* body, bool chat) {
    const Result<OllamaHead> result = ReadOllamaHead(Parse(body), chat);
    EXPECT_TRUE(result.ok()) << body;
    return result.ok() ? *result : OllamaHead();
  };
  EXPECT_TRUE(head(R"({"model": "m"})", false).nothing_to_say);
  EXPECT_TRUE(head(R"({"model": "m", "prompt": ""})", false).nothing_to_say);
  EXPECT_FALSE(head(R"({"model": "m", "prompt": " "})", false).nothing_to_say);
  EXPECT_TRUE(head(R"({"model": "m", "messages": []})", true).nothing_to_say);
  EXPECT_FALSE(head(R"({"messages": [{}]})", true).nothing_to_say);
  EXPECT_FALSE(head(R"({"model": "m"})", false).unload());
  EXPECT_TRUE(head(R"({"keep_alive": 0})", false).unload());
  EXPECT_TRUE(head(R"({"keep_alive": "0"})", true).unload());
  EXPECT_FALSE(head(R"({"keep_alive": 0, "prompt": "x"})", false).unload());
  EXPECT_FALSE(head(R"({"keep_alive": -1})", false).unload());
  EXPECT_FALSE(ReadOllamaHead(Parse(R"({"keep_alive": "soon"})"), false).ok());
  EXPECT_FALSE(ReadOllamaHead(Parse(R"({"model": 5})"), false).ok());
  EXPECT_FALSE(ReadOllamaHead(Parse(R"({"prompt": 5})"), false).ok());
}

}  // namespace
}  // namespace sluice
