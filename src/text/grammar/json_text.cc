#include "src/text/grammar/json_text.h"

#include <algorithm>
#include <map>
#include <string>

#include "src/text/unicode.h"

namespace sluice::grammar {
namespace {

using Id = Expressions::Id;

constexpr uint32_t kMaxIndent = 32;         // blanks after a line break
constexpr uint32_t kMaxDigits = 16;         // before and after the point
constexpr uint32_t kMaxExponentDigits = 2;  // whatever is written stays finite

// What a string may hold as it is: all but control characters, quote and backslash.
const std::vector<CodeRange>& Plain() {
  static const std::vector<CodeRange> kPlain = Complement({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  return kPlain;
}

std::vector<CodeRange> Intersect(const std::vector<CodeRange>& a, const std::vector<CodeRange>& b) {
  std::vector<CodeRange> out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const CodeRange both{std::max(a[i].low, b[j].low), std::min(a[i].high, b[j].high)};
    if (both.low <= both.high) out.push_back(both);
    a[i].high < b[j].high ? ++i : ++j;
  }
  return out;
}

std::string Escaped(uint32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default: {
      const char* digits = "0123456789abcdef";
      return std::string("\\u00") + digits[code >> 4 & 15] + digits[code & 15];
    }
  }
}

}  // namespace

Id JsonText::Shared(uint32_t& rule, const char* name, void (JsonText::*make)(uint32_t)) {
  if (rule == kNone) {
    rule = e_.AddRule(name);
    (this->*make)(rule);
  }
  return e_.Rule(rule);
}

void JsonText::MakeSpace(uint32_t rule) {
  const Id indent = e_.Repeat(e_.Class({{' ', ' '}, {'\t', '\t'}}), 0, kMaxIndent);
  e_.Define(rule,
            e_.Choice({e_.Empty(), e_.Literal(" "), e_.Sequence({e_.Literal("\n"), indent})}));
}

void JsonText::MakeValue(uint32_t rule) {
  const Id object = AnyObject(), array = AnyArray(), string = AnyString(), number = Number();
  e_.Define(rule, e_.Choice({object, array, string, number, Boolean(), Null()}));
}

void JsonText::MakeObject(uint32_t rule) {
  const Id first = Member(AnyString(), AnyValue());
  const Id next = Member(AnyString(), AnyValue());
  e_.Define(rule, Braces(List(first, next, 1, kNoMaximum), true));
}

void JsonText::MakeArray(uint32_t rule) {
  const Id first = AnyValue(), next = AnyValue();
  e_.Define(rule, Brackets(List(first, next, 1, kNoMaximum), true));
}

void JsonText::MakeString(uint32_t rule) { e_.Define(rule, String(0, kNoMaximum)); }

Id JsonText::IntegerText() {
  const Id other = e_.Sequence({e_.Class({{'1', '9'}}), Digits(0, kMaxDigits - 1)});
  return e_.Sequence({e_.Optional(e_.Literal("-")), e_.Choice({e_.Literal("0"), other})});
}

void JsonText::MakeInteger(uint32_t rule) { e_.Define(rule, IntegerText()); }

void JsonText::MakeNumber(uint32_t rule) {
  const Id whole = IntegerText();
  const Id fraction = e_.Sequence({e_.Literal("."), Digits(1, kMaxDigits)});
  const Id sign = e_.Optional(e_.Class({{'+', '+'}, {'-', '-'}}));
  const Id exponent =
      e_.Sequence({e_.Class({{'E', 'E'}, {'e', 'e'}}), sign, Digits(1, kMaxExponentDigits)});
  e_.Define(rule, e_.Sequence({whole, e_.Optional(fraction), e_.Optional(exponent)}));
}

Id JsonText::Hex(uint32_t digits) {
  return e_.Repeat(e_.Class({{'0', '9'}, {'A', 'F'}, {'a', 'f'}}), digits, digits);
}

// \uD800 to \uDFFF only as pairs, which are one character.
Id JsonText::Character() {
  const Id simple = e_.Class({{'"', '"'},
                              {'/', '/'},
                              {'\\', '\\'},
                              {'b', 'b'},
                              {'f', 'f'},
                              {'n', 'n'},
                              {'r', 'r'},
                              {'t', 't'}});
  const auto d = [&] { return e_.Class({{'D', 'D'}, {'d', 'd'}}); };
  const Id other =
      e_.Sequence({e_.Class({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}), Hex(3)});
  const Id below = e_.Sequence({d(), e_.Class({{'0', '7'}}), Hex(2)});
  const Id high = e_.Class({{'8', '9'}, {'A', 'B'}, {'a', 'b'}});
  const Id low = e_.Class({{'C', 'F'}, {'c', 'f'}});
  const Id pair = e_.Sequence({d(), high, Hex(2), e_.Literal("\\u"), d(), low, Hex(2)});
  const Id code = e_.Sequence({e_.Literal("u"), e_.Choice({other, below, pair})});
  return e_.Choice({e_.Class(Plain()), e_.Sequence({e_.Literal("\\"), e_.Choice({simple, code})})});
}

Id JsonText::CharacterOf(const std::vector<CodeRange>& ranges) {
  std::vector<Id> ways = {e_.Class(Intersect(ranges, Plain()))};
  for (const CodeRange& r : ranges) {
    for (uint32_t code = r.low; code <= std::min(r.high, uint32_t{'\\'}); ++code) {
      if (code < 0x20 || code == '"' || code == '\\') ways.push_back(e_.Literal(Escaped(code)));
    }
  }
  return e_.Choice(ways);
}

Id JsonText::String(uint32_t min, uint32_t max) { return Quoted(e_.Repeat(Character(), min, max)); }

// Down the trie of the names; where a key leaves it, the rest is free, and it may end at any node
// at which no name ends.
Id JsonText::KeyNoneOf(const std::vector<std::string_view>& names) {
  struct Node {
    std::map<uint32_t, size_t> next;
    bool ends = false;
  };
  std::vector<Node> trie(1);
  for (const std::string_view name : names) {
    size_t at = 0;
    for (size_t i = 0; i < name.size();) {
      const DecodedChar c = DecodeChar(name, i);
      i += c.length;
      const auto [child, added] = trie[at].next.try_emplace(c.code, trie.size());
      at = child->second;
      if (added) trie.emplace_back();
    }
    trie[at].ends = true;
  }
  const uint32_t rest = e_.AddRule("rest of a key");
  e_.Define(rest, e_.Repeat(e_.Class(Plain()), 0, kNoMaximum));
  std::vector<Id> after(trie.size());  // what may follow at each node; children come later
  for (size_t at = trie.size(); at-- > 0;) {
    std::vector<CodeRange> others;
    std::vector<Id> ways;
    for (const auto& [code, child] : trie[at].next) {
      others.push_back({code, code});
      std::string text;
      AppendUtf8(code, text);
      if (code >= 0x20 && code != '"' && code != '\\') {
        ways.push_back(e_.Sequence({e_.Literal(text), after[child]}));
      }
    }
    const Id other = e_.Class(Intersect(Complement(others), Plain()));
    ways.push_back(e_.Sequence({other, e_.Rule(rest)}));
    if (!trie[at].ends) ways.push_back(e_.Empty());
    after[at] = e_.Choice(ways);
  }
  return Quoted(after[0]);
}

Id JsonText::Member(Id key, Id value) {
  return e_.Sequence({key, e_.Literal(":"), e_.Optional(e_.Literal(" ")), value});
}

Id JsonText::Comma() { return e_.Sequence({e_.Literal(","), Space()}); }

Id JsonText::Enclosed(const char* open, Id inside, const char* close, bool may_be_empty) {
  Id all = e_.Sequence({inside, Space()});
  if (may_be_empty) all = e_.Optional(all);
  return e_.Sequence({e_.Literal(open), Space(), all, e_.Literal(close)});
}

Id JsonText::Braces(Id members, bool may_be_empty) {
  return Enclosed("{", members, "}", may_be_empty);
}
Id JsonText::Brackets(Id items, bool may_be_empty) {
  return Enclosed("[", items, "]", may_be_empty);
}

Id JsonText::List(Id item, Id same_item, uint32_t min, uint32_t max) {
  const Id more = e_.Sequence({Comma(), same_item});
  const uint32_t less = min == 0 ? 0 : min - 1;
  return e_.Sequence({item, e_.Repeat(more, less, max == kNoMaximum ? max : max - 1)});
}

}  // namespace sluice::grammar
