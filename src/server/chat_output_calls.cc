#include "src/server/chat_output_calls.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "src/server/random_id.h"

namespace sluice {
namespace {

namespace json = boost::json;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The string that JSON text stands for; the text itself if it is none.
std::string Unquoted(const std::string& text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_string()) return text;
  return std::string(std::string_view(value.get_string()));
}

// One {"name": ..., "arguments": ...}.
class JsonCall {
 public:
  JsonCall(bool strict, const ToolSchemas* schemas) : strict_(strict), schemas_(schemas) {}

  CallParser::State Put(char c, CallWriter& writer) {
    using State = CallParser::State;
    switch (phase_) {
      case Phase::kBefore:
        if (IsSpace(c)) return State::kMore;
        phase_ = Phase::kKeyStart;
        return c == '{' ? State::kMore : State::kFailed;
      case Phase::kKeyStart:
        if (IsSpace(c) || c == ',') return State::kMore;
        if (c == '}') return Close(writer);
        key_ = '"';
        span_.Reset();
        span_.Put('"');
        phase_ = Phase::kKey;
        return c == '"' ? State::kMore : Fail();
      case Phase::kKey:
        key_ += c;
        if (!span_.Put(c)) return State::kMore;
        phase_ = Phase::kColon;
        return TakeKey() ? State::kMore : Fail();
      case Phase::kColon:
        if (IsSpace(c)) return State::kMore;
        phase_ = Phase::kValueStart;
        return c == ':' ? State::kMore : Fail();
      case Phase::kValueStart:
        if (IsSpace(c)) return State::kMore;
        if (!StartValue(c, writer)) return Fail();
        phase_ = Phase::kValue;
        [[fallthrough]];
      case Phase::kValue:
        return PutValue(c, writer);
    }
    return State::kFailed;
  }

  bool begun() const { return begun_; }

 private:
  enum class Phase { kBefore, kKeyStart, kKey, kColon, kValueStart, kValue };
  enum class Kind { kName, kArguments, kOther };

  // What is broken after the call's beginning went out is the client's to judge.
  CallParser::State Fail() {
    return begun_ ? CallParser::State::kDone : CallParser::State::kFailed;
  }

  bool TakeKey() {
    const std::string key = Unquoted(key_);
    if (key == "name" || key == "tool_name" || key == "function") {
      kind_ = Kind::kName;
    } else if (key == "arguments" || key == "parameters" || key == "args") {
      kind_ = Kind::kArguments;
    } else {
      kind_ = Kind::kOther;
      return !strict_ || key == "type" || key == "id";
    }
    return true;
  }

  bool StartValue(char c, CallWriter& writer) {
    value_.clear();
    span_.Reset();
    scalar_ = c != '"' && c != '{' && c != '[';
    if (kind_ == Kind::kName && c != '"') return false;
    if (kind_ != Kind::kArguments) return true;
    if (strict_ && c != '{') return false;
    streams_ = c == '{';
    return !streams_ || !has_name_ || Begin(writer);
  }

  CallParser::State PutValue(char c, CallWriter& writer) {
    if (scalar_) {
      if (c == ',' || c == '}' || IsSpace(c)) {
        phase_ = Phase::kKeyStart;
        if (!TakeValue(writer)) return Fail();
        return c == '}' ? Close(writer) : CallParser::State::kMore;
      }
      value_ += c;
      return CallParser::State::kMore;
    }
    const bool last = span_.Put(c);
    if (kind_ == Kind::kArguments && streams_ && begun_) {
      writer.Arguments(std::string_view(&c, 1));
    } else {
      value_ += c;
    }
    if (!last) return CallParser::State::kMore;
    phase_ = Phase::kKeyStart;
    return TakeValue(writer) ? CallParser::State::kMore : Fail();
  }

  // The value that has just ended.
  bool TakeValue(CallWriter& writer) {
    if (kind_ == Kind::kName) {
      name_ = Unquoted(value_);
      has_name_ = !name_.empty();
      if (!has_name_) return false;
    } else if (kind_ == Kind::kArguments && !begun_) {
      // Early arguments wait for the name. Some models write them as a string of JSON, or null.
      arguments_ = value_[0] == '"' ? Unquoted(value_) : value_;
      if (scalar_) arguments_ = "{}";
      has_arguments_ = true;
    }
    if (!has_name_ || !has_arguments_ || begun_) return true;
    if (!Begin(writer)) return false;
    writer.Arguments(arguments_);
    return true;
  }

  bool Begin(CallWriter& writer) {
    if (strict_ && !schemas_->empty() && !schemas_->Has(name_)) return false;
    begun_ = true;
    writer.Begin(name_);
    return true;
  }

  CallParser::State Close(CallWriter& writer) {
    if (begun_) return CallParser::State::kDone;
    if (!has_name_ || strict_ || !Begin(writer)) return CallParser::State::kFailed;
    writer.Arguments("{}");
    return CallParser::State::kDone;
  }

  const bool strict_;
  const ToolSchemas* schemas_;
  Phase phase_ = Phase::kBefore;
  Kind kind_ = Kind::kOther;
  JsonSpan span_;
  std::string key_, value_, name_, arguments_;
  bool scalar_ = false, streams_ = false;
  bool has_name_ = false, has_arguments_ = false, begun_ = false;
};

class JsonCalls : public CallParser {
 public:
  JsonCalls(bool strict, const ToolSchemas* schemas) : strict_(strict), schemas_(schemas) {}

  State Put(char c, CallWriter& writer) override {
    if (inside_) return PutInside(c, writer);
    if (IsSpace(c) || (list_ && c == ',')) return State::kMore;
    if (c == '[' && !list_ && !strict_) {
      list_ = true;
      return State::kMore;
    }
    if (c == ']' && list_) return any_ ? State::kDone : State::kFailed;
    if (c != '{') return State::kFailed;
    inside_ = true;
    call_ = std::make_unique<JsonCall>(strict_, schemas_);
    return PutInside(c, writer);
  }
  bool begun() const override { return inside_ && call_->begun(); }

 private:
  State PutInside(char c, CallWriter& writer) {
    const State state = call_->Put(c, writer);
    if (state != State::kDone) return state;
    inside_ = false;
    any_ = true;
    return list_ ? State::kMore : State::kDone;
  }

  const bool strict_;
  const ToolSchemas* schemas_;
  std::unique_ptr<JsonCall> call_;  // the one being read, or the last
  bool list_ = false, inside_ = false, any_ = false;
};

}  // namespace

void CallWriter::Begin(std::string name) {
  ToolCallDelta call;
  call.index = count_++;
  call.id = short_ids_ ? RandomId("", 9) : RandomId("call_", 24);
  call.name = std::move(name);
  delta_->tool_calls.push_back(std::move(call));
}

void CallWriter::Arguments(std::string_view text) {
  std::vector<ToolCallDelta>& calls = delta_->tool_calls;
  if (calls.empty() || calls.back().index + 1 != count_) {
    calls.emplace_back();
    calls.back().index = count_ - 1;
  }
  calls.back().arguments += text;
}

const json::object* ToolSchemas::Function(std::string_view name) const {
  for (const json::value& tool : tools_) {
    const json::value* function =
        tool.is_object() ? tool.get_object().if_contains("function") : nullptr;
    if (function == nullptr || !function->is_object()) continue;
    const json::value* said = function->get_object().if_contains("name");
    if (said != nullptr && said->is_string() && said->get_string() == name) {
      return &function->get_object();
    }
  }
  return nullptr;
}

std::string ToolSchemas::TypeOf(std::string_view tool, std::string_view argument) const {
  const json::object* at = Function(tool);
  for (const std::string_view key :
       {std::string_view("parameters"), std::string_view("properties"), argument}) {
    const json::value* next = at != nullptr ? at->if_contains(key) : nullptr;
    at = next != nullptr && next->is_object() ? &next->get_object() : nullptr;
  }
  const json::value* type = at != nullptr ? at->if_contains("type") : nullptr;
  return type != nullptr && type->is_string() ? std::string(std::string_view(type->get_string()))
                                              : std::string();
}

bool JsonSpan::Put(char c) {
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      return depth_ == 0;
    }
    return false;
  }
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if ((c == '}' || c == ']') && depth_ > 0) return --depth_ == 0;
  return false;
}

std::unique_ptr<CallParser> MakeJsonCalls(bool strict, const ToolSchemas* schemas) {
  return std::make_unique<JsonCalls>(strict, schemas);
}

}  // namespace sluice
