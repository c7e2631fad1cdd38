// Filters of numbers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "src/text/jinja/numbers.h"
#include "src/text/jinja/sequences.h"

namespace sluice::jinja {

namespace {

// Stripped, digits of every script as ASCII, underscores between digits gone; empty if an
// underscore stands elsewhere.
std::string PlainNumber(const Text& text) {
  std::string plain;
  bool good = true, after_digit = false, underscore = false;
  ForEachChar(Strip(text, {}, true, true), [&](uint32_t code, size_t, size_t, bool) {
    const int digit = DecimalValue(code);
    const bool alnum =
        digit >= 0 || (code < 0x80 && ((code | 0x20) >= 'a' && (code | 0x20) <= 'z'));
    if (code == '_') {
      good &= after_digit;
      underscore = true;
      after_digit = false;
      return;
    }
    if (underscore && !alnum) good = false;
    underscore = false;
    after_digit = alnum;
    if (digit >= 0) {
      plain += static_cast<char>('0' + digit);
    } else if (code < 0x80 && code != 0) {
      plain += static_cast<char>(code);
    } else {
      good = false;
    }
  });
  return good && !underscore ? plain : std::string();
}

}  // namespace

ParsedInt ParseInt(const Text& text, int base, Int* value) {
  std::string_view digits;
  const std::string plain = PlainNumber(text);
  digits = plain;
  bool negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    const int named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (named != 0 && (base == 0 || base == named)) {
      base = named;
      digits.remove_prefix(2);
    }
  }
  if (base == 0) {
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != digits.npos) {
      return ParsedInt::kNoNumber;
    }
    base = 10;
  }
  if (digits.empty()) return ParsedInt::kNoNumber;
  Int result = 0;
  bool large = false;
  for (const char c : digits) {
    const char lower = static_cast<char>(c | 0x20);
    const int digit = c >= '0' && c <= '9'           ? c - '0'
                      : lower >= 'a' && lower <= 'z' ? lower - 'a' + 10
                                                     : 99;
    if (digit >= base) return ParsedInt::kNoNumber;
    large |= __builtin_mul_overflow(result, static_cast<Int>(base), &result) ||
             __builtin_add_overflow(result, static_cast<Int>(digit), &result);
  }
  *value = negative ? -result : result;
  return large ? ParsedInt::kTooLarge : ParsedInt::kGood;
}

std::optional<double> ParseFloat(const Text& text) {
  const std::string plain = PlainNumber(text);
  std::string lower = plain;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  std::string_view word = lower;
  if (!word.empty() && (word[0] == '+' || word[0] == '-')) word.remove_prefix(1);
  const double sign = lower.starts_with('-') ? -1 : 1;
  if (word == "inf" || word == "infinity") return sign * HUGE_VAL;
  if (word == "nan") return std::nan("");
  if (word.empty() || word.find_first_not_of("0123456789.e+-") != word.npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(lower.c_str(), &end);
  if (end != lower.c_str() + lower.size()) return std::nullopt;
  return value;
}

double RoundTo(double value, int digits) {
  if (!std::isfinite(value) || digits > 320) return value;
  if (digits >= 0) {
    std::string buffer(static_cast<size_t>(digits) + 330, '\0');
    std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
    return std::strtod(buffer.c_str(), nullptr);
  }
  if (digits < -308) return std::copysign(0.0, value);
  const double scale = std::pow(10.0, -digits);
  return std::nearbyint(value / scale) * scale;
}

namespace {

Result<Value> Abs(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("abs", args, {}));
  if (self.Is(Kind::kFloat)) return Value::Of(std::abs(self.number));
  if (!self.IsIntLike())
    return Error(std::string("bad operand type for abs: '") + TypeName(self) + "'");
  if (self.AsInt() >= 0) return Value::Of(self.AsInt());
  return in.Binary(Operator::kSubtract, Value::Of(Int{0}), self);
}

// A float's whole part; none if it has none that fits.
std::optional<Int> Whole(double value) {
  if (!(std::abs(value) < 1.7e38)) return std::nullopt;
  return static_cast<Int>(std::trunc(value));
}

Result<Value> ToInt(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("int", args, {"default", "base"}));
  const Value otherwise = bound.Or(0, Value::Of(Int{0}));
  if (self.undefined()) return Error(WhyUndefined(self));
  if (self.IsIntLike()) return Value::Of(self.AsInt());
  if (self.Is(Kind::kFloat)) {
    if (std::isnan(self.number)) return otherwise;
    const std::optional<Int> whole = Whole(self.number);
    return whole.has_value() ? Value::Of(*whole)
                             : Result<Value>(Error("int: the number is too large"));
  }
  if (!self.Is(Kind::kText)) return otherwise;
  ASSIGN_OR_RETURN(const Int base, bound.Integer(1, 10));
  Int value = 0;
  const bool good_base = base == 0 || (base >= 2 && base <= 36);
  switch (good_base ? ParseInt(self.text(), static_cast<int>(base), &value)
                    : ParsedInt::kNoNumber) {
    case ParsedInt::kGood:
      return Value::Of(value);
    case ParsedInt::kTooLarge:
      return Error("int: the number is too large");
    case ParsedInt::kNoNumber:
      break;
  }
  const std::optional<double> number = ParseFloat(self.text());
  if (!number.has_value() || !std::isfinite(*number)) return otherwise;
  const std::optional<Int> whole = Whole(*number);
  return whole.has_value() ? Value::Of(*whole)
                           : Result<Value>(Error("int: the number is too large"));
}

Result<Value> ToFloat(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("float", args, {"default"}));
  if (self.undefined()) return Error(WhyUndefined(self));
  if (self.IsNumber()) return Value::Of(self.AsDouble());
  const std::optional<double> number =
      self.Is(Kind::kText) ? ParseFloat(self.text()) : std::nullopt;
  return number.has_value() ? Value::Of(*number) : bound.Or(0, Value::Of(0.0));
}

Result<Value> RoundInt(Int value, int digits) {
  if (digits >= 0) return Value::Of(value);
  if (digits < -38) return Value::Of(Int{0});
  Int scale = 1;
  for (int i = 0; i < -digits; ++i) scale *= 10;
  Int rest = value % scale;
  Int base = value - rest;
  if (rest < 0) {
    rest += scale;
    base -= scale;  // may only pass the end for numbers that are near it
  }
  const Int half = scale / 2;
  const bool up = rest > half || (rest == half && (base / scale) % 2 != 0);
  return Value::Of(up ? base + scale : base);
}

Result<Value> Round(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("round", args, {"precision", "method"}));
  ASSIGN_OR_RETURN(const Int precision, bound.Integer(0, 0));
  ASSIGN_OR_RETURN(const std::string_view method, bound.String(1, "common"));
  if (method != "common" && method != "ceil" && method != "floor") {
    return Error("round: the method is common, ceil or floor");
  }
  if (self.undefined()) return Error(WhyUndefined(self));
  if (!self.IsNumber())
    return Error(std::string("round: expected a number, found ") + TypeName(self));
  const int digits = static_cast<int>(std::clamp<Int>(precision, -400, 400));
  if (method == "common") {
    constexpr Int kNear = Int{1} << 100;
    if (self.IsIntLike() && self.AsInt() < kNear && self.AsInt() > -kNear) {
      return RoundInt(self.AsInt(), digits);
    }
    if (self.IsIntLike())
      return digits >= 0 ? Value::Of(self.AsInt())
                         : Result<Value>(Error("round: the number is too large"));
    return Value::Of(RoundTo(self.number, digits));
  }
  const double scale = std::pow(10.0, digits);
  const double scaled = self.AsDouble() * scale;
  if (!std::isfinite(scaled)) return Error("round: the number is too large");
  return Value::Of((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Result<Value> FileSizeFormat(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("filesizeformat", args, {"binary"}));
  std::optional<double> bytes;
  if (self.IsNumber()) bytes = self.AsDouble();
  if (self.Is(Kind::kText)) bytes = ParseFloat(self.text());
  if (!bytes.has_value()) return Error("filesizeformat: expected a number");
  const bool binary = bound.Truthy(0);
  const double base = binary ? 1024 : 1000;
  if (*bytes == 1) return in.heap().MakeText("1 Byte");
  char text[64];
  if (*bytes < base) {
    std::snprintf(text, sizeof(text), "%.0f Bytes", std::trunc(*bytes));
    return in.heap().MakeText(text);
  }
  const std::string_view letters = binary ? "KMGTPEZY" : "kMGTPEZY";
  double unit = base;
  size_t i = 0;
  while (i + 1 < letters.size() && *bytes >= unit * base) {
    unit *= base;
    ++i;
  }
  std::snprintf(text, sizeof(text), "%.1f %c%s", *bytes / unit, letters[i], binary ? "iB" : "B");
  return in.heap().MakeText(text);
}

}  // namespace

std::span<const NamedBuiltin> NumberFilters() {
  static constexpr NamedBuiltin kFilters[] = {{"abs", Abs},
                                              {"int", ToInt},
                                              {"float", ToFloat},
                                              {"round", Round},
                                              {"filesizeformat", FileSizeFormat}};
  return kFilters;
}

}  // namespace sluice::jinja
