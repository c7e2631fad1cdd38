// Python's two ways to format: "%5.1f" % x, and "{:5.1f}".format(x).
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "src/text/jinja/sequences.h"

namespace sluice::jinja {

namespace {

constexpr int kMaxWidth = 100000;

struct Spec {
  Text fill = Text(" ");
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false, zero = false;
  char grouping = 0;
  int width = 0, precision = -1;
  char type = 0;
};

Text Padded(const Text& text, const Spec& spec, size_t sign_bytes, char align) {
  const int pad =
      spec.width - static_cast<int>(std::min<size_t>(CountChars(text.bytes()), 1 << 30));
  if (pad <= 0) return text;
  const int left = align == '<' ? 0 : align == '^' ? pad / 2 : pad;
  Text out;
  const size_t head = align == '=' ? sign_bytes : 0;
  out.Append(text, 0, head);
  for (int i = 0; i < left; ++i) out.Append(spec.fill);
  out.Append(text, head, text.size());
  for (int i = left; i < pad; ++i) out.Append(spec.fill);
  return out;
}

std::string Grouped(const std::string& digits, char separator, size_t size) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// Digits of a finite or infinite number, without its sign.
std::string FloatDigits(double value, const Spec& spec) {
  const char type = spec.type == 0 || spec.type == 'n' ? 'g' : spec.type;
  const bool upper = type == 'E' || type == 'F' || type == 'G';
  if (std::isnan(value)) return upper ? "NAN" : "nan";
  if (std::isinf(value)) return upper ? "INF" : "inf";
  value = std::abs(value);
  if (spec.type == 0 && spec.precision < 0) return FloatRepr(value);
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  if (type == '%') value *= 100;
  char format[16];
  std::snprintf(format, sizeof(format), "%%%s.*%c", spec.alternate ? "#" : "",
                type == '%' ? 'f' : type);
  std::string buffer(static_cast<size_t>(precision) + 400, '\0');
  const int size = std::snprintf(buffer.data(), buffer.size(), format, precision, value);
  buffer.resize(static_cast<size_t>(std::max(size, 0)));
  if (spec.grouping != 0) {
    const size_t whole = std::min(buffer.find_first_not_of("0123456789"), buffer.size());
    buffer = Grouped(buffer.substr(0, whole), spec.grouping, 3) + buffer.substr(whole);
  }
  return type == '%' ? buffer + "%" : buffer;
}

std::string SignText(bool negative, const Spec& spec) {
  return negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
}

Text FormatFloat(double value, const Spec& spec) {
  const std::string sign = SignText(std::signbit(value) && !std::isnan(value), spec);
  const Text text(sign + FloatDigits(value, spec));
  return Padded(text, spec, sign.size(), spec.align == 0 ? '>' : spec.align);
}

Text FormatInt(Int value, const Spec& spec) {
  const char type = spec.type;
  const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::string digits = IntText(value, base);
  if (value < 0) digits.erase(0, 1);
  if (type == 'X') {
    for (char& c : digits) c = c >= 'a' ? static_cast<char>(c - 32) : c;
  }
  while (static_cast<int>(digits.size()) < spec.precision) digits.insert(digits.begin(), '0');
  std::string sign = SignText(value < 0, spec);
  if (spec.grouping != 0) digits = Grouped(digits, spec.grouping, base == 10 ? 3 : 4);
  if (spec.alternate && base != 10) sign += std::string("0") + type;
  return Padded(Text(sign + digits), spec, sign.size(), spec.align == 0 ? '>' : spec.align);
}

Text FirstChars(const Text& text, int count) {
  return count < 0 ? text : text.Sub(0, OffsetOf(text.bytes(), static_cast<size_t>(count)));
}

Status BadSpec(const std::string& what) { return Error("format: " + what); }

// [[fill]align][sign][#][0][width][grouping][.precision][type]
Result<Spec> ParseSpec(const Text& text) {
  Spec spec;
  const std::string& s = text.bytes();
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const auto number = [&](int* value) {
    *value = 0;
    while (at < s.size() && s[at] >= '0' && s[at] <= '9' && *value <= kMaxWidth) {
      *value = *value * 10 + (s[at++] - '0');
    }
    return *value <= kMaxWidth;
  };
  if (!s.empty()) {
    const size_t first = DecodeChar(s, 0).length;
    if (first < s.size() && is_align(s[first])) {
      spec.fill = text.Sub(0, first);
      spec.align = s[first];
      at = first + 1;
    } else if (is_align(s[0])) {
      spec.align = s[0];
      at = 1;
    }
  }
  if (at < s.size() && (s[at] == '+' || s[at] == '-' || s[at] == ' ')) spec.sign = s[at++];
  if (at < s.size() && s[at] == '#') spec.alternate = at++ != s.npos;
  if (at < s.size() && s[at] == '0') {
    spec.zero = true;
    ++at;
    if (spec.align == 0) {
      spec.fill = Text("0");
      spec.align = '=';
    }
  }
  if (!number(&spec.width)) return BadSpec("the width is too large");
  if (at < s.size() && (s[at] == ',' || s[at] == '_')) spec.grouping = s[at++];
  if (at < s.size() && s[at] == '.') {
    ++at;
    if (at >= s.size() || s[at] < '0' || s[at] > '9') return BadSpec("the precision is missing");
    if (!number(&spec.precision)) return BadSpec("the precision is too large");
  }
  if (at < s.size()) spec.type = s[at++];
  if (at != s.size()) return BadSpec("\"" + s.substr(0, 40) + "\" is no format");
  return spec;
}

Status Unknown(const Spec& spec, const Value& value) {
  return BadSpec(std::string("the code '") + spec.type + "' does not fit a value of type " +
                 TypeName(value));
}

Result<Text> FormatValue(Interpreter& in, const Value& value, const Text& spec_text) {
  RETURN_IF_ERROR(in.Step(1 + spec_text.size() + Weight(value) / 64));
  if (spec_text.empty()) return Str(value);
  ASSIGN_OR_RETURN(Spec spec, ParseSpec(spec_text));
  if (value.Is(Kind::kText)) {
    if (spec.type != 0 && spec.type != 's') return Unknown(spec, value);
    if (spec.align == '=' && !spec.zero) return BadSpec("'=' does not fit a string");
    const char align = spec.align == 0 || spec.align == '=' ? '<' : spec.align;
    return Padded(FirstChars(value.text(), spec.precision), spec, 0, align);
  }
  constexpr std::string_view kFloat = "eEfFgG%";
  if (value.IsIntLike() &&
      (spec.type == 0 || std::string_view("dboxXn").find(spec.type) != std::string_view::npos)) {
    if (spec.precision >= 0) return BadSpec("an integer has no precision");
    return FormatInt(value.AsInt(), spec);
  }
  if (value.IsIntLike() && spec.type == 'c') {
    Text text;
    if (value.AsInt() < 0 || value.AsInt() > 0x10FFFF) return BadSpec("no such character");
    const auto code = static_cast<uint32_t>(value.AsInt());
    text.AppendChar(code >= 0xD800 && code < 0xE000 ? kReplacement : code, true);
    return Padded(text, spec, 0, spec.align == 0 ? '<' : spec.align);
  }
  if (value.IsNumber() &&
      (spec.type == 0 || spec.type == 'n' || kFloat.find(spec.type) != kFloat.npos)) {
    return FormatFloat(value.AsDouble(), spec);
  }
  return Unknown(spec, value);
}

// Text with what is not ASCII escaped, as ascii() prints.
Text AsciiRepr(const Value& value) {
  Text repr, out;
  AppendRepr(value, repr);
  ForEachChar(repr, [&](uint32_t code, size_t from, size_t to, bool content) {
    if (code < 0x80) return out.Append(repr, from, to);
    char buffer[16];
    std::snprintf(buffer, sizeof(buffer),
                  code < 0x100     ? "\\x%02x"
                  : code < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
                  static_cast<unsigned>(code));
    out.Append(buffer, content);
  });
  return out;
}

// One conversion of the % operator.
class Percent {
 public:
  Percent(Interpreter& in, const Text& format, const Value& values)
      : in_(in), format_(format), text_(format.bytes()), values_(values) {
    if (values.Is(Kind::kTuple)) {
      arguments_ = values.list().items;
    } else {
      arguments_ = {values};
    }
  }

  Result<Text> Run() {
    Text out;
    size_t from = 0;
    while (true) {
      at_ = text_.find('%', from);
      if (at_ == text_.npos) break;
      out.Append(format_, from, at_);
      ++at_;
      ASSIGN_OR_RETURN(const Text field, Field());
      out.Append(field);
      RETURN_IF_ERROR(in_.Step());
      RETURN_IF_ERROR(in_.TextRoom(out.size()));
      from = at_;
    }
    out.Append(format_, from, format_.size());
    if (next_ < arguments_.size() && !values_.Is(Kind::kDict)) {
      return BadSpec("not all values are used by the format");
    }
    return out;
  }

 private:
  bool At(char c) const { return at_ < text_.size() && text_[at_] == c; }

  Result<Value> Next() {
    if (next_ >= arguments_.size()) return BadSpec("there are not enough values for the format");
    return arguments_[next_++];
  }

  Status Number(int* value) {
    if (At('*')) {
      ++at_;
      ASSIGN_OR_RETURN(const Value given, Next());
      if (!given.IsIntLike() || given.AsInt() > kMaxWidth || given.AsInt() < -kMaxWidth) {
        return BadSpec("* wants an integer that is not too large");
      }
      *value = static_cast<int>(given.AsInt());
      return Status();
    }
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      *value = *value * 10 + (text_[at_++] - '0');
      if (*value > kMaxWidth) return BadSpec("a width or precision is too large");
    }
    return Status();
  }

  Result<Text> Field() {
    std::optional<Value> named;
    if (At('(')) {
      size_t end = at_ + 1;
      for (int open = 1; end < text_.size(); ++end) {
        open += (text_[end] == '(') - (text_[end] == ')');
        if (open == 0) break;
      }
      if (end >= text_.size()) return BadSpec("a key has no end");
      if (!values_.Is(Kind::kDict)) return BadSpec("a format with keys wants a dict");
      const Value* value = values_.dict().Find(text_.substr(at_ + 1, end - at_ - 1));
      if (value == nullptr) return BadSpec("the dict has no such key");
      named = *value;
      at_ = end + 1;
    }
    Spec spec;
    bool left = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '-') {
        left = true;
      } else if (c == '+') {
        spec.sign = '+';
      } else if (c == ' ') {
        if (spec.sign != '+') spec.sign = ' ';
      } else if (c == '#') {
        spec.alternate = true;
      } else if (c == '0') {
        spec.zero = true;
      } else {
        break;
      }
    }
    RETURN_IF_ERROR(Number(&spec.width));
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (At('.')) {
      ++at_;
      spec.precision = 0;
      RETURN_IF_ERROR(Number(&spec.precision));
      spec.precision = std::max(spec.precision, 0);
    }
    while (At('h') || At('l') || At('L')) ++at_;
    if (at_ >= text_.size()) return BadSpec("the format ends within a field");
    spec.type = text_[at_];
    at_ += DecodeChar(text_, at_).length;
    spec.align = left ? '<' : '>';
    if (spec.type == '%') return Text("%");
    Value value;
    if (named.has_value()) {
      value = *named;
    } else {
      ASSIGN_OR_RETURN(value, Next());
    }
    return Convert(spec, left, value);
  }

  Result<Text> Convert(Spec& spec, bool left, const Value& value) {
    switch (spec.type) {
      case 's':
        return Padded(FirstChars(Str(value), spec.precision), spec, 0, spec.align);
      case 'r': {
        Text repr;
        AppendRepr(value, repr);
        return Padded(FirstChars(repr, spec.precision), spec, 0, spec.align);
      }
      case 'a':
        return Padded(FirstChars(AsciiRepr(value), spec.precision), spec, 0, spec.align);
      case 'c':
        if (value.Is(Kind::kText) && CountChars(value.text().bytes()) == 1) {
          return Padded(value.text(), spec, 0, spec.align);
        }
        if (!value.IsIntLike()) return BadSpec("%c wants one character");
        return FormatValue(in_, value, Text("c"));
      default:
        break;
    }
    if (std::string_view("diuoxXeEfFgG").find(spec.type) == std::string_view::npos) {
      return BadSpec(std::string("there is no field %") + (spec.type > ' ' ? spec.type : '?'));
    }
    if (value.undefined()) return Error(WhyUndefined(value));
    if (!value.IsNumber()) {
      return BadSpec(std::string("%") + spec.type + " wants a number, found " + TypeName(value));
    }
    if (spec.zero && !left) {
      spec.fill = Text("0");
      spec.align = '=';
    }
    if (std::string_view("eEfFgG").find(spec.type) != std::string_view::npos) {
      return FormatFloat(value.AsDouble(), spec);
    }
    const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (decimal) spec.type = 'd';
    if (value.Is(Kind::kFloat)) {
      if (!decimal) return BadSpec("%x and %o want an integer");
      if (!(std::abs(value.number) < 1.7e38)) return BadSpec("the number is too large");
      return FormatInt(static_cast<Int>(std::trunc(value.number)), spec);
    }
    return FormatInt(value.AsInt(), spec);
  }

  Interpreter& in_;
  const Text& format_;
  const std::string_view text_;
  const Value& values_;
  std::vector<Value> arguments_;
  size_t at_ = 0, next_ = 0;
};

// str.format.
class Braces {
 public:
  Braces(Interpreter& in, const Args& args) : in_(in), args_(args) {}

  Result<Text> Run(const Text& format, int level) {
    if (level > 2) return BadSpec("fields are nested too deep");
    const std::string& s = format.bytes();
    Text out;
    for (size_t at = 0; at < s.size();) {
      const size_t brace = std::min(s.find_first_of("{}", at), s.size());
      out.Append(format, at, brace);
      if (brace == s.size()) break;
      if (brace + 1 < s.size() && s[brace + 1] == s[brace]) {
        out.Append(format, brace, brace + 1);
        at = brace + 2;
        continue;
      }
      if (s[brace] == '}') return BadSpec("a single '}'");
      size_t end = brace + 1;
      int open = 1, brackets = 0;
      for (; end < s.size(); ++end) {
        if (open == 1 && s[end] == '[') brackets = 1;
        if (open == 1 && s[end] == ']') brackets = 0;
        if (brackets == 0) open += (s[end] == '{') - (s[end] == '}');
        if (open == 0) break;
      }
      if (end >= s.size()) return BadSpec("a '{' has no end");
      ASSIGN_OR_RETURN(const Text field, Field(format.Sub(brace + 1, end), level));
      out.Append(field);
      RETURN_IF_ERROR(in_.TextRoom(out.size()));
      at = end + 1;
    }
    return out;
  }

 private:
  // name [!conversion] [:spec]
  Result<Text> Field(const Text& field, int level) {
    const std::string& s = field.bytes();
    size_t name_end = 0;
    for (bool inside = false; name_end < s.size(); ++name_end) {
      if (s[name_end] == '[') inside = true;
      if (s[name_end] == ']') inside = false;
      if (!inside && (s[name_end] == '!' || s[name_end] == ':')) break;
    }
    size_t at = name_end;
    char conversion = 0;
    if (at < s.size() && s[at] == '!') {
      if (at + 1 >= s.size()) return BadSpec("a conversion is missing");
      conversion = s[at + 1];
      at += 2;
    }
    if (at < s.size() && s[at] != ':') return BadSpec("expected ':' after the conversion");
    ASSIGN_OR_RETURN(Value value, Lookup(s.substr(0, name_end)));
    Text spec;
    if (at < s.size()) {
      ASSIGN_OR_RETURN(spec, Run(field.Sub(at + 1, s.size()), level + 1));
    }
    if (conversion == 's') {
      value = in_.heap().MakeText(Str(value));
    } else if (conversion == 'r') {
      Text repr;
      AppendRepr(value, repr);
      value = in_.heap().MakeText(std::move(repr));
    } else if (conversion == 'a') {
      value = in_.heap().MakeText(AsciiRepr(value));
    } else if (conversion != 0) {
      return BadSpec("there is no such conversion");
    }
    return FormatValue(in_, value, spec);
  }

  Result<Value> Lookup(const std::string& name) {
    size_t at = std::min(name.find_first_of(".["), name.size());
    const std::string first = name.substr(0, at);
    Value value;
    const bool number =
        std::all_of(first.begin(), first.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number) {
      const size_t index = first.empty()      ? next_++
                           : first.size() > 9 ? SIZE_MAX
                                              : std::stoul(first);
      if (index >= args_.values.size())
        return BadSpec("there are not enough values for the format");
      value = args_.values[index];
    } else {
      const auto named =
          std::find_if(args_.named.begin(), args_.named.end(),
                       [&](const auto& entry) { return entry.first.text().bytes() == first; });
      if (named == args_.named.end())
        return BadSpec("there is no value \"" + first.substr(0, 40) + '"');
      value = named->second;
    }
    while (at < name.size()) {
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        ASSIGN_OR_RETURN(
            value, in_.GetAttribute(value, in_.heap().MakeText(name.substr(at + 1, end - at - 1))));
        at = end;
      } else {
        const size_t end = name.find(']', at);
        if (name[at] != '[' || end == name.npos) return BadSpec("a '[' has no end");
        const std::string key = name.substr(at + 1, end - at - 1);
        const bool index =
            !key.empty() && key.size() < 10 &&
            std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
        ASSIGN_OR_RETURN(value,
                         in_.GetItem(value, index ? Value::Of(static_cast<Int>(std::stol(key)))
                                                  : in_.heap().MakeText(key)));
        at = end + 1;
      }
    }
    return value;
  }

  Interpreter& in_;
  const Args& args_;
  size_t next_ = 0;
};

}  // namespace

Result<Text> FormatPercent(Interpreter& in, const Text& format, const Value& values) {
  return Percent(in, format, values).Run();
}

Result<Text> FormatBraces(Interpreter& in, const Text& format, const Args& args) {
  RETURN_IF_ERROR(in.Step(format.size() / 8));
  return Braces(in, args).Run(format, 0);
}

}  // namespace sluice::jinja
