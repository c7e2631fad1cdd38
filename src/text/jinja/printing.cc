// How Python prints values: str() and repr().
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "src/text/jinja/interpreter.h"
#include "src/text/jinja/value.h"

namespace sluice::jinja {
namespace {

void AppendEscape(uint32_t code, bool content, Text& out) {
  char text[16];
  const char* format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
  std::snprintf(text, sizeof(text), format, static_cast<unsigned>(code));
  out.Append(text, content);
}

void AppendTextRepr(const Text& text, Text& out) {
  const bool single = text.bytes().find('\'') != std::string::npos;
  const bool twice = text.bytes().find('"') != std::string::npos;
  const char quote = single && !twice ? '"' : '\'';
  const std::string_view mark(&quote, 1);
  out.Append(mark, text.ContentAt(0));
  ForEachChar(text, [&](uint32_t code, size_t from, size_t to, bool content) {
    if (code == '\\' || code == static_cast<uint32_t>(quote)) {
      out.Append("\\", content);
    } else if (code == '\n') {
      return out.Append("\\n", content);
    } else if (code == '\r') {
      return out.Append("\\r", content);
    } else if (code == '\t') {
      return out.Append("\\t", content);
    } else if (!IsPrintable(code)) {
      return AppendEscape(code, content, out);
    }
    out.Append(text, from, to);
  });
  out.Append(mark, text.ContentAt(0));
}

constexpr size_t kEnough = size_t{1} << 27;  // past this the text will be refused anyway

// A namespace may hold itself, which lists and dicts cannot.
void AppendNested(const Value& v, Text& out) {
  if (v.Is(Kind::kNamespace)) {
    out.Append("<Namespace {...}>", false);
  } else if (out.size() < kEnough) {
    AppendRepr(v, out);
  }
}

void AppendItems(const std::vector<Value>& items, size_t from, Text& out) {
  for (size_t i = from; i < items.size(); ++i) {
    if (i > from) out.Append(", ", false);
    AppendNested(items[i], out);
  }
}

void AppendEntries(const DictObject& dict, Kind kind, Text& out) {
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!first) out.Append(", ", false);
    first = false;
    if (kind == Kind::kItems) out.Append("(", false);
    if (kind != Kind::kValues) AppendNested(key, out);
    if (kind == Kind::kItems) out.Append(", ", false);
    if (kind == Kind::kDict) out.Append(": ", false);
    if (kind != Kind::kKeys) {
      AppendNested(value, out);
    }
    if (kind == Kind::kItems) out.Append(")", false);
  }
}

void AppendView(const char* name, const Value& v, Text& out) {
  out.Append(name, false);
  out.Append("([", false);
  AppendEntries(v.dict(), v.kind, out);
  out.Append("])", false);
}

}  // namespace

std::string IntText(Int value, unsigned base) {
  // From the end; the negative side holds one more number.
  std::string text;
  const bool negative = value < 0;
  do {
    const int digit = static_cast<int>(value % static_cast<Int>(base));
    text += "0123456789abcdefghijklmnopqrstuvwxyz"[digit < 0 ? -digit : digit];
    value /= static_cast<Int>(base);
  } while (value != 0);
  if (negative) text += '-';
  std::reverse(text.begin(), text.end());
  return text;
}

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  std::string out;
  if (text.front() == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const char* digits_of_exponent = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, text.data() + text.size(), exponent);
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    const int size = std::abs(exponent);
    out += exponent < 0 ? "e-" : "e+";
    if (size < 10) out += '0';
    return out + std::to_string(size);
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) {
    return out + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  }
  return out + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<size_t>(exponent) + 1);
}

void AppendRepr(const Value& v, Text& out) {
  switch (v.kind) {
    case Kind::kUndefined:
      return out.Append("Undefined", false);
    case Kind::kNone:
      return out.Append("None", false);
    case Kind::kBool:
      return out.Append(v.truth ? "True" : "False", false);
    case Kind::kInt:
      return out.Append(IntText(v.integer), false);
    case Kind::kFloat:
      return out.Append(FloatRepr(v.number), false);
    case Kind::kText:
      if (v.markup()) out.Append("Markup(", false);
      AppendTextRepr(v.text(), out);
      if (v.markup()) out.Append(")", false);
      return;
    case Kind::kList:
      out.Append("[", false);
      AppendItems(v.list().items, 0, out);
      return out.Append("]", false);
    case Kind::kTuple:
      out.Append("(", false);
      AppendItems(v.list().items, 0, out);
      return out.Append(v.list().items.size() == 1 ? ",)" : ")", false);
    case Kind::kRange: {
      const ListObject& range = v.list();
      out.Append("range(" + IntText(range.start) + ", " + IntText(range.stop), false);
      if (range.step != 1) out.Append(", " + IntText(range.step), false);
      return out.Append(")", false);
    }
    case Kind::kDict:
      out.Append("{", false);
      AppendEntries(v.dict(), Kind::kDict, out);
      return out.Append("}", false);
    case Kind::kKeys:
      return AppendView("dict_keys", v, out);
    case Kind::kValues:
      return AppendView("dict_values", v, out);
    case Kind::kItems:
      return AppendView("dict_items", v, out);
    case Kind::kNamespace:
      out.Append("<Namespace {", false);
      AppendEntries(v.dict(), Kind::kDict, out);
      return out.Append("}>", false);
    case Kind::kMacro:
      return out.Append("<Macro " + MacroName(v) + ">", false);
    case Kind::kLoop: {
      const auto* loop = static_cast<LoopObject*>(v.object);
      return out.Append("<LoopContext " + std::to_string(loop->index + 1) + "/" +
                            std::to_string(loop->items.size()) + ">",
                        false);
    }
    default:
      return out.Append("<" + std::string(TypeName(v)) + " object>", false);
  }
}

void AppendStr(const Value& v, Text& out) {
  if (v.Is(Kind::kText)) return out.Append(v.text());
  if (v.undefined()) return;
  AppendRepr(v, out);
}

Text Str(const Value& v) {
  Text text;
  AppendStr(v, text);
  return text;
}

std::string ReprForError(const Value& v) {
  Text text;
  AppendRepr(v, text);
  return text.bytes();
}

}  // namespace sluice::jinja
