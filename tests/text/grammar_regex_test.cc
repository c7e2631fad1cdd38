// Answers held to a regular expression: the texts that match as a whole, against
// std::regex on every short text, and what is refused.
#include <regex>

#include "tests/text/grammar_vocabulary.h"

namespace sluice {
namespace {

std::shared_ptr<const Grammar> Compile(std::string_view pattern) {
  auto grammar = Grammar::FromRegex(pattern);
  EXPECT_TRUE(grammar.ok()) << pattern << ": " << grammar.status().message();
  return grammar.ok() ? *grammar : Grammar::JsonObject();
}

bool Matches(std::string_view pattern, std::string_view text) {
  return Bytes::Get().Matches(*Compile(pattern), text);
}

TEST(RegexGrammar, EveryShortTextAsStdRegexHasIt) {
  const std::string letters = "ab1-";
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == 5) continue;
    for (const char c : letters) texts.push_back(texts[i] + c);
  }
  for (const char* pattern : {"a", "ab|1", "^ab|1$", "(ab|1-?)+", "a*b{2,3}1?", "[ab]+-\\d",
                              "[^a]{3}", "(?:a|(b|1)-)*", "", "\\w{2}-\\w+", "a+?b", "(a{2}){1,2}",
                              ".-.", "^(a|)(b|)$", "\\D\\d\\D", "[\\d-]{1,4}", "(a|ab)(1|b1)-"}) {
    const std::regex expected(pattern);
    const auto grammar = Compile(pattern);
    for (const std::string& text : texts) {
      ASSERT_EQ(Bytes::Get().Matches(*grammar, text), std::regex_match(text, expected))
          << pattern << " and \"" << text << "\"";
    }
  }
}

TEST(RegexGrammar, TextIsPlainNotJson) {
  EXPECT_TRUE(Matches("\"\\n\\\\\"", "\"\n\\\""));
  EXPECT_TRUE(Matches("[\\x00-\\x1f]", "\x01"));
  EXPECT_TRUE(Matches("\\u00e9+", "\u00E9\u00E9"));
  EXPECT_TRUE(Matches("[\u00e0-\u00ef]", "\u00E9"));
  EXPECT_FALSE(Matches("[\u00e0-\u00ef]", "\xC3"));  // half of it
  EXPECT_TRUE(Matches("(\\d{3}-)?\\d{4}", "555-1234"));
  EXPECT_TRUE(Matches("(\\d{3}-)?\\d{4}", "1234"));
  EXPECT_FALSE(Matches("(\\d{3}-)?\\d{4}", "x1234"));
  EXPECT_TRUE(Matches("[\\w.]+@[a-z]+\\.com", "a.b_c@host.com"));
  EXPECT_FALSE(Matches(".", "\n"));
}

TEST(RegexGrammar, WhatIsNotKnownIsRefusedWithItsPlace) {
  for (const char* pattern :
       {"(a", "a)", "[a", "a**", "*a", "a{2,1}", "(?=a)", "(?<!a)b", "(a)\\1", "\\bword", "a$b",
        "a^b", "\\p{L}", "[b-a]", "\\", "a{1000001}", "[^\\s\\S]", "\xC3"}) {
    const auto grammar = Grammar::FromRegex(pattern);
    ASSERT_FALSE(grammar.ok()) << pattern;
    EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument) << pattern;
    EXPECT_FALSE(grammar.status().message().empty());
  }
  EXPECT_NE(Grammar::FromRegex("ab(?=c)").status().message().find("at byte 3"), std::string::npos)
      << Grammar::FromRegex("ab(?=c)").status().message();
}

TEST(RegexGrammar, SizesHaveLimits) {
  EXPECT_FALSE(Grammar::FromRegex(std::string(20'001, 'a')).ok());
  EXPECT_FALSE(Grammar::FromRegex(std::string(300, '(') + "a" + std::string(300, ')')).ok());
  // Counts are counted, not written out.
  EXPECT_TRUE(Grammar::FromRegex("((ab{1000}){1000}c){1000}").ok());
}

}  // namespace
}  // namespace sluice
