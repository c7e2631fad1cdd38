// Values from JSON, and to JSON as Python's json.dumps writes it.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <cstdio>

#include "src/text/jinja/interpreter.h"

namespace sluice::jinja {

namespace {

constexpr size_t kEnough = size_t{1} << 27;  // past this the text will be refused anyway

void AppendEscaped(const Text& text, bool ascii, Text& out) {
  out.Append("\"", text.ContentAt(0));
  size_t kept = 0;
  ForEachChar(text, [&](uint32_t code, size_t from, size_t to, bool content) {
    constexpr std::string_view kNamed = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    if (code >= 0x20 && code != '"' && code != '\\' && (!ascii || code < 0x7F)) return;
    out.Append(text, kept, from);
    kept = to;
    const size_t named = code < 0x80 ? kNamed.find(static_cast<char>(code)) : kNamed.npos;
    if (named != kNamed.npos) {
      const char pair[] = {'\\', kLetters[named]};
      return out.Append(std::string_view(pair, 2), content);
    }
    char buffer[16];
    if (code >= 0x10000) {
      std::snprintf(buffer, sizeof(buffer), "\\u%04x\\u%04x",
                    static_cast<unsigned>(0xD800 + ((code - 0x10000) >> 10)),
                    static_cast<unsigned>(0xDC00 + ((code - 0x10000) & 0x3FF)));
    } else {
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", static_cast<unsigned>(code));
    }
    out.Append(buffer, content);
  });
  out.Append(text, kept, text.size());
  out.Append("\"", text.ContentAt(0));
}

std::string NumberText(const Value& v) {
  if (!v.Is(Kind::kFloat)) return IntText(v.integer);
  if (std::isnan(v.number)) return "NaN";
  if (std::isinf(v.number)) return v.number < 0 ? "-Infinity" : "Infinity";
  return FloatRepr(v.number);
}

void NewLine(const JsonOptions& options, size_t level, Text& out) {
  if (!options.indented) return;
  out.Append("\n", false);
  for (size_t i = 0; i < level; ++i) out.Append(options.indent);
}

Status AppendKey(const Value& key, const JsonOptions& options, Text& out) {
  switch (key.kind) {
    case Kind::kText:
      AppendEscaped(key.text(), options.ascii, out);
      return Status();
    case Kind::kNone:
      out.Append("\"null\"", false);
      return Status();
    case Kind::kBool:
      out.Append(key.truth ? "\"true\"" : "\"false\"", false);
      return Status();
    case Kind::kInt:
    case Kind::kFloat:
      out.Append('"' + NumberText(key) + '"', false);
      return Status();
    default:
      return Error(std::string("tojson: a key must be a string or a number, found ") +
                   TypeName(key));
  }
}

Status AppendObject(const DictObject& dict, const JsonOptions& options, size_t level, Text& out) {
  std::vector<std::pair<Value, Value>> entries = dict.entries;
  if (options.sort_keys) {
    const bool texts = std::all_of(entries.begin(), entries.end(),
                                   [](const auto& e) { return e.first.Is(Kind::kText); });
    const bool numbers = std::all_of(entries.begin(), entries.end(),
                                     [](const auto& e) { return e.first.IsNumber(); });
    if (!texts && !numbers) return Error("tojson: keys of several types cannot be sorted");
    std::stable_sort(entries.begin(), entries.end(), [texts](const auto& a, const auto& b) {
      return texts ? a.first.text().bytes() < b.first.text().bytes()
                   : a.first.AsDouble() < b.first.AsDouble();
    });
  }
  out.Append("{", false);
  bool first = true;
  for (const auto& [key, value] : entries) {
    if (out.size() > kEnough) return Status();
    if (!std::exchange(first, false)) out.Append(options.item_separator);
    NewLine(options, level + 1, out);
    RETURN_IF_ERROR(AppendKey(key, options, out));
    out.Append(options.key_separator);
    RETURN_IF_ERROR(AppendJson(value, options, level + 1, out));
  }
  if (!entries.empty()) NewLine(options, level, out);
  out.Append("}", false);
  return Status();
}

}  // namespace

Status AppendJson(const Value& value, const JsonOptions& options, size_t level, Text& out) {
  switch (value.kind) {
    case Kind::kNone:
      out.Append("null", false);
      return Status();
    case Kind::kBool:
      out.Append(value.truth ? "true" : "false", false);
      return Status();
    case Kind::kInt:
    case Kind::kFloat:
      out.Append(NumberText(value), false);
      return Status();
    case Kind::kText:
      AppendEscaped(value.text(), options.ascii, out);
      return Status();
    case Kind::kDict:
      return AppendObject(value.dict(), options, level, out);
    case Kind::kList:
    case Kind::kTuple: {
      out.Append("[", false);
      bool first = true;
      for (const Value& item : value.list().items) {
        if (out.size() > kEnough) return Status();
        if (!std::exchange(first, false)) out.Append(options.item_separator);
        NewLine(options, level + 1, out);
        RETURN_IF_ERROR(AppendJson(item, options, level + 1, out));
      }
      if (!value.list().items.empty()) NewLine(options, level, out);
      out.Append("]", false);
      return Status();
    }
    default:
      return Error(std::string("tojson: a value of type ") + TypeName(value) +
                   " cannot be written as JSON");
  }
}

Value Interpreter::FromJson(const boost::json::value& json, bool content, int depth) {
  switch (json.kind()) {
    case boost::json::kind::null:
      return Value::None();
    case boost::json::kind::bool_:
      return Value::Of(json.get_bool());
    case boost::json::kind::int64:
      return Value::Of(static_cast<Int>(json.get_int64()));
    case boost::json::kind::uint64:
      return Value::Of(static_cast<Int>(json.get_uint64()));
    case boost::json::kind::double_:
      return Value::Of(json.get_double());
    case boost::json::kind::string:
      return heap_.MakeText(ReplaceBadUtf8(json.get_string()), content);
    case boost::json::kind::array: {
      std::vector<Value> items;
      if (depth <= limits_.value_depth) {
        for (const auto& item : json.get_array())
          items.push_back(FromJson(item, content, depth + 1));
      }
      return heap_.MakeList(std::move(items));
    }
    case boost::json::kind::object: {
      const Value dict = heap_.MakeDict();
      for (const auto& entry : json.get_object()) {
        if (depth > limits_.value_depth) break;
        bool frame = false;
        if (entry.key() == "role" && entry.value().is_string()) {
          const auto& roles = options_.frame_roles;
          frame = std::find(roles.begin(), roles.end(),
                            std::string_view(entry.value().get_string())) != roles.end();
        }
        heap_.SetEntry(dict, heap_.MakeText(ReplaceBadUtf8(entry.key()), content),
                       FromJson(entry.value(), content && !frame, depth + 1));
      }
      return dict;
    }
  }
  return Value::None();
}

void Interpreter::DefineVariables(const boost::json::object& variables) {
  globals_.resize(program_.symbols.size());
  has_global_.resize(program_.symbols.size());
  for (size_t i = 0; i < program_.symbols.size(); ++i) {
    const std::string& name = program_.symbols[i];
    if (const boost::json::value* json = variables.if_contains(name); json != nullptr) {
      globals_[i] = FromJson(*json, name != "bos_token" && name != "eos_token", 0);
      has_global_[i] = true;
    } else if (const Builtin function = FindFunction(name); function != nullptr) {
      auto* object = heap_.New<FunctionObject>();
      object->function = function;
      globals_[i] = Value::Of(Kind::kFunction, object);
      has_global_[i] = true;
    }
  }
}

}  // namespace sluice::jinja
