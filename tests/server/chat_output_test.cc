#include "src/server/chat_output.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <iterator>

#include "src/base/random.h"

namespace sluice {
namespace {

// Templates cut down to what names the family.
constexpr char kQwen[] = "{% if tools %}<tool_call>{% endif %}<think></think>";
constexpr char kQwenCoder[] = "{% if tools %}<tool_call><function=f>{% endif %}";
constexpr char kLlama[] = "{% if tools %}<|python_tag|>{% endif %}";
constexpr char kMistral[] = "{% if tools %}[TOOL_CALLS]{% endif %}";
constexpr char kGranite[] = "{% if tools %}<|tool_call|>{% endif %}<think><response>";
constexpr char kNemotron[] = "{% if tools %}<TOOLCALL>{% endif %}<think>";
constexpr char kCommand[] =
    "{% if tools %}<|START_ACTION|>{% endif %}<|START_THINKING|><|START_RESPONSE|>";
constexpr char kDeepSeek[] = "{{ tools }}<\uFF5Ctool\u2581calls\u2581begin\uFF5C></think>";
constexpr char kGlm[] = "{{ tools }}<tool_call>{f}\n<arg_key>{k}</arg_key>\n<think></think>";
constexpr char kLfm[] = "{{ tools }}<|tool_list_start|>";
constexpr char kKimi[] = "{{ tools }}<|tool_calls_section_begin|>";
constexpr char kGemma[] = "{{ tools }}<|tool_call><|channel>thought";
constexpr char kHarmony[] = "{{ tools }}<|channel|><|message|>";

struct Said {
  std::string content, reasoning;
  std::vector<std::string> calls;  // name(arguments)
};

void Add(const ChatDelta& delta, Said* said) {
  said->content += delta.content;
  said->reasoning += delta.reasoning;
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (call.index >= said->calls.size()) {
      EXPECT_EQ(call.index, said->calls.size());
      EXPECT_FALSE(call.id.empty());
      EXPECT_FALSE(call.name.empty());
      said->calls.push_back(call.name + ":");
    } else {
      EXPECT_EQ(call.index + 1, said->calls.size()) << "a call that was left is taken up again";
      EXPECT_TRUE(call.id.empty() && call.name.empty()) << "id and name come once";
    }
    said->calls.back() += call.arguments;
  }
}

ChatOutputOptions Options(const char* source, const char* prompt_end = "") {
  ChatOutputOptions options;
  options.template_source = source;
  options.prompt_end = prompt_end;
  options.tools = true;
  options.tool_list = boost::json::parse(R"([{"type": "function", "function": {"name": "f",
      "parameters": {"type": "object", "properties": {"text": {"type": "string"},
      "n": {"type": "integer"}, "flag": {"type": "boolean"}, "any": {}}}}}])")
                          .as_array();
  return options;
}

// `text` in pieces of `size` bytes.
Said Read(const ChatOutputOptions& options, std::string_view text, size_t size) {
  ChatOutput output(options);
  Said said;
  for (size_t at = 0; at < text.size(); at += size) Add(output.Push(text.substr(at, size)), &said);
  Add(output.Finish(), &said);
  EXPECT_EQ(output.tool_calls(), said.calls.size());
  return said;
}

struct Case {
  const char* name;
  const char* source;
  const char* prompt_end;
  std::string text;
  Said expected;
};

std::vector<Case> Cases() {
  const std::string ds = "<\uFF5Ctool\u2581";
  const std::string bar = "\uFF5C>";
  return {
      {"plain text",
       kQwen,
       "",
       "Hello <b>you</b>.\n\nBye \n",
       {"Hello <b>you</b>.\n\nBye \n", "", {}}},
      {"blanks before text", kQwen, "", " \n hi", {" \n hi", "", {}}},
      {"nothing but blanks", kQwen, "", " \n", {" \n", "", {}}},
      {"reasoning",
       kQwen,
       "",
       "<think>\nlet me\nsee\n</think>\n\nFour.",
       {"Four.", "let me\nsee", {}}},
      {"reasoning that the prompt opened",
       kQwen,
       "<|im_start|>assistant\n<think>\n",
       "hm < 3 </thin </think>\nyes",
       {"yes", "hm < 3 </thin", {}}},
      {"empty reasoning", kQwen, "", "<think>\n\n</think>\n\nyes", {"yes", "", {}}},
      {"reasoning without an end", kQwen, "<think>", "hm, \n", {"", "hm,", {}}},
      {"no reasoning inside content",
       kQwen,
       "",
       "a <think>b</think>",
       {"a <think>b</think>", "", {}}},
      {"one call",
       kQwen,
       "",
       "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}\\\"{\", \"b\": [1, "
       "{}]}}\n"
       "</tool_call>",
       {"Let me see.", "", {"f:{\"a\": \"}\\\"{\", \"b\": [1, {}]}"}}},
      {"two calls after reasoning",
       kQwen,
       "",
       "<think>x</think>\n<tool_call>\n{\"name\": \"f\", \"arguments\": "
       "{}}\n</tool_call>\n<tool_call>\n"
       "{\"name\": \"g\", \"arguments\": {\"q\": 1}}\n</tool_call>\n",
       {"", "x", {"f:{}", "g:{\"q\": 1}"}}},
      {"arguments before the name",
       kQwen,
       "",
       "<tool_call>{\"arguments\": {\"q\": 1}, \"name\": \"f\"}</tool_call>",
       {"", "", {"f:{\"q\": 1}"}}},
      {"arguments as text",
       kQwen,
       "",
       "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"q\\\": 1}\"}</tool_call>",
       {"", "", {"f:{\"q\": 1}"}}},
      {"no arguments", kQwen, "", "<tool_call>{\"name\": \"f\"}</tool_call>", {"", "", {"f:{}"}}},
      {"text after a call",
       kQwen,
       "",
       "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\nDone.",
       {"Done.", "", {"f:{}"}}},
      {"a call without its end mark",
       kQwen,
       "",
       "<tool_call>{\"name\": \"f\", \"arguments\": {}}\n<tool_call>{\"name\": \"g\", "
       "\"arguments\": {}}",
       {"", "", {"f:{}", "g:{}"}}},
      {"a mark that opens no call",
       kQwen,
       "",
       "Use <tool_call> for that.",
       {"Use <tool_call> for that.", "", {}}},
      {"cut before the name",
       kQwen,
       "",
       "a\n<tool_call>\n{\"na",
       {"a\n<tool_call>\n{\"na", "", {}}},
      {"cut in the arguments",
       kQwen,
       "",
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"b",
       {"", "", {"f:{\"a\": \"b"}}},
      {"half a mark at the end", kQwen, "", "a <tool_", {"a <tool_", "", {}}},
      {"xml",
       kQwenCoder,
       "",
       "ok\n<tool_call>\n<function=f>\n<parameter=text>\na \"b\"\n\nc</p\n</parameter>\n"
       "<parameter=n>\n5\n</parameter>\n<parameter=flag>True</parameter>\n<parameter=any>\n[1, 2]\n"
       "</parameter>\n</function>\n</tool_call>",
       {"ok",
        "",
        {"f:{\"text\": \"a \\\"b\\\"\\n\\nc</p\", \"n\": 5, \"flag\": true, \"any\": [1, 2]}"}}},
      {"xml without the outer mark",
       kQwenCoder,
       "",
       "<function=f>\n<parameter=n>\nfive\n</parameter>\n</function>\n</tool_call>",
       {"", "", {"f:{\"n\": \"five\"}"}}},
      {"xml without parameters",
       kQwenCoder,
       "",
       "<tool_call><function=f></function></tool_call>",
       {"", "", {"f:{}"}}},
      {"json in a family of xml",
       kQwenCoder,
       "",
       "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
       {"", "", {"f:{}"}}},
      {"bare json",
       kLlama,
       "",
       "{\"name\": \"f\", \"parameters\": {\"n\": 1}}",
       {"", "", {"f:{\"n\": 1}"}}},
      {"bare json with its type, twice",
       kLlama,
       "",
       "{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}; {\"name\": \"f\", "
       "\"parameters\": {\"n\": 2}}",
       {"", "", {"f:{}", "f:{\"n\": 2}"}}},
      {"python tag",
       kLlama,
       "",
       "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"n\": 1}}",
       {"", "", {"f:{\"n\": 1}"}}},
      {"json that is the answer",
       kLlama,
       "",
       "{\"name\": \"Bob\", \"age\": 3}",
       {"{\"name\": \"Bob\", \"age\": 3}", "", {}}},
      {"json of a tool that was not offered",
       kLlama,
       "",
       "{\"name\": \"unknown\", \"parameters\": {\"a\": 1}}",
       {"{\"name\": \"unknown\", \"parameters\": {\"a\": 1}}", "", {}}},
      {"list",
       kMistral,
       "",
       "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", "
       "\"arguments\": {}}]",
       {"", "", {"f:{\"a\": 1}", "g:{}"}}},
      {"names with [ARGS]",
       kMistral,
       "",
       "Hm.[TOOL_CALLS]f[ARGS]{\"a\": {\"b\": 1}}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}",
       {"Hm.", "", {"f:{\"a\": {\"b\": 1}}", "g:{}"}}},
      {"granite",
       kGranite,
       "",
       "<think>t</think><response>r</response><|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]",
       {"r", "t", {"f:{}"}}},
      {"nemotron",
       kNemotron,
       "<think>\n",
       "t</think>\n\n<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]</TOOLCALL>\n",
       {"", "t", {"f:{\"a\": 1}"}}},
      {"command-r",
       kCommand,
       "",
       "<|START_THINKING|>plan<|END_THINKING|><|START_ACTION|>[\n  {\"tool_call_id\": \"0\", "
       "\"tool_name\": \"f\", \"parameters\": {\"a\": 1}}\n]<|END_ACTION|>",
       {"", "plan", {"f:{\"a\": 1}"}}},
      {"command-r answers", kCommand, "", "<|START_RESPONSE|>hi<|END_RESPONSE|>", {"hi", "", {}}},
      {"deepseek v3",
       kDeepSeek,
       "",
       "see" + ds + "calls\u2581begin" + bar + ds + "call\u2581begin" + bar + "function" + ds +
           "sep" + bar + "f\n```json\n{\"a\": 1}\n```" + ds + "call\u2581end" + bar + "\n" + ds +
           "call\u2581begin" + bar + "function" + ds + "sep" + bar + "g\n```json\n{}\n```" + ds +
           "call\u2581end" + bar + ds + "calls\u2581end" + bar,
       {"see", "", {"f:{\"a\": 1}", "g:{}"}}},
      {"deepseek v3.1",
       kDeepSeek,
       "",
       ds + "calls\u2581begin" + bar + ds + "call\u2581begin" + bar + "f" + ds + "sep" + bar +
           "{\"a\": 1}" + ds + "call\u2581end" + bar + ds + "calls\u2581end" + bar,
       {"", "", {"f:{\"a\": 1}"}}},
      {"deepseek text with its bar",
       kDeepSeek,
       "",
       "a <\uFF5B <\uFF5C b",
       {"a <\uFF5B <\uFF5C b", "", {}}},
      {"kimi",
       kKimi,
       "",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
       "{\"a\": 1}<|tool_call_end|><|tool_calls_section_end|>",
       {"", "", {"f:{\"a\": 1}"}}},
      {"glm",
       kGlm,
       "",
       "<think>hm</think>\nSure.\n<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>a < \"b\"\n</a"
       "</arg_value>\n<arg_key>n</arg_key>\n<arg_value>5</arg_value>\n<arg_key>any</arg_key>\n"
       "<arg_value>[1, {\"x\": null}]</arg_value>\n</tool_call>",
       {"Sure.",
        "hm",
        {"f:{\"text\": \"a < \\\"b\\\"\\n</a\", \"n\": 5, \"any\": [1, {\"x\": null}]}"}}},
      {"glm without lines, twice",
       kGlm,
       "",
       "<tool_call>f<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>"
       "<tool_call>g</tool_call>\nDone.",
       {"Done.", "", {"f:{\"n\": 1}", "g:{}"}}},
      {"glm writes json",
       kGlm,
       "",
       "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
       {"", "", {"f:{}"}}},
      {"glm's mark that opens no call",
       kGlm,
       "",
       "Write <tool_call> and more\n.",
       {"Write <tool_call> and more\n.", "", {}}},
      {"glm's call that is cut",
       kGlm,
       "",
       "<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>ab",
       {"", "", {"f:{\"text\": \"ab"}}},
      {"lfm2",
       kLfm,
       "",
       "Let me.<|tool_call_start|>[f(text=\"it's \\\"x\\\"\\n\", n=-3, flag=True), g()]"
       "<|tool_call_end|>Done.",
       {"Let me.Done.",
        "",
        {"f:{\"text\": \"it's \\\"x\\\"\\n\", \"n\": -3, \"flag\": true}", "g:{}"}}},
      {"lfm2 with nested values",
       kLfm,
       "",
       "<|tool_call_start|>[a.b(x = ['p', (1, 2.5,), {'k': None}], y=[])]<|tool_call_end|>",
       {"", "", {"a.b:{\"x\": [\"p\", [1, 2.5], {\"k\": null}], \"y\": []}"}}},
      {"lfm2 with escapes",
       kLfm,
       "",
       "<|tool_call_start|>[f(text='\\x41\\u00e9\\d\\'\u00E9')]<|tool_call_end|>",
       {"", "", {"f:{\"text\": \"\\u0041\\u00e9\\\\d'\u00E9\"}"}}},
      {"lfm2 without brackets",
       kLfm,
       "",
       "<|tool_call_start|>f(n=1)<|tool_call_end|>",
       {"", "", {"f:{\"n\": 1}"}}},
      {"lfm2 writes json",
       kLfm,
       "",
       "<|tool_call_start|>[{\"name\": \"f\", \"arguments\": {\"n\": 1}}]<|tool_call_end|>",
       {"", "", {"f:{\"n\": 1}"}}},
      {"lfm2's arguments without names",
       kLfm,
       "",
       "<|tool_call_start|>[f(\"a\")]<|tool_call_end|>",
       {"<|tool_call_start|>[f(\"a\")]<|tool_call_end|>", "", {}}},
      {"harmony",
       kHarmony,
       "",
       "<|channel|>analysis<|message|>think < of "
       "it<|end|><|start|>assistant<|channel|>final<|message|>"
       "Four.",
       {"Four.", "think < of it", {}}},
      {"harmony call",
       kHarmony,
       "",
       "<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.f "
       "<|constrain|>json<|message|>{\"a\": 1}",
       {"", "t", {"f:{\"a\": 1}"}}},
      {"harmony call named in the role",
       kHarmony,
       "",
       "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
       {"", "", {"f:{}"}}},
      {"harmony without channels", kHarmony, "", "{\"a\": 1}", {"{\"a\": 1}", "", {}}},
  };
}

// The deltas joined are the same however the text was cut.
TEST(ChatOutput, TakesEveryFamilyApartHoweverTheTextIsCut) {
  for (const Case& c : Cases()) {
    for (const size_t size : {c.text.size(), size_t{1}, size_t{2}, size_t{3}, size_t{7}}) {
      const Said said = Read(Options(c.source, c.prompt_end), c.text, size);
      EXPECT_EQ(said.content, c.expected.content) << c.name << ", by " << size;
      EXPECT_EQ(said.reasoning, c.expected.reasoning) << c.name << ", by " << size;
      EXPECT_EQ(said.calls, c.expected.calls) << c.name << ", by " << size;
    }
  }
}

TEST(ChatOutput, EveryCutInTwoGivesTheSame) {
  for (const Case& c : Cases()) {
    for (size_t cut = 0; cut <= c.text.size(); ++cut) {
      ChatOutput output(Options(c.source, c.prompt_end));
      Said said;
      Add(output.Push(std::string_view(c.text).substr(0, cut)), &said);
      Add(output.Push(std::string_view(c.text).substr(cut)), &said);
      Add(output.Finish(), &said);
      ASSERT_EQ(said.content, c.expected.content) << c.name << ", at " << cut;
      ASSERT_EQ(said.reasoning, c.expected.reasoning) << c.name << ", at " << cut;
      ASSERT_EQ(said.calls, c.expected.calls) << c.name << ", at " << cut;
    }
  }
}

// Marks, brackets and words in any order: whatever it means, it means the same in every cut.
TEST(ChatOutput, NonsenseIsTheSameInEveryCut) {
  const std::string pieces[] = {"<think>",
                                "</think>",
                                "<tool_call>",
                                "</tool_call>",
                                "<function=f>",
                                "</function>",
                                "<parameter=text>",
                                "</parameter>",
                                "[TOOL_CALLS]",
                                "[ARGS]",
                                "f",
                                "{",
                                "}",
                                "[",
                                "]",
                                "\"",
                                "name",
                                ":",
                                ",",
                                "\"name\": \"f\"",
                                "\"arguments\": {",
                                "\n",
                                " ",
                                "\u00E9",
                                "\\",
                                "<|python_tag|>",
                                "{\"name\": \"f\", \"parameters\": {",
                                "<",
                                "<|",
                                "|>",
                                "<|channel|>",
                                "<|message|>",
                                "<|end|>",
                                "<|start|>",
                                "assistant",
                                "final",
                                "analysis",
                                " to=functions.f",
                                "<|tool_call>",
                                "call:f{",
                                "<tool_call|>",
                                "<|\"|>",
                                "<|tool_calls_section_begin|>",
                                "<|tool_call_begin|>",
                                "<|tool_call_argument_begin|>",
                                "<|tool_call_end|>",
                                "<|tool_calls_section_end|>",
                                "<arg_key>",
                                "</arg_key>",
                                "<arg_value>",
                                "</arg_value>",
                                "<|tool_call_start|>",
                                "<|tool_call_end|>",
                                "f(text=",
                                "'",
                                ")",
                                "=",
                                "<|START_ACTION|>",
                                "<|END_ACTION|>",
                                "<|START_RESPONSE|>"};
  const char* sources[] = {kQwen,     kQwenCoder, kLlama, kMistral, kGranite, kNemotron, kCommand,
                           kDeepSeek, kKimi,      kGemma, kHarmony, kGlm,     kLfm};
  for (uint64_t round = 0; round < 2000; ++round) {
    uint64_t draws = 0;
    const auto draw = [&](size_t n) {
      return static_cast<size_t>(RandomBits(1, round, draws++) % n);
    };
    const char* source = sources[draw(std::size(sources))];
    std::string text;
    for (size_t n = draw(20); n > 0; --n) text += pieces[draw(std::size(pieces))];
    const Said whole = Read(Options(source), text, text.size() + 1);
    for (const size_t size : {size_t{1}, 2 + draw(5)}) {
      const Said cut = Read(Options(source), text, size);
      ASSERT_EQ(cut.content, whole.content) << source << ": " << text;
      ASSERT_EQ(cut.reasoning, whole.reasoning) << source << ": " << text;
      ASSERT_EQ(cut.calls, whole.calls) << source << ": " << text;
    }
  }
}

TEST(ChatOutput, WithoutToolsOrReasoningMarksAreText) {
  const std::string text =
      "<think>a</think>\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
  ChatOutputOptions options = Options(kQwen);
  options.tools = false;
  options.reasoning = false;
  const Said said = Read(options, text, 1);
  EXPECT_EQ(said.content, text);
  EXPECT_TRUE(said.calls.empty());
}

TEST(ChatOutput, PlainTextIsNotHeldBack) {
  ChatOutputOptions options = Options(kQwen);
  options.tools = false;
  ChatOutput output(options);
  EXPECT_EQ(output.Push("Hello").content, "Hello");
  EXPECT_EQ(output.Push(" ").content, " ");
  EXPECT_EQ(output.Push("a <").content, "a <");
}

TEST(ChatOutput, ArgumentsLeaveBeforeTheirEnd) {
  ChatOutput output(Options(kQwen));
  const ChatDelta first = output.Push("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"long");
  ASSERT_EQ(first.tool_calls.size(), 1u);
  EXPECT_EQ(first.tool_calls[0].arguments, "{\"a\": \"long");
  const ChatDelta second = output.Push(" text");
  ASSERT_EQ(second.tool_calls.size(), 1u);
  EXPECT_EQ(second.tool_calls[0].arguments, " text");
}

TEST(ChatOutput, StringsOfGlmAndLfm2LeaveBeforeTheirEnd) {
  const std::pair<const char*, const char*> heads[] = {
      {kGlm, "<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>"},
      {kLfm, "<|tool_call_start|>[f(text=\""}};
  for (const auto& [source, head] : heads) {
    ChatOutput output(Options(source));
    const ChatDelta begin = output.Push(head);
    ASSERT_EQ(begin.tool_calls.size(), 1u);
    EXPECT_EQ(begin.tool_calls[0].name, "f");
    EXPECT_EQ(begin.tool_calls[0].arguments, "{\"text\": \"");
    const ChatDelta delta = output.Push("line");
    ASSERT_EQ(delta.tool_calls.size(), 1u);
    EXPECT_EQ(delta.tool_calls[0].arguments, "line");
  }
}

TEST(ChatOutput, StringsOfXmlLeaveBeforeTheirEnd) {
  ChatOutput output(Options(kQwenCoder));
  output.Push("<tool_call><function=f><parameter=text>\n");
  const ChatDelta delta = output.Push("line\nline");
  ASSERT_EQ(delta.tool_calls.size(), 1u);
  EXPECT_EQ(delta.tool_calls[0].arguments, "line\\nline");
}

TEST(ChatOutput, OnlyCalls) {
  ChatOutputOptions options = Options(kQwen);
  options.only_calls = true;
  const std::string one = R"({"name": "f", "arguments": {"n": 1}})";
  EXPECT_EQ(Read(options, one, 1).calls, (std::vector<std::string>{"f:{\"n\": 1}"}));
  const std::string list = "[" + one + ", {\"name\": \"g\", \"arguments\": {}}]";
  EXPECT_EQ(Read(options, list, 1).calls, (std::vector<std::string>{"f:{\"n\": 1}", "g:{}"}));
  options.prompt_end = "<think>\n";
  const Said said = Read(options, "hm</think>" + one, 1);
  EXPECT_EQ(said.reasoning, "hm");
  EXPECT_EQ(said.calls, (std::vector<std::string>{"f:{\"n\": 1}"}));
}

TEST(ChatOutput, MistralIdsHaveNineLetters) {
  ChatOutput mistral(Options(kMistral));
  EXPECT_EQ(mistral.Push("[TOOL_CALLS]f[ARGS]{}").tool_calls.at(0).id.size(), 9u);
}

TEST(ChatOutput, SaysWhatTemplatesKnow) {
  EXPECT_TRUE(TemplateKnowsTools("{%- if tools is defined %}x{% endif %}"));
  EXPECT_TRUE(TemplateKnowsTools("{{ xml_tools }}"));
  EXPECT_FALSE(TemplateKnowsTools("tools {{ 'tools' }} {{ \"a\\\"tools\" }} {# {{ x }} tools #}"));
  EXPECT_FALSE(TemplateKnowsTools("{{ message.my_tools_here }}"));
  EXPECT_FALSE(TemplateKnowsTools("{{ tool"));
  EXPECT_TRUE(TemplateMarksReasoning(kQwen));
  EXPECT_TRUE(TemplateMarksReasoning(kHarmony));
  EXPECT_FALSE(TemplateMarksReasoning(kLlama));
}

TEST(ChatOutput, ConstraintsStartAfterOpenReasoning) {
  EXPECT_EQ(ConstraintStart(Options(kQwen, "assistant\n<think>\n")), "</think>");
  EXPECT_EQ(ConstraintStart(Options(kQwen, "assistant\n")), "");
  EXPECT_EQ(ConstraintStart(Options(kQwen, "<think>\n\n</think>\n\n")), "");
  EXPECT_EQ(ConstraintStart(Options(kHarmony)), "<|channel|>final<|message|>");
}

}  // namespace
}  // namespace sluice
