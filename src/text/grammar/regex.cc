#include "src/text/grammar/regex.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "src/base/printable.h"
#include "src/text/unicode.h"

namespace sluice::grammar {
namespace {

using Id = Expressions::Id;
using Ranges = std::vector<CodeRange>;

constexpr size_t kMaxPatternBytes = 20'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// \d \w \s and their opposites; nothing for other letters.
std::optional<Ranges> ShorthandOf(char c) {
  const Ranges digits = {{'0', '9'}};
  const Ranges word = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  const Ranges space = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                        {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  switch (c) {
    case 'd':
      return digits;
    case 'D':
      return Complement(digits);
    case 'w':
      return word;
    case 'W':
      return Complement(word);
    case 's':
      return space;
    case 'S':
      return Complement(space);
    default:
      return std::nullopt;
  }
}

class PatternReader {
 public:
  // `json` null: plain text that matches as a whole.
  PatternReader(std::string_view source, Expressions& e, JsonText* json)
      : source_(source), e_(e), json_(json) {}

  Result<Id> Read() {
    if (source_.size() > kMaxPatternBytes) return Error("expected at most 20000 bytes");
    if (!IsUtf8(source_)) return Error("not UTF-8");
    std::vector<Group> groups(1);
    StartAlternative();
    while (at_ < source_.size()) {
      if (e_.full()) return Error("too large");
      const char c = source_[at_];
      if (c == '(') {
        RETURN_IF_ERROR(OpenGroup(groups));
      } else if (c == ')') {
        if (groups.size() == 1) return Error("a ) that was never opened");
        ++at_;
        CloseAlternative(groups.back());
        const Id inner = e_.Choice(groups.back().alternatives);
        groups.pop_back();
        groups.back().sequence.push_back(inner);
      } else if (c == '|') {
        ++at_;
        if (groups.size() == 1) {
          CloseTop(groups[0]);
          StartAlternative();
        } else {
          CloseAlternative(groups.back());
        }
      } else {
        RETURN_IF_ERROR(ReadPart(groups));
      }
    }
    if (groups.size() > 1) return Error("a ( that is never closed");
    CloseTop(groups[0]);
    return e_.Choice(groups[0].alternatives);
  }

 private:
  struct Group {
    std::vector<Id> alternatives, sequence;
  };

  Status Error(std::string_view what) const {
    return Status(StatusCode::kInvalidArgument, "pattern: " + std::string(what) + " at byte " +
                                                    std::to_string(at_) + " of " +
                                                    Printable(source_));
  }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  // Where an alternative of the whole pattern is not held by ^ or $, anything may stand there.
  void StartAlternative() {
    free_start_ = free_end_ = json_ != nullptr;
    if (Peek() != '^') return;
    free_start_ = false;
    ++at_;
  }
  Id Anything() { return e_.Repeat(json_->Character(), 0, kNoMaximum); }
  Id CharacterOf(Ranges ranges) {
    ranges = Normalised(std::move(ranges));
    return json_ != nullptr ? json_->CharacterOf(ranges) : e_.Class(std::move(ranges));
  }
  void CloseTop(Group& group) {
    if (free_start_) group.sequence.insert(group.sequence.begin(), Anything());
    if (free_end_) group.sequence.push_back(Anything());
    CloseAlternative(group);
  }
  void CloseAlternative(Group& group) {
    group.alternatives.push_back(e_.Sequence(group.sequence));
    group.sequence.clear();
  }

  Status OpenGroup(std::vector<Group>& groups) {
    if (groups.size() >= kMaxNesting) return Error("groups nested too deep");
    ++at_;
    if (Peek() == '?') {
      if (Peek(1) == ':') {
        at_ += 2;
      } else if (Peek(1) == '<' && Peek(2) != '=' && Peek(2) != '!') {
        const size_t close = source_.find('>', at_);
        if (close == std::string_view::npos) return Error("a group name that is never closed");
        at_ = close + 1;
      } else {
        return Error("only (...), (?:...) and (?<name>...) are known, not this group");
      }
    }
    groups.emplace_back();
    return Status();
  }

  Status ReadPart(std::vector<Group>& groups) {
    const char c = Peek();
    std::vector<Id>& sequence = groups.back().sequence;
    if (c == '$') {
      if (groups.size() > 1 || (at_ + 1 < source_.size() && Peek(1) != '|')) {
        return Error("$ is known only at the end of the pattern");
      }
      ++at_;
      free_end_ = false;
      return Status();
    }
    if (c == '^') return Error("^ is known only at the start of the pattern");
    if (c == '*' || c == '+' || c == '?' || (c == '{' && IsDigit(Peek(1)))) {
      return ReadQuantifier(sequence);
    }
    Ranges ranges;
    if (c == '[') {
      ASSIGN_OR_RETURN(ranges, ReadClass());
    } else if (c == '.') {
      ++at_;
      ranges = Complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
    } else if (c == '\\') {
      ASSIGN_OR_RETURN(ranges, ReadEscape(false));
    } else {
      const DecodedChar plain = DecodeChar(source_, at_);
      at_ += plain.length;
      ranges = {{plain.code, plain.code}};
    }
    sequence.push_back(CharacterOf(std::move(ranges)));
    return Status();
  }

  Status ReadQuantifier(std::vector<Id>& sequence) {
    const char c = Peek();
    if (sequence.empty()) return Error("a quantifier with nothing to repeat");
    uint32_t min = c == '+' ? 1 : 0, max = c == '?' ? 1 : kNoMaximum;
    ++at_;
    if (c == '{') {
      ASSIGN_OR_RETURN(min, ReadNumber());
      max = min;
      if (Peek() == ',') {
        ++at_;
        max = kNoMaximum;
        if (Peek() != '}') {
          ASSIGN_OR_RETURN(max, ReadNumber());
        }
      }
      if (Peek() != '}') return Error("expected } after a quantifier");
      ++at_;
      if (max < min) return Error("a quantifier whose most is less than its least");
    }
    if (Peek() == '?') ++at_;  // lazy: the language is the same
    if (Peek() == '+' || Peek() == '*' || (Peek() == '{' && IsDigit(Peek(1)))) {
      return Error("a quantifier after a quantifier");
    }
    sequence.back() = e_.Repeat(sequence.back(), min, max);
    return Status();
  }

  Result<uint32_t> ReadNumber() {
    if (!IsDigit(Peek())) return Error("expected a number");
    uint64_t number = 0;
    for (; IsDigit(Peek()); ++at_) {
      number = std::min<uint64_t>(10 * number + static_cast<uint64_t>(Peek() - '0'), UINT32_MAX);
    }
    if (number > kMaxRepeat) return Error("more repetitions than 1000000");
    return static_cast<uint32_t>(number);
  }

  Result<uint32_t> ReadHex(int digits) {
    uint32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = Peek();
      const bool lower = c >= 'a' && c <= 'f', upper = c >= 'A' && c <= 'F';
      if (!IsDigit(c) && !lower && !upper) return Error("expected a hexadecimal digit");
      code = code << 4 | static_cast<uint32_t>(IsDigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
  }

  Result<Ranges> ReadEscape(bool in_class) {
    ++at_;
    if (at_ >= source_.size()) return Error("a \\ at the end");
    const char c = Peek();
    if (auto shorthand = ShorthandOf(c)) {
      ++at_;
      return *std::move(shorthand);
    }
    uint32_t code = 0;
    if (c == 'x' || c == 'u') {
      ++at_;
      ASSIGN_OR_RETURN(code, ReadHex(c == 'x' ? 2 : 4));
      return Ranges{{code, code}};
    }
    constexpr std::string_view kLetters = "tnvfr", kCodes = "\t\n\v\f\r";
    if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
      code = static_cast<uint32_t>(kCodes[i]);
    } else if (in_class && c == 'b') {
      code = '\b';
    } else if (IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      return Error(std::string("an escape that is not known, \\") + c);
    } else {
      const DecodedChar escaped = DecodeChar(source_, at_);
      at_ += escaped.length;
      return Ranges{{escaped.code, escaped.code}};
    }
    ++at_;
    return Ranges{{code, code}};
  }

  Result<Ranges> ReadClassPart() {
    if (Peek() == '\\') return ReadEscape(true);
    const DecodedChar c = DecodeChar(source_, at_);
    at_ += c.length;
    return Ranges{{c.code, c.code}};
  }

  Result<Ranges> ReadClass() {
    ++at_;
    const bool negated = Peek() == '^';
    if (negated) ++at_;
    Ranges all;
    while (Peek() != ']' || at_ >= source_.size()) {
      if (at_ >= source_.size()) return Error("a [ that is never closed");
      ASSIGN_OR_RETURN(Ranges part, ReadClassPart());
      const bool range = Peek() == '-' && at_ + 1 < source_.size() && Peek(1) != ']';
      if (range) {
        ++at_;
        ASSIGN_OR_RETURN(const Ranges to, ReadClassPart());
        if (part.size() != 1 || part[0].low != part[0].high || to.size() != 1 ||
            to[0].low != to[0].high || to[0].low < part[0].low) {
          return Error("a range that is none");
        }
        part[0].high = to[0].high;
      }
      all.insert(all.end(), part.begin(), part.end());
    }
    ++at_;
    return negated ? Complement(std::move(all)) : all;
  }

  const std::string_view source_;
  size_t at_ = 0;
  bool free_start_ = true, free_end_ = true;
  Expressions& e_;
  JsonText* json_;
};

}  // namespace

Result<Id> ReadPattern(std::string_view pattern, Expressions& expressions, JsonText& json) {
  return PatternReader(pattern, expressions, &json).Read();
}

Result<std::shared_ptr<const Automaton>> CompileRegex(std::string_view pattern) {
  Expressions expressions;
  const uint32_t root = expressions.AddRule("root");
  ASSIGN_OR_RETURN(const Id body, PatternReader(pattern, expressions, nullptr).Read());
  expressions.Define(root, body);
  return BuildAutomaton(expressions, root, [](uint32_t) { return std::string("pattern"); });
}

}  // namespace sluice::grammar
