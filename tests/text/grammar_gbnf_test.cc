// What GBNF grammars mean: languages against sets of texts that are put
// together by hand, all of them up to a length; and what is refused.
#include <functional>
#include <set>

#include "src/text/unicode.h"
#include "tests/text/grammar_vocabulary.h"

namespace sluice {
namespace {

// A language, cut off at texts of this length: plain sets of strings.
constexpr size_t kLength = 5, kReach = 11;
using Texts = std::set<std::string>;
Texts T(std::string text) { return {std::move(text)}; }
Texts operator|(const Texts& a, const Texts& b) {
  Texts all = a;
  all.insert(b.begin(), b.end());
  return all;
}
Texts operator+(const Texts& a, const Texts& b) {
  Texts all;
  for (const std::string& x : a) {
    for (const std::string& y : b) {
      if (x.size() + y.size() <= kReach) all.insert(x + y);
    }
  }
  return all;
}
Texts Times(const Texts& a, size_t min, size_t max) {
  Texts power = T(""), all;
  for (size_t i = 0; i <= max; ++i) {
    const Texts before = all;
    if (i >= min) all = all | power;
    if (i > min + kReach && all == before) break;
    power = power + a;
  }
  return all;
}
Texts Fixpoint(const std::function<Texts(const Texts&)>& step) {
  Texts all;
  for (Texts next = step(all); next != all; next = step(all)) all = next;
  return all;
}

void AllTexts(const std::string& letters, size_t length, std::vector<std::string>& out) {
  out = {""};
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].size() == length) continue;
    for (const char c : letters) out.push_back(out[i] + c);
  }
}

// Every text over `letters` up to kLength matches or not, and can go on or not, as in `texts`,
// which must hold all texts up to kReach, and no prefix may need more than that.
void ExpectLanguage(const std::string& source, const std::string& letters, const Texts& texts) {
  const auto grammar = MustParse(source);
  Texts prefixes;
  for (const std::string& text : texts) {
    for (size_t n = 0; n <= text.size(); ++n) prefixes.insert(text.substr(0, n));
  }
  std::vector<std::string> all;
  AllTexts(letters, kLength, all);
  for (const std::string& text : all) {
    bool ends = false;
    const size_t fits = Bytes::Get().Fits(*grammar, text, &ends);
    ASSERT_EQ(fits == text.size(), prefixes.contains(text)) << source << "\ntext: " << text;
    ASSERT_EQ(fits == text.size() && ends, texts.contains(text)) << source << "\ntext: " << text;
  }
}

TEST(Gbnf, Sequences) { ExpectLanguage("root ::= \"a\" \"bc\"", "abc", T("abc")); }

TEST(Gbnf, Choices) {
  ExpectLanguage("root ::= \"a\" | \"ab\" \"c\" | \"b\" | ", "abc",
                 T("a") | T("abc") | T("b") | T(""));
}

TEST(Gbnf, Repetitions) {
  const Texts a = T("a"), ab = T("a") | T("bb");
  ExpectLanguage("root ::= \"a\"* \"b\"", "ab", Times(a, 0, kReach) + T("b"));
  ExpectLanguage("root ::= \"a\"+ \"b\"?", "ab", Times(a, 1, kReach) + (T("b") | T("")));
  ExpectLanguage("root ::= (\"a\" | \"bb\")* \"c\"", "abc", Times(ab, 0, kReach) + T("c"));
  ExpectLanguage("root ::= (\"a\" | \"bb\"){2} \"c\"", "abc", Times(ab, 2, 2) + T("c"));
  ExpectLanguage("root ::= (\"a\" | \"bb\"){2,} \"c\"", "abc", Times(ab, 2, kReach) + T("c"));
  ExpectLanguage("root ::= (\"a\" | \"bb\"){0,3} \"c\"", "abc", Times(ab, 0, 3) + T("c"));
  ExpectLanguage("root ::= \"ab\"{0} \"c\"", "abc", T("c"));
}

// More than what is written out: counters, also within each other.
TEST(Gbnf, CountedRepetitions) {
  const Texts a = T("a") | T("b") | T("ba") | T("aab");
  const std::string choice = "(\"a\" | \"b\" | \"ba\" | \"aab\")";
  ExpectLanguage("root ::= " + choice + "{3,5} \"c\"", "abc", Times(a, 3, 5) + T("c"));
  ExpectLanguage("root ::= " + choice + "{2,} \"c\"", "abc", Times(a, 2, kReach) + T("c"));
  const Texts row = T("a") + Times(T("b") | T("ba"), 2, 3);
  ExpectLanguage("root ::= (\"a\" (\"b\" | \"ba\" | \"zzzzzzzzzzzzzzzzzzzz\"){2,3}){1,2}", "ab",
                 Times(row, 1, 2));
}

// Elements that may be empty fill up what is missing, and cost nothing.
TEST(Gbnf, EmptyElements) {
  const Texts a = T("a") | T("");
  ExpectLanguage("root ::= (\"a\"?){3,5} \"b\"", "ab", Times(T("a"), 0, 5) + T("b"));
  ExpectLanguage("root ::= (\"a\"*)* \"b\"", "ab", Times(T("a"), 0, kReach) + T("b"));
  ExpectLanguage("root ::= ((\"a\"?)+)* \"b\"", "ab", Times(T("a"), 0, kReach) + T("b"));
  ExpectLanguage("root ::= (\"a\"*){2,1000000} \"b\"", "ab", Times(T("a"), 0, kReach) + T("b"));
  ExpectLanguage("root ::= x{2,4} \"c\"\nx ::= y y\ny ::= \"a\" | \"\" | \"zzzzzzzzzzzzzzz\"",
                 "abc", Times(T("a"), 0, 8) + T("c"));
  ExpectLanguage("root ::= \"\"", "a", T(""));
  ExpectLanguage("root ::=", "a", T(""));
  ExpectLanguage("root ::= ()", "a", T(""));
}

TEST(Gbnf, Recursion) {
  ExpectLanguage("root ::= \"a\" root \"b\" | \"c\"", "abc",
                 Fixpoint([](const Texts& x) { return (T("a") + x + T("b")) | T("c"); }));
  ExpectLanguage("root ::= \"a\" root | \"\"", "ab", Times(T("a"), 0, kReach));
  ExpectLanguage("root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"\"", "ab",
                 Fixpoint([](const Texts& x) {
                   return (T("a") + x + T("a")) | (T("b") + x + T("b")) | T("");
                 }));
  // Ambiguous: many stacks at once.
  ExpectLanguage(
      "root ::= \"a\" root root | \"b\" | \"a\" root \"c\"", "abc",
      Fixpoint([](const Texts& x) { return (T("a") + x + x) | T("b") | (T("a") + x + T("c")); }));
  ExpectLanguage("root ::= x \"c\"\nx ::= \"a\" y | \"\"\ny ::= \"b\" x x | \"b\"", "abc",
                 Fixpoint([](const Texts& x) {
                   const Texts y = (T("b") + x + x) | T("b");
                   return (T("a") + y) | T("");
                 }) + T("c"));
}

TEST(Gbnf, RulesTooLargeToBeWrittenOut) {
  const std::string filler(100, 'z');
  ExpectLanguage(
      "root ::= x* y{2,3}\nx ::= \"a\" | \"" + filler + "\"\ny ::= x \"b\" | \"" + filler + "\"",
      "ab", Times(T("a"), 0, kReach) + Times(T("ab"), 2, 3));
  ExpectLanguage("root ::= x x \"b\"\nx ::= \"a\" | \"\" | \"" + filler + "\"", "ab",
                 Times(T("a"), 0, 2) + T("b"));
}

// A way that can never end is no way.
TEST(Gbnf, EndlessWays) {
  ExpectLanguage("root ::= \"a\" | \"b\" x\nx ::= \"c\" x", "abc", T("a"));
  ExpectLanguage("root ::= \"a\" [^\\U00000000-\\U0010FFFF]? \"b\"", "ab", T("ab"));
}

TEST(Gbnf, Layout) {
  ExpectLanguage(
      "# first\n\nroot ::= # the rule\n  \"a\" ( # inside\n \"b\" |\n \"c\"\n) |\n \"c\" other-1\n"
      "other-1 ::= \"b\"   # last",
      "abc", T("ab") | T("ac") | T("cb"));
  ExpectLanguage("root ::= \"a\"\r\nb ::= \"b\"\r\n", "ab", T("a"));
  ExpectLanguage("root ::= \"a\" { 1 , 2 } \"b\"", "ab", Times(T("a"), 1, 2) + T("b"));
}

TEST(Gbnf, Classes) {
  ExpectLanguage("root ::= [a-c] [^a-c] [-a]", "abcd-",
                 (T("a") | T("b") | T("c")) + (T("d") | T("-")) + (T("-") | T("a")));
  ExpectLanguage("root ::= [a\\]\\[]", "a[]", T("a") | T("[") | T("]"));
  ExpectLanguage("root ::= [ac-]", "abc-", T("a") | T("c") | T("-"));
}

TEST(Gbnf, Escapes) {
  const auto grammar = MustParse("root ::= \"\\n\\t\\r\\\"\\\\\\[\\]\\x41\\u00e9\\U0001F600\"");
  EXPECT_TRUE(Bytes::Get().Matches(*grammar, "\n\t\r\"\\[]A\xC3\xA9\xF0\x9F\x98\x80"));
}

// All characters, however many bytes they have, and no bytes that are none.
TEST(Gbnf, Characters) {
  const auto any = MustParse("root ::= .");
  const auto some = MustParse("root ::= [\\u0100-\\u20ff\\U0001F5FF-\\U0001F602]");
  const auto none = MustParse("root ::= [^\\u0100-\\u20ff\\U0001F5FF-\\U0001F602]");
  uint32_t tried = 0;
  for (uint32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : code < 0xFFF0 ? 13 : 1009) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(code, text);
    const bool in = (code >= 0x100 && code <= 0x20FF) || (code >= 0x1F5FF && code <= 0x1F602);
    ASSERT_TRUE(Bytes::Get().Matches(*any, text)) << code;
    ASSERT_EQ(Bytes::Get().Matches(*some, text), in) << code;
    ASSERT_EQ(Bytes::Get().Matches(*none, text), !in) << code;
    ++tried;
  }
  EXPECT_GT(tried, 10000u);
  for (const uint32_t code : {0x1F5FEu, 0x1F5FFu, 0x1F602u, 0x1F603u, 0x10FFFFu}) {
    std::string text;
    AppendUtf8(code, text);
    EXPECT_EQ(Bytes::Get().Matches(*some, text), code >= 0x1F5FF && code <= 0x1F602) << code;
  }
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF5",
                          "\xF4\x90", "\xC3(", "\xFF"}) {
    EXPECT_FALSE(Bytes::Get().IsPrefix(*any, bad)) << bad;
  }
}

void ExpectRefused(const std::string& source, const std::string& part) {
  const auto grammar = Grammar::FromGbnf(source);
  ASSERT_FALSE(grammar.ok()) << source;
  EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(grammar.status().message().find(part), std::string::npos) << source << "\n"
                                                                      << grammar.status().message();
  EXPECT_EQ(grammar.status().message().find('\n'), std::string::npos);
  EXPECT_LT(grammar.status().message().size(), 300u);
}

TEST(Gbnf, Refused) {
  ExpectRefused("", "root");
  ExpectRefused("a ::= \"b\"", "root");
  ExpectRefused("root ::= a", "line 1, column 10: rule a is not defined");
  ExpectRefused("root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule root is defined twice");
  ExpectRefused("root = \"a\"", "line 1, column 6: expected ::=");
  ExpectRefused("root ::= \"a", "line 1, column 10: this literal is never closed");
  ExpectRefused("root ::= \"\\q\"", "line 1, column 11: unknown escape");
  ExpectRefused("root ::= \"\\x4\"", "2 hexadecimal digits");
  ExpectRefused("root ::= \"\\uD800\"", "no such character");
  ExpectRefused("root ::= \"\\U00110000\"", "no such character");
  ExpectRefused("root ::= \"\xFF\"", "not UTF-8");
  ExpectRefused("root ::= [a", "line 1, column 10: this [ is never closed");
  ExpectRefused("root ::= [z-a]", "ends before it begins");
  ExpectRefused("root ::= (\"a\"", "line 1, column 10: this ( is never closed");
  ExpectRefused("root ::= \"a\")", "line 1, column 13: this ) was never opened");
  ExpectRefused("root ::= *", "nothing to repeat before *");
  ExpectRefused("root ::= \"a\" | + ", "nothing to repeat before +");
  ExpectRefused("root ::= \"a\"{", "expected a number");
  ExpectRefused("root ::= \"a\"{,3}", "expected a number");
  ExpectRefused("root ::= \"a\"{3,2}", "most is less than its least");
  ExpectRefused("root ::= \"a\"{1", "expected }");
  ExpectRefused("root ::= \"a\"{0,1000000000}", "at most 1000000 repetitions");
  ExpectRefused("root ::= \"a\"{99999999999999999999}", "at most 1000000 repetitions");
  ExpectRefused("root ::= <think>", "tokens written as <...>");
  ExpectRefused("root ::= $", "found '$'");
  ExpectRefused("root ::= \"a\" root", "goes on for ever");
}

TEST(Gbnf, LeftRecursionIsRefused) {
  ExpectRefused("root ::= root \"a\" | \"b\"", "line 1, column 10: rule root comes back");
  ExpectRefused("root ::= x\nx ::= y \"a\" | \"b\"\ny ::= x \"c\"", "left recursion");
  ExpectRefused("root ::= x\nx ::= e x \"a\" | \"b\"\ne ::= \"e\"?", "line 2, column 9");
  ExpectRefused("root ::= (\"a\"* root)? \"b\"", "left recursion");
  ExpectRefused("root ::= \"b\" | (root){2,9}", "left recursion");
  ExpectRefused("root ::= \"b\" | \"\" root", "left recursion");
}

}  // namespace
}  // namespace sluice
