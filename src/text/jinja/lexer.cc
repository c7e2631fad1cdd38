#include "src/text/jinja/lexer.h"

#include <charconv>
#include <cstdlib>

#include "src/base/printable.h"

namespace sluice::jinja {

Status ErrorAt(int line, StatusCode code, const std::string& what) {
  return Status(code, "line " + std::to_string(line) + ": " + Printable(what, 1000));
}

namespace {

bool IsDigitByte(char c) { return c >= '0' && c <= '9'; }

// "\n" for all line ends, and without the last one.
std::string Normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  const std::string repaired = ReplaceBadUtf8(source);
  for (size_t i = 0; i < repaired.size(); ++i) {
    if (repaired[i] == '\r') {
      text += '\n';
      if (i + 1 < repaired.size() && repaired[i + 1] == '\n') ++i;
    } else {
      text += repaired[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(Normalized(source)) {}

  Result<std::vector<Token>> Run() {
    while (at_ < source_.size()) {
      RETURN_IF_ERROR(Outside());
    }
    Add(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  std::string_view Rest() const { return std::string_view(source_).substr(at_); }

  void Advance(size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) line_ += source_[at_ + i] == '\n';
    at_ += bytes;
  }

  void Add(TokenKind kind, std::string text = {}) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text)});
  }

  Status Fail(const std::string& what) const {
    return ErrorAt(line_, StatusCode::kUnsupported, what);
  }

  // Blanks (also those of other scripts) from here on.
  size_t SpaceLength(size_t at) const {
    const size_t begin = at;
    while (at < source_.size()) {
      const DecodedChar c = DecodeChar(source_, at);
      if (!IsSpace(c.code)) break;
      at += c.length;
    }
    return at - begin;
  }

  void SkipSpace() { Advance(SpaceLength(at_)); }

  // The text up to `end`, where a tag that begins with `sign` ("-", "+" or none) stands.
  void AddText(size_t end, char sign, bool variable) {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    size_t keep = text.size();
    if (sign == '-') {
      keep = Strip(Text(text), {}, false, true).size();
    } else if (sign != '+' && !variable) {
      // A tag alone at the start of its line takes the blanks before it away.
      const size_t newline = text.rfind('\n');
      const size_t begin = newline == text.npos ? 0 : newline + 1;
      if (begin > 0 || line_starting_) {
        if (SpaceLength(at_ + begin) >= text.size() - begin) keep = begin;
      }
    }
    if (keep > 0) Add(TokenKind::kText, std::string(text.substr(0, keep)));
    Advance(end - at_);
  }

  // "{% raw %}" or "{% endraw %}": bytes of it at `at`, 0 if it is not there.
  size_t RawTag(size_t at, std::string_view name, bool* trims) const {
    const size_t begin = at;
    at += 2;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
    at += SpaceLength(at);
    if (source_.compare(at, name.size(), name) != 0) return 0;
    at += name.size();
    at += SpaceLength(at);
    *trims = source_.compare(at, 3, "-%}") == 0;
    if (*trims) return at + 3 - begin;
    if (name == "endraw" && source_.compare(at, 3, "+%}") == 0) return at + 3 - begin;
    return source_.compare(at, 2, "%}") == 0 ? at + 2 - begin : 0;
  }

  // After a tag's end: blanks go with "-", one newline without "+".
  void AfterEnd(bool strips, bool keeps) {
    if (strips) {
      SkipSpace();
    } else if (!keeps && at_ < source_.size() && source_[at_] == '\n') {
      Advance(1);
    }
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  Status Outside() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == source_.npos || tag + 1 >= source_.size()) {
        tag = source_.npos;
        break;
      }
      const char c = source_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    if (tag == source_.npos) {
      Add(TokenKind::kText, source_.substr(at_));
      Advance(source_.size() - at_);
      return Status();
    }
    const char type = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    const bool signed_tag = sign == '-' || sign == '+';
    AddText(tag, sign, type == '{');
    if (type == '#') return Comment(signed_tag);
    bool trims = false;
    if (const size_t raw = type == '%' ? RawTag(at_, "raw", &trims) : 0; raw > 0) {
      return Raw(raw, trims);
    }
    Add(type == '{' ? TokenKind::kOpen : TokenKind::kOpenTag);
    Advance(signed_tag ? 3 : 2);
    return Inside(type == '{');
  }

  Status Comment(bool signed_tag) {
    const size_t begin = at_ + (signed_tag ? 3 : 2);
    const size_t end = source_.find("#}", begin);
    if (end == source_.npos) return Fail("a comment {# has no end #}");
    const char before = end > begin ? source_[end - 1] : ' ';
    Advance(end + 2 - at_);
    AfterEnd(before == '-', before == '+');
    return Status();
  }

  Status Raw(size_t tag_bytes, bool trims) {
    const Status no_end = Fail("{% raw %} has no {% endraw %}");
    Advance(tag_bytes);
    if (trims) SkipSpace();
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
    for (size_t end = source_.find("{%", at_); end != source_.npos;
         end = source_.find("{%", end + 2)) {
      const size_t bytes = RawTag(end, "endraw", &trims);
      if (bytes == 0) continue;
      AddText(end, source_[end + 2], false);
      Advance(bytes);
      AfterEnd(trims, source_[at_ - 3] == '+');
      return Status();
    }
    return no_end;
  }

  // The tokens of one tag and its end.
  Status Inside(bool variable) {
    const int first_line = line_;
    std::string open;  // brackets that wait for their end
    const std::string_view end = variable ? "}}" : "%}";
    while (true) {
      SkipSpace();
      if (at_ >= source_.size()) {
        return ErrorAt(first_line, StatusCode::kUnsupported,
                       "a tag has no end " + std::string(end));
      }
      if (open.empty()) {
        const bool minus = source_[at_] == '-' && Rest().substr(1).starts_with(end);
        const bool plus = !variable && source_[at_] == '+' && Rest().substr(1).starts_with(end);
        if (minus || plus || Rest().starts_with(end)) {
          Add(variable ? TokenKind::kClose : TokenKind::kCloseTag);
          Advance(minus || plus ? 3 : 2);
          AfterEnd(minus, plus || variable);
          return Status();
        }
      }
      RETURN_IF_ERROR(Next(open));
    }
  }

  Status Next(std::string& open) {
    const char c = source_[at_];
    if (IsDigitByte(c)) return Number();
    if (c == '"' || c == '\'') return String();
    const DecodedChar start = DecodeChar(source_, at_);
    if (IsNameStart(start.code)) {
      size_t end = at_ + start.length;
      while (end < source_.size()) {
        const DecodedChar next = DecodeChar(source_, end);
        if (!IsNameChar(next.code)) break;
        end += next.length;
      }
      Add(TokenKind::kName, source_.substr(at_, end - at_));
      Advance(end - at_);
      return Status();
    }
    for (const std::string_view op : {"**", "//", "==", "!=", "<=", ">="}) {
      if (!Rest().starts_with(op)) continue;
      Add(TokenKind::kOperator, std::string(op));
      Advance(2);
      return Status();
    }
    constexpr std::string_view kOpens = "([{", kCloses = ")]}";
    if (std::string_view("+-*/%~()[]{}.,:|;=<>").find(c) == std::string_view::npos) {
      return Fail("unexpected character \"" + source_.substr(at_, start.length) + '"');
    }
    if (const size_t which = kOpens.find(c); which != kOpens.npos) open += kCloses[which];
    if (kCloses.find(c) != kCloses.npos) {
      if (open.empty() || open.back() != c) {
        return Fail(std::string("unexpected \"") + c + "\", which closes no bracket");
      }
      open.pop_back();
    }
    Add(TokenKind::kOperator, std::string(1, c));
    Advance(1);
    return Status();
  }

  // Digits with single underscores between them, from `at`; the end of what fits.
  template <class IsDigitOf>
  size_t Digits(size_t at, IsDigitOf is_digit) const {
    if (at >= source_.size() || !is_digit(source_[at])) return at;
    while (at < source_.size() &&
           (is_digit(source_[at]) ||
            (source_[at] == '_' && at + 1 < source_.size() && is_digit(source_[at + 1])))) {
      ++at;
    }
    return at;
  }

  // The end of a float at the current place, or 0.
  size_t FloatEnd() const {
    if (at_ > 0 && source_[at_ - 1] == '.') return 0;
    const size_t whole = Digits(at_, IsDigitByte);
    size_t end = whole;
    if (end < source_.size() && source_[end] == '.') {
      const size_t fraction = Digits(end + 1, IsDigitByte);
      if (fraction > end + 1) end = fraction;
    }
    size_t exponent = end;
    if (exponent < source_.size() && (source_[exponent] | 0x20) == 'e') {
      ++exponent;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) {
        ++exponent;
      }
      const size_t digits = Digits(exponent, IsDigitByte);
      if (digits > exponent) end = digits;
    }
    return end > whole ? end : 0;
  }

  Status Number() {
    const auto plain = [&](size_t end) {
      std::string text;
      for (size_t i = at_; i < end; ++i) {
        if (source_[i] != '_') text += source_[i];
      }
      return text;
    };
    if (const size_t end = FloatEnd(); end > 0) {
      Add(TokenKind::kFloat);
      tokens_.back().number = std::strtod(plain(end).c_str(), nullptr);
      Advance(end - at_);
      return Status();
    }
    unsigned base = 10;
    size_t end = at_;
    const char letter = at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : ' ';
    if (source_[at_] == '0' && (letter == 'x' || letter == 'o' || letter == 'b')) {
      base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
      size_t from = at_ + 2;
      if (from < source_.size() && source_[from] == '_') ++from;
      end = Digits(from, [base](char c) {
        const char lower = static_cast<char>(c | 0x20);
        return base == 16 ? IsDigitByte(c) || (lower >= 'a' && lower <= 'f')
                          : c >= '0' && c < static_cast<char>('0' + base);
      });
      if (end == from) base = 10;
    }
    if (base == 10) {
      end = source_[at_] == '0' ? Digits(at_, [](char c) { return c == '0'; })
                                : Digits(at_, IsDigitByte);
    }
    Int value = 0;
    const std::string digits = plain(end);
    for (size_t i = base == 10 ? 0 : 2; i < digits.size(); ++i) {
      const char c = digits[i];
      const int digit = IsDigitByte(c) ? c - '0' : (c | 0x20) - 'a' + 10;
      if (__builtin_mul_overflow(value, static_cast<Int>(base), &value) ||
          __builtin_add_overflow(value, static_cast<Int>(digit), &value)) {
        return Fail("the integer " + digits.substr(0, 50) + " is too large");
      }
    }
    Add(TokenKind::kInt);
    tokens_.back().integer = value;
    Advance(end - at_);
    return Status();
  }

  Status String() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return Fail("a string has no end");
    std::string text;
    for (size_t i = at_ + 1; i < end;) {
      if (source_[i] != '\\') {
        text += source_[i++];
      } else {
        RETURN_IF_ERROR(Escape(&i, text));
      }
    }
    Add(TokenKind::kString, std::move(text));
    Advance(end + 1 - at_);
    return Status();
  }

  // The escape at *i, as Python resolves it.
  Status Escape(size_t* i, std::string& text) const {
    constexpr std::string_view kNames = "ntr\\'\"abfv", kMeanings = "\n\t\r\\'\"\a\b\f\v";
    const char c = source_[*i + 1];
    if (c == '\n') {
      *i += 2;
      return Status();
    }
    if (const size_t which = kNames.find(c); which != kNames.npos) {
      text += kMeanings[which];
      *i += 2;
      return Status();
    }
    size_t digits = 0;
    unsigned base = 16;
    size_t from = *i + 2;
    if (c >= '0' && c <= '7') {
      base = 8;
      from = *i + 1;
      while (digits < 3 && source_[from + digits] >= '0' && source_[from + digits] <= '7') ++digits;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    } else if (c == 'N') {
      return Fail("\\N{...} in a string is not supported here; write the character itself");
    } else {  // no escape: stays as it is
      text += '\\';
      *i += 1;
      return Status();
    }
    uint32_t code = 0;
    const char* begin = source_.data() + from;
    const auto parsed =
        std::from_chars(begin, std::min(begin + digits, source_.data() + source_.size()), code,
                        static_cast<int>(base));
    if (parsed.ptr != begin + digits || code > 0x10FFFF) {
      return Fail("a string has an escape \\" + std::string(1, c) + " without its digits");
    }
    *i = from + digits;
    // A pair of halves is one character, a half alone is none.
    if (code >= 0xD800 && code < 0xDC00 && source_.compare(*i, 2, "\\u") == 0) {
      uint32_t low = 0;
      const char* next = source_.data() + *i + 2;
      if (source_.size() - *i >= 6 && std::from_chars(next, next + 4, low, 16).ptr == next + 4 &&
          low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        *i += 6;
      }
    }
    if (code >= 0xD800 && code < 0xE000) code = kReplacement;
    AppendUtf8(code, text);
    return Status();
  }

  const std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) { return Lexer(source).Run(); }

}  // namespace sluice::jinja
