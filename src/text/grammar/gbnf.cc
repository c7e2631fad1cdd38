#include "src/text/grammar/gbnf.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/printable.h"
#include "src/text/grammar/expressions.h"
#include "src/text/unicode.h"

namespace sluice::grammar {
namespace {

using Id = Expressions::Id;

std::string LineAndColumn(std::string_view source, size_t offset) {
  const std::string_view before = source.substr(0, std::min(offset, source.size()));
  const size_t newline = before.rfind('\n');
  const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  return "line " + std::to_string(1 + std::count(before.begin(), before.end(), '\n')) +
         ", column " + std::to_string(1 + before.size() - begin);
}

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  Result<std::shared_ptr<const Automaton>> Compile() {
    SkipBlanks(true);
    while (at_ < source_.size()) {
      RETURN_IF_ERROR(ReadRule());
      if (expressions_.full()) break;  // refused below
      SkipBlanks(true);
    }
    const auto root = rules_.find("root");
    if (root == rules_.end() || expressions_.rules()[root->second].body < 0) {
      return Status(StatusCode::kInvalidArgument,
                    "grammar: no rule named root; expected one, it is the whole text");
    }
    return BuildAutomaton(expressions_, root->second,
                          [&](uint32_t offset) { return LineAndColumn(source_, offset); });
  }

 private:
  // What stands between two parentheses, or the whole of a rule.
  struct Group {
    size_t open;
    std::vector<Id> alternatives, sequence;
  };

  Status Error(size_t offset, std::string_view what) const {
    return Status(StatusCode::kInvalidArgument,
                  "grammar: " + LineAndColumn(source_, offset) + ": " + std::string(what));
  }
  std::string Found() const {
    if (at_ >= source_.size()) return "the end";
    const DecodedChar c = DecodeChar(source_, at_);
    return "'" + Printable(source_.substr(at_, c.length)) + "'";
  }
  char Peek() const { return at_ < source_.size() ? source_[at_] : '\0'; }

  // Also comments. A line break ends a rule, unless it is inside parentheses.
  void SkipBlanks(bool newlines) {
    for (; at_ < source_.size(); ++at_) {
      const char c = source_[at_];
      if (c == '#') {
        while (at_ < source_.size() && source_[at_] != '\n' && source_[at_] != '\r') ++at_;
        --at_;
      } else if (c != ' ' && c != '\t' && !(newlines && (c == '\n' || c == '\r'))) {
        return;
      }
    }
  }

  std::string_view ReadName() {
    const size_t begin = at_;
    while (at_ < source_.size() && IsNameChar(source_[at_])) ++at_;
    return source_.substr(begin, at_ - begin);
  }
  uint32_t RuleOf(std::string_view name, size_t offset) {
    const auto [at, added] = rules_.try_emplace(std::string(name), 0);
    if (added) {
      at->second = expressions_.AddRule(std::string(name), static_cast<uint32_t>(offset));
    }
    return at->second;
  }

  Status ReadRule() {
    const size_t begin = at_;
    const std::string_view name = ReadName();
    if (name.empty()) return Error(at_, "expected the name of a rule, found " + Found());
    SkipBlanks(false);
    if (source_.substr(at_, 3) != "::=") {
      return Error(at_, "expected ::= after the name of a rule, found " + Found());
    }
    at_ += 3;
    const uint32_t rule = RuleOf(name, begin);
    if (expressions_.rules()[rule].body >= 0) {
      return Error(begin, "rule " + std::string(name) + " is defined twice");
    }
    SkipBlanks(true);
    ASSIGN_OR_RETURN(const Id body, ReadBody());
    expressions_.Define(rule, body);
    return Status();
  }

  // Groups are on a stack of our own: they may be nested as deep as somebody likes.
  Result<Id> ReadBody() {
    std::vector<Group> groups(1);
    groups[0].open = at_;
    for (;;) {
      SkipBlanks(groups.size() > 1);
      Group& group = groups.back();
      const char c = Peek();
      if (at_ >= source_.size() || c == '\n' || c == '\r') {
        if (groups.size() > 1) return Error(group.open, "this ( is never closed");
        return Choice(group);
      }
      if (expressions_.full()) return Choice(groups[0]);
      if (c == '(') {
        if (groups.size() >= kMaxNesting) {
          return Error(at_, "nested too deep; expected at most " + std::to_string(kMaxNesting) +
                                " parentheses within each other");
        }
        groups.emplace_back().open = at_++;
      } else if (c == ')') {
        if (groups.size() == 1) return Error(at_, "this ) was never opened");
        ++at_;
        const Id inner = Choice(group);
        groups.pop_back();
        groups.back().sequence.push_back(inner);
      } else if (c == '|') {
        ++at_;
        group.alternatives.push_back(expressions_.Sequence(group.sequence));
        group.sequence.clear();
        SkipBlanks(true);
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        RETURN_IF_ERROR(ReadRepetition(group));
      } else {
        ASSIGN_OR_RETURN(const Id symbol, ReadSymbol());
        group.sequence.push_back(symbol);
      }
    }
  }

  Id Choice(Group& group) {
    group.alternatives.push_back(expressions_.Sequence(group.sequence));
    return expressions_.Choice(group.alternatives);
  }

  Result<Id> ReadSymbol() {
    const size_t begin = at_;
    const char c = Peek();
    if (c == '"') return ReadLiteral();
    if (c == '[') return ReadClass();
    if (c == '.') {
      ++at_;
      return expressions_.Class({{0, kMaxCode}});
    }
    if (c == '<') {
      return Error(at_, "tokens written as <...> are not known here; expected their text");
    }
    if (!IsNameChar(c)) {
      return Error(at_,
                   "expected a literal, a class, a group or the name of a rule, found " + Found());
    }
    const std::string_view name = ReadName();
    const uint32_t offset = static_cast<uint32_t>(begin);
    return expressions_.Rule(RuleOf(name, begin), offset);
  }

  Result<uint32_t> ReadCode() {
    if (Peek() == '\\') return ReadEscape();
    const DecodedChar c = DecodeChar(source_, at_);
    if (!c.valid) return Error(at_, "not UTF-8");
    at_ += c.length;
    return c.code;
  }

  Result<uint32_t> ReadEscape() {
    const size_t begin = at_++;
    const char kind = Peek();
    ++at_;
    switch (kind) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case '"':
      case '\\':
      case '[':
      case ']':
        return static_cast<uint32_t>(kind);
      case 'x':
      case 'u':
      case 'U':
        break;
      default:
        return Error(begin,
                     "unknown escape; expected one of \\n \\t \\r \\\" \\\\ \\[ \\] \\xNN \\uNNNN "
                     "\\UNNNNNNNN");
    }
    const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    uint32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = Peek();
      const int digit = IsDigit(c)               ? c - '0'
                        : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                        : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                                 : -1;
      if (digit < 0) {
        return Error(begin, std::string("expected ") + std::to_string(digits) +
                                " hexadecimal digits after \\" + kind);
      }
      code = code << 4 | static_cast<uint32_t>(digit);
    }
    if (code > kMaxCode || (code >= 0xD800 && code <= 0xDFFF)) {
      return Error(begin, "no such character");
    }
    return code;
  }

  Result<Id> ReadLiteral() {
    const size_t begin = at_++;
    std::string text;
    while (Peek() != '"' || at_ >= source_.size()) {
      if (at_ >= source_.size()) return Error(begin, "this literal is never closed");
      ASSIGN_OR_RETURN(const uint32_t code, ReadCode());
      AppendUtf8(code, text);
    }
    ++at_;
    return expressions_.Literal(text);
  }

  Result<Id> ReadClass() {
    const size_t begin = at_++;
    const bool negated = Peek() == '^';
    if (negated) ++at_;
    std::vector<CodeRange> ranges;
    while (Peek() != ']' || at_ >= source_.size()) {
      if (at_ >= source_.size()) return Error(begin, "this [ is never closed");
      const size_t range_begin = at_;
      ASSIGN_OR_RETURN(const uint32_t low, ReadCode());
      uint32_t high = low;
      if (Peek() == '-' && at_ + 1 < source_.size() && source_[at_ + 1] != ']') {
        ++at_;
        ASSIGN_OR_RETURN(high, ReadCode());
        if (high < low) return Error(range_begin, "a range that ends before it begins");
      }
      ranges.push_back({low, high});
    }
    ++at_;
    return expressions_.Class(negated ? Complement(std::move(ranges)) : std::move(ranges));
  }

  Result<uint32_t> ReadNumber() {
    const size_t begin = at_;
    uint64_t number = 0;
    for (; IsDigit(Peek()); ++at_) {
      number = std::min<uint64_t>(10 * number + static_cast<uint64_t>(Peek() - '0'), UINT32_MAX);
    }
    if (at_ == begin) return Error(at_, "expected a number of repetitions, found " + Found());
    if (number > kMaxRepeat) {
      return Error(begin, "expected at most " + std::to_string(kMaxRepeat) + " repetitions");
    }
    return static_cast<uint32_t>(number);
  }

  Status ReadRepetition(Group& group) {
    const size_t begin = at_;
    const char c = Peek();
    ++at_;
    if (group.sequence.empty()) {
      return Error(begin, std::string("nothing to repeat before ") + c);
    }
    uint32_t min = c == '+' ? 1 : 0, max = c == '?' ? 1 : kNoMaximum;
    if (c == '{') {
      SkipBlanks(true);
      ASSIGN_OR_RETURN(min, ReadNumber());
      max = min;
      SkipBlanks(true);
      if (Peek() == ',') {
        ++at_;
        SkipBlanks(true);
        max = kNoMaximum;
        if (Peek() != '}') {
          ASSIGN_OR_RETURN(max, ReadNumber());
        }
        SkipBlanks(true);
      }
      if (Peek() != '}') return Error(at_, "expected } after a repetition, found " + Found());
      ++at_;
      if (max < min) return Error(begin, "a repetition whose most is less than its least");
    }
    group.sequence.back() = expressions_.Repeat(group.sequence.back(), min, max);
    return Status();
  }

  const std::string_view source_;
  size_t at_ = 0;
  Expressions expressions_;
  std::unordered_map<std::string, uint32_t> rules_;
};

}  // namespace

Result<std::shared_ptr<const Automaton>> CompileGbnf(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return Status(StatusCode::kInvalidArgument,
                  "grammar: expected at most " + std::to_string(kMaxSourceBytes) +
                      " bytes, found " + std::to_string(source.size()));
  }
  return Reader(source).Compile();
}

}  // namespace sluice::grammar
