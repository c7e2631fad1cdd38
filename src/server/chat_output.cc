#include "src/server/chat_output.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "src/server/chat_output_parser.h"

namespace sluice {
namespace {

using Kind = CallMarks::Kind;

bool Mentions(std::string_view source, std::string_view word) {
  return source.find(word) != std::string_view::npos;
}

CallMarks Between(Kind kind, std::string open, std::string close) {
  CallMarks marks;
  marks.kind = kind;
  marks.open = std::move(open);
  marks.close = std::move(close);
  return marks;
}

CallMarks Section(std::string open, SectionMarks sections, bool keep_open = false) {
  CallMarks marks;
  marks.kind = Kind::kSections;
  marks.open = std::move(open);
  marks.sections = std::move(sections);
  marks.keep_open = keep_open;
  return marks;
}

CallMarks BareJson(std::string open) {
  CallMarks marks = Between(Kind::kBareJson, std::move(open), "");
  marks.separators = ";";
  return marks;
}

// <｜...｜> with full-width bars and lower one eighth blocks for blanks.
#define DEEPSEEK(words) "<\uFF5C" words "\uFF5C>"

void FindCalls(std::string_view source, FamilyMarks* family) {
  std::vector<CallMarks>& calls = family->calls;
  if (Mentions(source, "<seed:tool_call>")) {
    calls.push_back(Between(Kind::kJsonOrXml, "<seed:tool_call>", "</seed:tool_call>"));
  } else if (Mentions(source, "<function=")) {
    // Qwen3-Coder forgets the mark around it now and then.
    calls.push_back(Between(Kind::kXml, "<function=", "</tool_call>"));
    calls.back().keep_open = true;
  }
  if (Mentions(source, "<arg_key>")) {
    calls.push_back(Between(Kind::kKeyed, "<tool_call>", "</tool_call>"));
  } else if (Mentions(source, "<tool_call>")) {
    calls.push_back(Between(Kind::kJsonOrXml, "<tool_call>", "</tool_call>"));
    calls.back().separators = "\n";
  }
  // Some of LFM2's templates mark the list of tools and leave the calls to the model.
  if (Mentions(source, "<|tool_call_start|>") || Mentions(source, "<|tool_list_start|>")) {
    calls.push_back(Between(Kind::kPython, "<|tool_call_start|>", "<|tool_call_end|>"));
  }
  if (Mentions(source, "<|tool_call|>")) {
    calls.push_back(Between(Kind::kJson, "<|tool_call|>", "</tool_call>"));
  }
  if (Mentions(source, "<|tool_call>")) {
    calls.push_back(Between(Kind::kGemma, "<|tool_call>", "<tool_call|>"));
  }
  if (Mentions(source, "<TOOLCALL>")) {
    calls.push_back(Between(Kind::kJson, "<TOOLCALL>", "</TOOLCALL>"));
  }
  if (Mentions(source, "<|START_ACTION|>")) {
    calls.push_back(Between(Kind::kJson, "<|START_ACTION|>", "<|END_ACTION|>"));
  }
  if (Mentions(source, "[TOOL_CALLS]")) {
    calls.push_back(Between(Kind::kNamed, "[TOOL_CALLS]", ""));
    family->short_ids = true;
  }
  if (Mentions(source, DEEPSEEK("tool\u2581calls\u2581begin"))) {
    const SectionMarks marks = {DEEPSEEK("tool\u2581call\u2581begin"), DEEPSEEK("tool\u2581sep"),
                                DEEPSEEK("tool\u2581call\u2581end"),
                                DEEPSEEK("tool\u2581calls\u2581end")};
    calls.push_back(Section(DEEPSEEK("tool\u2581calls\u2581begin"), marks));
    calls.push_back(Section(marks.begin, marks, true));
  }
  if (Mentions(source, "<|tool_calls_section_begin|>")) {
    calls.push_back(Section("<|tool_calls_section_begin|>",
                            {"<|tool_call_begin|>", "<|tool_call_argument_begin|>",
                             "<|tool_call_end|>", "<|tool_calls_section_end|>"}));
  }
  const bool llama = Mentions(source, "<|python_tag|>") || Mentions(source, "ipython");
  if (calls.empty() && !llama) {
    calls.push_back(Between(Kind::kJsonOrXml, "<tool_call>", "</tool_call>"));
    calls.back().separators = "\n";
  }
  if (llama) calls.push_back(BareJson("<|python_tag|>"));
  if (llama || !Mentions(source, "tool_call")) calls.push_back(BareJson(""));
}

void FindReasoning(std::string_view source, FamilyMarks* family) {
  constexpr std::pair<const char*, const char*> kMarks[] = {
      {"<think>", "</think>"},
      {"[THINK]", "[/THINK]"},
      {"<seed:think>", "</seed:think>"},
      {"<|START_THINKING|>", "<|END_THINKING|>"},
      {"<|channel>thought", "<channel|>"},
  };
  for (const auto& [open, close] : kMarks) {
    if (!Mentions(source, open) && !Mentions(source, close)) continue;
    family->think_open = open;
    family->think_close = close;
    break;
  }
  if (Mentions(source, "<response>")) family->dropped = {"<response>", "</response>"};
  if (Mentions(source, "<|START_RESPONSE|>")) {
    family->dropped = {"<|START_RESPONSE|>", "<|END_RESPONSE|>"};
  }
}

// The reasoning that the prompt opened and did not close.
bool PromptOpensReasoning(const FamilyMarks& family, std::string_view prompt_end) {
  if (family.think_open.empty()) return false;
  while (!prompt_end.empty() && std::isspace(static_cast<unsigned char>(prompt_end.back()))) {
    prompt_end.remove_suffix(1);
  }
  return prompt_end.ends_with(family.think_open);
}

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether `name` stands as a name in the template's code: not in its text, not in a string.
bool UsesVariable(std::string_view source, std::string_view name) {
  for (size_t i = 0; i + 1 < source.size(); ++i) {
    if (source[i] != '{' || (source[i + 1] != '{' && source[i + 1] != '%')) continue;
    const std::string_view close = source[i + 1] == '{' ? "}}" : "%}";
    for (i += 2; i < source.size() && !source.substr(i).starts_with(close); ++i) {
      if (source[i] == '"' || source[i] == '\'') {
        const char quote = source[i];
        for (++i; i < source.size() && source[i] != quote; ++i) i += source[i] == '\\' ? 1 : 0;
      } else if (IsNameChar(source[i])) {
        size_t end = i;
        while (end < source.size() && IsNameChar(source[end])) ++end;
        if (source.substr(i, end - i) == name) return true;
        i = end - 1;
      }
    }
  }
  return false;
}

}  // namespace

FamilyMarks FindFamily(std::string_view source) {
  FamilyMarks family;
  family.harmony = Mentions(source, "<|channel|>") && Mentions(source, "<|message|>");
  if (family.harmony) return family;
  FindCalls(source, &family);
  FindReasoning(source, &family);
  return family;
}

class ChatOutput::Impl {
 public:
  explicit Impl(const ChatOutputOptions& options)
      : writer_(Mentions(options.template_source, "[TOOL_CALLS]")), schemas_(options.tool_list) {
    FamilyMarks family = FindFamily(options.template_source);
    if (family.harmony && !options.only_calls) {
      parser_ = MakeHarmonyParser(options.reasoning, options.tools, &writer_);
      return;
    }
    const bool inside = options.reasoning && PromptOpensReasoning(family, options.prompt_end);
    if (!options.reasoning || (options.only_calls && !inside)) family.think_open.clear();
    if (!options.tools) family.calls.clear();
    if (options.only_calls) {
      family.dropped.clear();
      family.calls = {Between(Kind::kJson, "", "")};
    }
    parser_ = MakeTaggedParser(std::move(family), inside, &writer_, &schemas_);
  }

  ChatDelta Push(std::string_view text) {
    ChatDelta delta;
    writer_.set_delta(&delta);
    parser_->Push(text, delta);
    return delta;
  }
  ChatDelta Finish() {
    ChatDelta delta;
    writer_.set_delta(&delta);
    parser_->Finish(delta);
    return delta;
  }
  size_t tool_calls() const { return writer_.count(); }

 private:
  CallWriter writer_;
  const ToolSchemas schemas_;
  std::unique_ptr<ChatOutputParser> parser_;
};

ChatOutput::ChatOutput(const ChatOutputOptions& options) : impl_(std::make_unique<Impl>(options)) {}
ChatOutput::~ChatOutput() = default;
ChatDelta ChatOutput::Push(std::string_view text) { return impl_->Push(text); }
ChatDelta ChatOutput::Finish() { return impl_->Finish(); }
size_t ChatOutput::tool_calls() const { return impl_->tool_calls(); }

std::vector<int32_t> ChatMarkIds(const Tokenizer& tokenizer, const ChatOutputOptions& options) {
  const FamilyMarks family = FindFamily(options.template_source);
  std::vector<std::string> marks;
  if (family.harmony) {
    marks = {"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>"};
  }
  if (options.reasoning) {
    marks.insert(marks.end(), {family.think_open, family.think_close});
    // Gemma's mark is a token and a word.
    marks.push_back(family.think_open.substr(0, family.think_open.find('>') + 1));
    marks.insert(marks.end(), family.dropped.begin(), family.dropped.end());
  }
  for (const CallMarks& call : family.calls) {
    if (!options.tools) break;
    const SectionMarks& s = call.sections;
    marks.insert(marks.end(), {call.open, call.close, s.begin, s.separator, s.end, s.section_end});
    if (call.kind == Kind::kNamed) marks.insert(marks.end(), {"[ARGS]", "[CALL_ID]"});
    if (call.kind == Kind::kGemma) marks.push_back("<|\"|>");
  }
  std::vector<int32_t> ids;
  for (const std::string& mark : marks) {
    const std::optional<int32_t> id = tokenizer.SpecialId(mark);
    if (id.has_value() && tokenizer.type(*id) == TokenType::kControl) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::string ConstraintStart(const ChatOutputOptions& options) {
  const FamilyMarks family = FindFamily(options.template_source);
  if (family.harmony) return options.only_calls ? "" : "<|channel|>final<|message|>";
  return PromptOpensReasoning(family, options.prompt_end) ? family.think_close : "";
}

bool TemplateKnowsTools(std::string_view source) {
  return UsesVariable(source, "tools") || UsesVariable(source, "xml_tools");
}

bool TemplateMarksReasoning(std::string_view source) {
  const FamilyMarks family = FindFamily(source);
  return family.harmony || !family.think_open.empty();
}

}  // namespace sluice
