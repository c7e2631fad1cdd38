// Calls as Python writes them: [f(a="x", n=[1, None]), g()]. Arguments leave as
// JSON while they come.
#include <cctype>
#include <optional>
#include <utility>

#include "src/server/chat_output_calls.h"

namespace sluice {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
         c == '+';
}

// A string literal, from the character after its quote on.
class PythonString {
 public:
  explicit PythonString(char quote) : quote_(quote) {}

  // Appends to `out` what c adds to the JSON string; true: the literal has ended.
  bool Put(char c, std::string* out) {
    if (code_left_ > 0) {
      *out += c;
      --code_left_;
    } else if (std::exchange(escaped_, false)) {
      Escape(c, out);
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == quote_) {
      return true;
    } else {
      Plain(c, out);
    }
    return false;
  }

 private:
  static void Plain(char c, std::string* out) {
    const std::string quoted = QuotedJson(std::string_view(&c, 1));
    out->append(quoted, 1, quoted.size() - 2);
  }

  void Escape(char c, std::string* out) {
    if (c == '\n') return;  // the line goes on
    if (c == 'x' || c == 'u') {
      *out += c == 'x' ? "\\u00" : "\\u";
      code_left_ = c == 'x' ? 2 : 4;
    } else if (std::string_view("ntrbf").find(c) != std::string_view::npos) {
      *out += '\\';
      *out += c;
    } else {
      // Python keeps the backslash before what it does not know.
      if (c != '\\' && c != '"' && c != '\'') Plain('\\', out);
      Plain(c, out);
    }
  }

  const char quote_;
  bool escaped_ = false;
  int code_left_ = 0;  // digits of \x and \u
};

class PythonCalls : public CallParser {
 public:
  explicit PythonCalls(const ToolSchemas* schemas) : schemas_(schemas) {}

  State Put(char c, CallWriter& writer) override {
    if (json_ != nullptr) return json_->Put(c, writer);
    switch (phase_) {
      case Phase::kNext:
        return PutNext(c, writer);
      case Phase::kName:
        if (IsWord(c)) return Name(c);
        phase_ = Phase::kKey;
        return c == '(' ? State::kMore : State::kFailed;
      case Phase::kKey:
        return PutKey(c, writer);
      case Phase::kValue:
        return PutValue(c, writer);
    }
    return State::kFailed;
  }
  bool begun() const override { return json_ != nullptr ? json_->begun() : begun_; }

 private:
  enum class Phase { kNext, kName, kKey, kValue };
  static constexpr size_t kMostName = 256;

  // Before a call, or after the last one.
  State PutNext(char c, CallWriter& writer) {
    if (IsSpace(c) || (any_ && c == ',')) return State::kMore;
    if (c == '[' && !list_) {
      list_ = true;
      return State::kMore;
    }
    if (c == ']' && list_) return any_ ? State::kDone : State::kFailed;
    if (c == '{' && !any_) {
      json_ = MakeJsonCalls(false, schemas_);
      if (list_) json_->Put('[', writer);
      return json_->Put(c, writer);
    }
    if (!IsWord(c)) return State::kFailed;
    name_.clear();
    phase_ = Phase::kName;
    return Name(c);
  }

  State Name(char c) {
    name_ += c;
    return name_.size() < kMostName ? State::kMore : State::kFailed;
  }

  // The call begins with its first argument's name, or its end: what has arguments without names
  // is none.
  State PutKey(char c, CallWriter& writer) {
    if (IsWord(c)) {
      key_ += c;
      return key_.size() < kMostName ? State::kMore : Broken(writer);
    }
    if (IsSpace(c) || (c == ',' && begun_ && key_.empty())) return State::kMore;
    if (c == ')' && key_.empty()) return End(writer);
    if (c != '=' || key_.empty()) return Broken(writer);
    writer.Arguments(Begin(writer) + QuotedJson(std::exchange(key_, std::string())) + ": ");
    phase_ = Phase::kValue;
    comma_ = false;
    return State::kMore;
  }

  // What stands before the next argument.
  std::string Begin(CallWriter& writer) {
    if (begun_) return ", ";
    begun_ = any_ = true;
    writer.Begin(name_);
    return "{";
  }

  State PutValue(char c, CallWriter& writer) {
    std::string out;
    if (string_.has_value()) {
      if (string_->Put(c, &out)) {
        out += '"';
        string_.reset();
      }
      writer.Arguments(out);
      return State::kMore;
    }
    if (IsWord(c)) {
      word_ += c;
      return State::kMore;
    }
    if (!word_.empty())
      writer.Arguments(Comma() + TypedJson(std::exchange(word_, std::string()), ""));
    if (IsSpace(c)) return State::kMore;
    if (c == '"' || c == '\'') {
      string_.emplace(c);
      out = Comma() + '"';
    } else if (c == '[' || c == '(' || c == '{') {
      out = Comma() + (c == '{' ? '{' : '[');
      open_ += c == '{' ? '}' : ']';
    } else if (c == ']' || c == ')' || c == '}') {
      if (open_.empty()) return c == ')' ? End(writer) : Broken(writer);
      out = open_.back();
      open_.pop_back();
      comma_ = false;  // Python allows one before a bracket
    } else if (c == ',') {
      if (open_.empty()) phase_ = Phase::kKey;
      comma_ = true;
    } else if (c == ':') {
      out = ": ";
    } else {
      return Broken(writer);
    }
    writer.Arguments(out);
    return State::kMore;
  }

  std::string Comma() { return std::exchange(comma_, false) ? ", " : ""; }

  State End(CallWriter& writer) {
    const std::string begin = begun_ ? "" : Begin(writer);
    writer.Arguments(begin + "}");
    phase_ = Phase::kNext;
    begun_ = false;
    return list_ ? State::kMore : State::kDone;
  }

  // What is broken after the call's beginning went out is the client's to judge.
  State Broken(CallWriter& writer) {
    if (!begun_) return State::kFailed;
    writer.Arguments("}");
    return State::kDone;
  }

  const ToolSchemas* schemas_;
  std::unique_ptr<CallParser> json_;  // it is JSON after all
  Phase phase_ = Phase::kNext;
  std::string name_, key_, word_, open_;  // open_: the brackets that are to come
  std::optional<PythonString> string_;
  bool list_ = false, any_ = false, begun_ = false;
  bool comma_ = false;  // one was met, and nothing after it yet
};

}  // namespace

std::unique_ptr<CallParser> MakePythonCalls(const ToolSchemas* schemas) {
  return std::make_unique<PythonCalls>(schemas);
}

}  // namespace sluice
