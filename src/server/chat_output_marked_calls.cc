// Calls whose parts stand between marks: the elements of Qwen3-Coder and GLM,
// Mistral's names, the sections of DeepSeek and Kimi.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <optional>
#include <utility>

#include "src/server/chat_output_calls.h"

namespace sluice {
namespace {

namespace json = boost::json;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

// How a family writes a call as elements.
struct ElementMarks {
  // Around the call's name; name_end empty: its line ends, or a mark begins.
  std::string_view name, name_end;
  // Around an argument's name, and around what it is, which may follow at once (value empty).
  std::string_view key, key_end, value, value_end;
  std::string_view end;  // of the call
  bool trims;            // a newline on either side is no part of a value
};
constexpr ElementMarks kFunctionMarks = {"<function=",   ">",           "<parameter=", ">", "",
                                         "</parameter>", "</function>", true};
constexpr ElementMarks kKeyedMarks = {
    "", "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "</tool_call>", false};

class ElementCall : public CallParser {
 public:
  ElementCall(const ElementMarks& marks, const ToolSchemas* schemas)
      : marks_(marks), schemas_(schemas) {}

  State Put(char c, CallWriter& writer) override {
    text_ += c;
    switch (phase_) {
      case Phase::kOpen:
        return PutOpen(writer);
      case Phase::kBetween:
        return PutBetween(writer);
      case Phase::kKey:
        if (text_.ends_with(marks_.key_end)) {
          key_ = text_.substr(0, text_.size() - marks_.key_end.size());
          NextPhase(marks_.value.empty() ? Phase::kValue : Phase::kBefore);
          BeginValue(writer);
        }
        return State::kMore;
      case Phase::kBefore:
        if (text_.ends_with(marks_.value)) NextPhase(Phase::kValue);
        return State::kMore;
      case Phase::kValue:
        PutValue(writer);
        return State::kMore;
    }
    return State::kFailed;
  }
  bool begun() const override { return begun_; }

 private:
  enum class Phase { kOpen, kBetween, kKey, kBefore, kValue };
  static constexpr size_t kMostName = 256;

  void NextPhase(Phase phase) {
    phase_ = phase;
    text_.clear();
  }

  State PutOpen(CallWriter& writer) {
    if (IsSpace(text_.back()) && text_.size() == 1) {
      text_.clear();
      return State::kMore;
    }
    const std::string_view open = marks_.name;
    if (text_.size() <= open.size()) {
      return open.starts_with(text_) ? State::kMore : State::kFailed;
    }
    const bool by_mark = !marks_.name_end.empty();
    const bool ends =
        by_mark ? text_.ends_with(marks_.name_end) : text_.back() == '\n' || text_.back() == '<';
    if (!ends) return text_.size() < kMostName ? State::kMore : State::kFailed;
    const size_t rest = by_mark ? marks_.name_end.size() : 1;
    name_ = Trim(std::string_view(text_).substr(open.size(), text_.size() - open.size() - rest));
    // Without marks around it, only what can be a name is one.
    if (name_.empty() || (!by_mark && name_.find_first_of(" \t{}\"") != name_.npos)) {
      return State::kFailed;
    }
    begun_ = true;
    writer.Begin(name_);
    const bool mark_began = text_.back() == '<' && !by_mark;
    NextPhase(Phase::kBetween);
    if (mark_began) text_ = "<";
    return State::kMore;
  }

  State PutBetween(CallWriter& writer) {
    if (text_.ends_with(marks_.key)) {
      NextPhase(Phase::kKey);
    } else if (text_.ends_with(marks_.end)) {
      writer.Arguments(any_ ? "}" : "{}");
      return State::kDone;
    }
    return State::kMore;
  }

  void BeginValue(CallWriter& writer) {
    type_ = schemas_->TypeOf(name_, key_);
    writer.Arguments((any_ ? ", " : "{") + QuotedJson(key_) + ": ");
    any_ = true;
    if (type_ == "string") writer.Arguments("\"");
    first_ = marks_.trims;
  }

  // Strings leave as they come, other values whole.
  void PutValue(CallWriter& writer) {
    if (std::exchange(first_, false) && text_ == "\n") {
      text_.clear();
      return;
    }
    const bool string = type_ == "string";
    if (!text_.ends_with(marks_.value_end)) {
      if (string) Stream(writer);
      return;
    }
    text_.resize(text_.size() - marks_.value_end.size());
    if (marks_.trims && text_.ends_with('\n')) text_.pop_back();
    const std::string whole = string ? QuotedJson(text_).substr(1) : TypedJson(text_, type_);
    writer.Arguments(whole);
    NextPhase(Phase::kBetween);
  }

  // What can no longer be the end of the value.
  void Stream(CallWriter& writer) {
    const size_t newline = text_.rfind('\n');
    const size_t angle = text_.rfind('<');
    size_t held = text_.size();
    if (angle != text_.npos &&
        marks_.value_end.starts_with(std::string_view(text_).substr(angle))) {
      held = angle;
    }
    if (marks_.trims && newline != text_.npos && newline + 1 == held) held = newline;
    if (held == 0) return;
    const std::string quoted = QuotedJson(std::string_view(text_).substr(0, held));
    writer.Arguments(std::string_view(quoted).substr(1, quoted.size() - 2));
    text_.erase(0, held);
  }

  const ElementMarks& marks_;
  const ToolSchemas* schemas_;
  Phase phase_ = Phase::kOpen;
  std::string text_, name_, key_, type_;
  bool begun_ = false, any_ = false, first_ = false;
};

class NamedCall : public CallParser {
 public:
  State Put(char c, CallWriter& writer) override {
    if (begun_) {
      writer.Arguments(std::string_view(&c, 1));
      return span_.Put(c) ? State::kDone : State::kMore;
    }
    if (c != '{') {
      head_ += c;
      return head_.size() < 512 ? State::kMore : State::kFailed;
    }
    // The name ends at [ARGS], [CALL_ID] or the arguments themselves.
    const std::string_view name = Trim(std::string_view(head_).substr(0, head_.find('[')));
    if (name.empty()) return State::kFailed;
    begun_ = true;
    writer.Begin(std::string(name));
    writer.Arguments("{");
    span_.Put('{');
    return State::kMore;
  }
  bool begun() const override { return begun_; }

 private:
  std::string head_;
  JsonSpan span_;
  bool begun_ = false;
};

// call:name{key:value,...}, where keys stand bare and <|"|> is the quote: Gemma 4.
class GemmaCall : public CallParser {
 public:
  State Put(char c, CallWriter& writer) override {
    if (!begun_) return PutHead(c, writer);
    held_ += c;
    while (!held_.empty() && !kQuote.starts_with(held_)) {
      const char first = held_.front();
      held_.erase(0, 1);
      if (PutArgument(first, writer)) return State::kDone;
    }
    if (held_ == kQuote) {
      held_.clear();
      in_string_ = !in_string_;
      writer.Arguments("\"");
    }
    return State::kMore;
  }
  bool begun() const override { return begun_; }

 private:
  static constexpr std::string_view kCall = "call:", kQuote = "<|\"|>";

  State PutHead(char c, CallWriter& writer) {
    if (c != '{') {
      head_ += c;
      const std::string_view known = std::string_view(head_).substr(0, kCall.size());
      return kCall.starts_with(known) && head_.size() < 512 ? State::kMore : State::kFailed;
    }
    if (head_.size() <= kCall.size()) return State::kFailed;
    begun_ = true;
    writer.Begin(head_.substr(kCall.size()));
    PutArgument(c, writer);
    return State::kMore;
  }

  // True: the arguments have ended.
  bool PutArgument(char c, CallWriter& writer) {
    if (in_string_) {
      const std::string quoted = QuotedJson(std::string_view(&c, 1));
      writer.Arguments(std::string_view(quoted).substr(1, quoted.size() - 2));
      return false;
    }
    const bool closes = c == '}' || c == ']';
    if (in_key_ && !closes && c != ':') {
      key_ += c;
      return false;
    }
    if (in_key_ && c == ':') writer.Arguments(QuotedJson(Trim(std::exchange(key_, std::string()))));
    writer.Arguments(std::string_view(&c, 1));
    if (c == '{' || c == '[') open_ += c;
    if (closes && !open_.empty()) open_.pop_back();
    in_key_ = !open_.empty() && open_.back() == '{' && (c == '{' || c == ',');
    return open_.empty();
  }

  std::string head_, held_, key_, open_;
  bool begun_ = false, in_string_ = false, in_key_ = false;
};

// Hands everything to the parser that the first character chose.
class ChosenCalls : public CallParser {
 public:
  using Choose = std::unique_ptr<CallParser> (*)(char first, const ToolSchemas* schemas);
  ChosenCalls(Choose choose, const ToolSchemas* schemas) : choose_(choose), schemas_(schemas) {}

  State Put(char c, CallWriter& writer) override {
    if (parser_ == nullptr) {
      if (IsSpace(c)) return State::kMore;
      parser_ = choose_(c, schemas_);
    }
    return parser_->Put(c, writer);
  }
  bool begun() const override { return parser_ != nullptr && parser_->begun(); }

 private:
  const Choose choose_;
  const ToolSchemas* schemas_;
  std::unique_ptr<CallParser> parser_;
};

class SectionCalls : public CallParser {
 public:
  explicit SectionCalls(const SectionMarks& marks) : marks_(marks) {}

  State Put(char c, CallWriter& writer) override {
    if (phase_ == Phase::kArguments) {
      writer.Arguments(std::string_view(&c, 1));
      if (span_.Put(c)) NextPhase(Phase::kAfter);
      return State::kMore;
    }
    text_ += c;
    switch (phase_) {
      case Phase::kBetween:
        if (text_.ends_with(marks_.section_end)) return any_ ? State::kDone : State::kFailed;
        if (text_.ends_with(marks_.begin)) NextPhase(Phase::kHead);
        return text_.size() < 512 ? State::kMore : any_ ? State::kDone : State::kFailed;
      case Phase::kHead:
        return PutHead();
      case Phase::kName:
        if (c == '\n') TakeName(Trim(text_));
        return State::kMore;
      case Phase::kBefore:
        return c == '{' ? Begin(writer) : State::kMore;
      case Phase::kAfter:
        if (text_.ends_with(marks_.end)) NextPhase(Phase::kBetween);
        return text_.size() < 512 ? State::kMore : State::kDone;
      case Phase::kArguments:
        break;
    }
    return State::kFailed;
  }
  bool begun() const override { return phase_ == Phase::kArguments || phase_ == Phase::kAfter; }

 private:
  enum class Phase { kBetween, kHead, kName, kBefore, kArguments, kAfter };

  void NextPhase(Phase phase) {
    phase_ = phase;
    text_.clear();
  }

  // "function" and the name in the next line (DeepSeek V3, R1), the name (V3.1), or
  // "functions.name:0" (Kimi).
  State PutHead() {
    if (text_.size() > 512) return State::kFailed;
    if (!text_.ends_with(marks_.separator)) return State::kMore;
    text_.resize(text_.size() - marks_.separator.size());
    std::string_view head = Trim(text_);
    if (head == "function") {
      NextPhase(Phase::kName);
      return State::kMore;
    }
    if (head.starts_with("functions.")) {
      head.remove_prefix(std::string_view("functions.").size());
      head = head.substr(0, head.rfind(':'));
    }
    TakeName(head);
    return name_.empty() ? State::kFailed : State::kMore;
  }

  void TakeName(std::string_view name) {
    name_ = std::string(name);
    NextPhase(Phase::kBefore);
  }

  State Begin(CallWriter& writer) {
    if (name_.empty()) return State::kFailed;
    any_ = true;
    writer.Begin(name_);
    writer.Arguments("{");
    span_.Reset();
    span_.Put('{');
    NextPhase(Phase::kArguments);
    return State::kMore;
  }

  const SectionMarks marks_;
  Phase phase_ = Phase::kBetween;
  std::string text_, name_;
  JsonSpan span_;
  bool any_ = false;
};

}  // namespace

std::string QuotedJson(std::string_view text) { return json::serialize(json::string(text)); }

std::string TypedJson(const std::string& text, const std::string& type) {
  if (type == "string") return QuotedJson(text);
  std::string word(Trim(text));
  if (word == "True" || word == "False" || word == "None") {  // Python's
    word = word == "True" ? "true" : word == "False" ? "false" : "null";
  }
  boost::system::error_code error;
  const json::value value = json::parse(word, error);
  if (error || value.is_string()) return QuotedJson(text);
  return word;
}

std::unique_ptr<CallParser> MakeXmlCall(const ToolSchemas* schemas) {
  return std::make_unique<ElementCall>(kFunctionMarks, schemas);
}

std::unique_ptr<CallParser> MakeKeyedCalls(const ToolSchemas* schemas) {
  return std::make_unique<ChosenCalls>(
      [](char first, const ToolSchemas* known) -> std::unique_ptr<CallParser> {
        if (first == '[' || first == '{') return MakeJsonCalls(false, known);
        return std::make_unique<ElementCall>(kKeyedMarks, known);
      },
      schemas);
}

std::unique_ptr<CallParser> MakeJsonOrXmlCalls(const ToolSchemas* schemas) {
  return std::make_unique<ChosenCalls>(
      [](char first, const ToolSchemas* known) {
        return first == '<' ? MakeXmlCall(known) : MakeJsonCalls(false, known);
      },
      schemas);
}

std::unique_ptr<CallParser> MakeNamedCall(const ToolSchemas* schemas) {
  return std::make_unique<ChosenCalls>(
      [](char first, const ToolSchemas* known) -> std::unique_ptr<CallParser> {
        if (first == '[' || first == '{') return MakeJsonCalls(false, known);
        return std::make_unique<NamedCall>();
      },
      schemas);
}

std::unique_ptr<CallParser> MakeGemmaCall() { return std::make_unique<GemmaCall>(); }

std::unique_ptr<CallParser> MakeSectionCalls(const SectionMarks& marks) {
  return std::make_unique<SectionCalls>(marks);
}

}  // namespace sluice
