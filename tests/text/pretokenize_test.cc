// Words of each family on texts where the families differ. '|' parts the words.
#include "src/text/pretokenize.h"

#include <gtest/gtest.h>

#include "src/text/unicode.h"

namespace sluice {
namespace {

std::string Split(std::string_view family, std::string_view text) {
  const PreTokenizer* pre = FindPreTokenizer(family);
  if (pre == nullptr) return "no such family";
  std::vector<uint32_t> ends;
  SplitWords(*pre, text, ends);
  std::string joined;
  size_t begin = 0;
  for (const uint32_t end : ends) {
    if (begin > 0) joined += '|';
    joined += text.substr(begin, end - begin);
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return joined;
}

TEST(PreTokenizer, LastBlankGoesToTheNextWord) {
  EXPECT_EQ(Split("gpt-2", "a   b  "), "a|  | b|  ");
  EXPECT_EQ(Split("gpt-2", "a \tb"), "a| |\t|b");
  EXPECT_EQ(Split("llama-bpe", "a \tb"), "a| |\tb");
  EXPECT_EQ(Split("llama-bpe", "a  !b"), "a| | !|b");
}

TEST(PreTokenizer, NewlinesEndARunOfBlanks) {
  EXPECT_EQ(Split("llama-bpe", "a \n \n  b"), "a| \n \n| | b");
  EXPECT_EQ(Split("gpt-2", "a\n\nb"), "a|\n|\n|b");
  EXPECT_EQ(Split("llama-bpe", "x;\r\n\r\ny"), "x|;\r\n\r\n|y");
  EXPECT_EQ(Split("seed-coder", "x;\ny"), "x|;|\n|y");
  EXPECT_EQ(Split("gpt-4o", "a.//\n/b"), "a|.//\n/|b");
  EXPECT_EQ(Split("deepseek-llm", "a\n\nb  "), "a|\n|\n|b|  ");
}

TEST(PreTokenizer, ContractionsByFamily) {
  EXPECT_EQ(Split("gpt-2", "it's I'LL"), "it|'s| I|'|LL");
  EXPECT_EQ(Split("llama-bpe", "it's I'LL"), "it|'s| I|'LL");
  EXPECT_EQ(Split("gpt-4o", "it's I'LL"), "it's| I'LL");
  EXPECT_EQ(Split("tekken", "it's"), "it|'s");
}

TEST(PreTokenizer, DigitsByFamily) {
  EXPECT_EQ(Split("gpt-2", "1234567"), "1234567");
  EXPECT_EQ(Split("llama-bpe", "1234567"), "123|456|7");
  EXPECT_EQ(Split("qwen2", "123"), "1|2|3");
  EXPECT_EQ(Split("smollm", "a 123"), "a| |1|2|3");
  EXPECT_EQ(Split("falcon", "x 1234567"), "x| |123|456|7");
  EXPECT_EQ(Split("deepseek-v3", "ab1234"), "ab|123|4");
  EXPECT_EQ(Split("tekken", "\xC2\xBD\xC2\xB2"), "\xC2\xBD|\xC2\xB2");  // one half, squared
}

TEST(PreTokenizer, CaseCutsWordsOfGpt4o) {
  EXPECT_EQ(Split("gpt-4o", "camelCaseHTTPServer"), "camel|Case|HTTPServer");
  EXPECT_EQ(Split("llama-bpe", "camelCase"), "camelCase");
  // Ideographs are both upper and lower: greedy, then given back.
  EXPECT_EQ(Split("gpt-4o",
                  "A\xE4\xB8\xAD"
                  "BC"),
            "A\xE4\xB8\xAD|BC");
  EXPECT_EQ(Split("kimi-k2",
                  "A\xE4\xB8\xAD"
                  "BC"),
            "A|\xE4\xB8\xAD|BC");
}

TEST(PreTokenizer, MarksByFamily) {
  const std::string thai = "\xE0\xB8\xAA\xE0\xB8\xB1\xE0\xB8\xAA";  // letter, vowel sign, letter
  EXPECT_EQ(Split("qwen35", thai), thai);
  EXPECT_EQ(Split("gpt-4o", thai), thai);
  EXPECT_EQ(Split("deepseek-v3", thai), thai);
  EXPECT_EQ(Split("qwen2", thai), "\xE0\xB8\xAA|\xE0\xB8\xB1\xE0\xB8\xAA");
}

TEST(PreTokenizer, ScriptsOfDeepseek) {
  EXPECT_EQ(Split("deepseek-v3",
                  "ab\xE4\xB8\xAD\xE3\x81\x82"
                  "c"),
            "ab|\xE4\xB8\xAD\xE3\x81\x82|c");
  EXPECT_EQ(Split("deepseek-v3", "(abc !x"), "(abc| !|x");
  EXPECT_EQ(Split("deepseek-llm", "a \xED\x95\x9C, b"), "a| |\xED\x95\x9C|,| b");
}

TEST(PreTokenizer, UnknownNamesAreNotGuessed) {
  EXPECT_EQ(FindPreTokenizer("llama-4-next"), nullptr);
  EXPECT_EQ(FindPreTokenizer(""), nullptr);
  for (const char* alias : {"default", "llama3", "llama-v3", "smaug-bpe", "dbrx", "phi-2", "olmo",
                            "jais", "deepseek-r1-qwen", "megrez", "exaone4", "glm4", "chatglm-bpe",
                            "hunyuan", "refact", "stablelm2", "gemma4", "lfm2", "command-r"}) {
    EXPECT_NE(FindPreTokenizer(alias), nullptr) << alias;
  }
}

}  // namespace
}  // namespace sluice
