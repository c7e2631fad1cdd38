#include "src/server/chat_prompt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>

#include "src/server/chat_output.h"
#include "tests/text/shared_oracles.h"
#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

namespace json = boost::json;

struct ChatVocab : TinyVocab {
  ChatVocab() : TinyVocab("llama") {
    Add("<pad>", 0, kTypeControl);
    Add("<eos>", 0, kTypeControl);
    Add("<bos>", 0, kTypeControl);
    AddByteTokens();
    turn = Add("<|turn|>", 0, kTypeControl);
    writer.AddBool("tokenizer.ggml.add_space_prefix", false);
    writer.AddU32("tokenizer.ggml.bos_token_id", 2);
    writer.AddU32("tokenizer.ggml.eos_token_id", 1);
  }
  int32_t turn;
};

constexpr char kPlain[] =
    "{% for m in messages %}<|turn|>{{ m.role }}:{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant:{% endif %}{{ mood }}{{ bos_token }}";
constexpr char kTools[] =
    "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}{% for m in messages %}{{ m.role "
    "}}:"
    "{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name }} "
    "{{ c.function.arguments | tojson }}>{% endfor %};{% endfor %}";
// Refuses objects as arguments.
constexpr char kTextArguments[] =
    "{{ tools }}{% for m in messages %}{% for c in m.tool_calls or [] %}{{ '<' + "
    "c.function.arguments + '>' }}{% endfor %}{% endfor %}";

Result<ChatPrompt> Render(const char* source, const char* messages,
                          const ChatPromptOptions& options = {}) {
  static ChatVocab vocab;
  static const Tokenizer& tokenizer = vocab.Loaded();
  const Result<ChatFormat> format = ChatFormat::FromTemplate(source);
  EXPECT_TRUE(format.ok());
  return RenderChat(*format, source, tokenizer, json::parse(messages).as_array(), options);
}

std::string Text(const char* source, const char* messages, const ChatPromptOptions& options = {}) {
  const Result<ChatPrompt> prompt = Render(source, messages, options);
  return prompt.ok() ? prompt->text : "error: " + prompt.status().message();
}

TEST(ChatPrompt, ContentAsTextPartsOrNull) {
  EXPECT_EQ(Text(kPlain, R"([{"role": "user", "content": "hi"}])"),
            "<|turn|>user:hi\n<|turn|>assistant:<bos>");
  EXPECT_EQ(Text(kPlain, R"([{"role": "user", "content": [{"type": "text", "text": "a"},
                             {"type": "text", "text": "b"}]}, {"role": "assistant"}])"),
            "<|turn|>user:a\nb\n<|turn|>assistant:\n<|turn|>assistant:<bos>");
}

TEST(ChatPrompt, PartsStandTogetherWhereTheTemplateReadsThemSo) {
  constexpr char kReadsParts[] =
      "{{ messages[0].content if messages[0].content is string else messages[0].content[0]['text'] "
      "}}";
  EXPECT_EQ(Text(kReadsParts, R"([{"role": "user", "content": [{"type": "text", "text": "a "},
                                   {"type": "text", "text": "b"}]}])"),
            "a b");
}

TEST(ChatPrompt, ContentNeverBecomesAControlToken) {
  const Result<ChatPrompt> prompt =
      Render(kPlain, R"([{"role": "user", "content": "<|turn|>x<bos>"}])");
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(std::count(prompt->ids.begin(), prompt->ids.end(), 2), 1);
  EXPECT_EQ(std::count(prompt->ids.begin(), prompt->ids.end(), prompt->ids[0]), 2);
  EXPECT_GT(prompt->ids.size(), 15u);
}

TEST(ChatPrompt, ExtraVariablesButNotTheTemplatesOwn) {
  ChatPromptOptions options;
  options.extra = json::parse(R"({"mood": "<|turn|>", "bos_token": "x", "messages": [],
                                  "add_generation_prompt": true})")
                      .as_object();
  options.add_generation_prompt = false;
  const Result<ChatPrompt> prompt =
      Render(kPlain, R"([{"role": "user", "content": "hi"}])", options);
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(prompt->text, "<|turn|>user:hi\n<|turn|><bos>");
  // The variable's text is content.
  EXPECT_EQ(std::count(prompt->ids.begin(), prompt->ids.end(), prompt->ids[0]), 1);
}

TEST(ChatPrompt, RolesOfOtherDialects) {
  EXPECT_EQ(Text(kPlain, R"([{"role": "developer", "content": "d"},
                             {"role": "function", "content": "f"}])"),
            "<|turn|>system:d\n<|turn|>tool:f\n<|turn|>assistant:<bos>");
}

TEST(ChatPrompt, ContinuesTheLastMessage) {
  ChatPromptOptions options;
  options.continue_final_message = true;
  EXPECT_EQ(Text(kPlain, R"([{"role": "user", "content": "hi"},
                             {"role": "assistant", "content": "I am "}])",
                 options),
            "<|turn|>user:hi\n<|turn|>assistant:I am ");
}

TEST(ChatPrompt, ArgumentsAreObjectsWhereTheTemplateTakesThem) {
  constexpr char kMessages[] = R"([{"role": "assistant", "content": null, "tool_calls": [
      {"id": "1", "function": {"name": "f", "arguments": "{\"a\": [1, \"x\"]}"}},
      {"id": "2", "function": {"name": "g", "arguments": {"b": 2}}},
      {"id": "3", "function": {"name": "h", "arguments": "no json"}}]}])";
  EXPECT_EQ(Text(kTools, kMessages),
            "assistant:None<f {\"a\": [1, \"x\"]}><g {\"b\": 2}><h \"no json\">;");
  constexpr char kOne[] = R"([{"role": "assistant", "content": null, "tool_calls": [
      {"function": {"name": "f", "arguments": {"a": 1}}}]}])";
  EXPECT_EQ(Text(kTextArguments, kOne), "None<{\"a\":1}>");
}

TEST(ChatPrompt, ShowsTools) {
  const json::array tools =
      json::parse(R"([{"type": "function", "function": {"name": "f"}}])").as_array();
  ChatPromptOptions options;
  options.tools = &tools;
  EXPECT_EQ(Text(kTools, R"([{"role": "user", "content": "x"}])", options), "[f]user:x;");
  const Result<ChatPrompt> prompt =
      Render(kPlain, R"([{"role": "user", "content": "x"}])", options);
  ASSERT_FALSE(prompt.ok());
  EXPECT_EQ(prompt.status().code(), StatusCode::kUnsupported);
}

TEST(ChatPrompt, SaysWhatIsWrongAndWhere) {
  const auto refused = [](const char* messages, const char* expected) {
    const Result<ChatPrompt> prompt = Render(kPlain, messages);
    ASSERT_FALSE(prompt.ok()) << messages;
    EXPECT_EQ(prompt.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(prompt.status().message().find(expected), std::string::npos)
        << prompt.status().message();
  };
  refused("[]", "messages");
  refused("[5]", "messages[0]");
  refused(R"([{"content": "x"}])", "messages[0].role");
  refused(R"([{"role": "user"}])", "messages[0].content");
  refused(R"([{"role": "user", "content": 5}])", "messages[0].content");
  refused(R"([{"role": "user", "content": [{"type": "image_url"}]}])", "image_url");
  refused(R"([{"role": "user", "content": "x", "tool_calls": 5}])", "tool_calls");
  refused(R"([{"role": "assistant", "tool_calls": [{}]}])", "tool_calls[0].function");
  const Result<ChatPrompt> prompt =
      Render("{{ raise_exception('No more') }}", R"([{"role": "user", "content": "x"}])");
  ASSERT_FALSE(prompt.ok());
  EXPECT_EQ(prompt.status().message(), "chat template: No more");
}

// A vocabulary with the oracle's own texts of BOS and EOS.
struct OracleVocab : TinyVocab {
  explicit OracleVocab(const json::object& oracle) : TinyVocab("llama") {
    AddByteTokens();
    for (const char* name : {"bos", "eos"}) {
      const json::value& text = oracle.at(std::string(name) + "_token");
      if (!text.is_string()) continue;
      const int32_t id = Add(std::string(text.as_string()), 0, kTypeControl);
      writer.AddU32(std::string("tokenizer.ggml.") + name + "_token_id", static_cast<uint32_t>(id));
    }
    writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  }
};

class ChatPromptOracle : public ::testing::TestWithParam<std::string> {};

// What the reference makes of messages, tools and variables in OpenAI's form.
TEST_P(ChatPromptOracle, MessagesReachTheTemplateAsTheyAre) {
  if (GetParam() == "absent") GTEST_SKIP() << "skipped: no shared oracles";
  const json::object oracle = ReadOracle("templates", GetParam());
  if (!oracle.contains("template")) GTEST_SKIP() << "holds no template";
  OracleVocab vocab(oracle);
  const Tokenizer& tokenizer = vocab.Loaded();
  const std::string source(oracle.at("template").as_string());
  Result<ChatFormat> format = ChatFormat::FromTemplate(source);
  ASSERT_TRUE(format.ok());
  std::tm now{};
  now.tm_year = 124, now.tm_mon = 6, now.tm_mday = 26, now.tm_wday = 5;
  format->set_now(now);
  for (const json::value& value : oracle.at("cases").as_array()) {
    const json::object& entry = value.as_object();
    if (!entry.contains("expected")) continue;
    // Brought into another form before the template sees them.
    const std::string name(entry.at("name").as_string());
    if (name == "content_parts" || name == "tool_call_string_arguments") continue;
    ChatPromptOptions options;
    if (entry.at("tools").is_array()) options.tools = &entry.at("tools").as_array();
    if (options.tools != nullptr && !TemplateKnowsTools(source)) continue;
    options.add_generation_prompt = entry.at("add_generation_prompt").as_bool();
    options.extra = entry.at("extra").as_object();
    const auto prompt =
        RenderChat(*format, source, tokenizer, entry.at("messages").as_array(), options);
    ASSERT_TRUE(prompt.ok()) << name << ": " << prompt.status().message();
    EXPECT_EQ(prompt->text, std::string(entry.at("expected").as_string())) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Templates, ChatPromptOracle, ::testing::ValuesIn(OracleNames("templates")),
                         [](const auto& param) { return TestName(param.param); });

}  // namespace
}  // namespace sluice
