#include <cmath>
#include <limits>

#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

constexpr char kMark[] = "\xE2\x96\x81";

// <unk> <s> </s>, bytes, and a few pieces.
struct SpmVocab : TinyVocab {
  SpmVocab() : TinyVocab("llama") {
    Add("<unk>", 0, kTypeUnknown);
    Add("<s>", 0, kTypeControl);
    Add("</s>", 0, kTypeControl);
    first_byte = AddByteTokens();
    for (const char* piece : {"a", "b", "c", kMark}) Add(piece, -100);
  }
  int32_t first_byte;
};

TEST(Spm, MergesTheBestScoreFirst) {
  SpmVocab vocab;
  vocab.Add("ab", -5);
  vocab.Add("bc", -1);
  vocab.Add("abc", -9);
  vocab.writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(vocab.Pieces("abc"), "abc");  // bc, then a + bc
  EXPECT_EQ(vocab.Pieces("abab"), "ab|ab");
  EXPECT_EQ(vocab.Pieces("abbc"), "ab|bc");
}

TEST(Spm, LeftmostOnTies) {
  SpmVocab vocab;
  vocab.Add("aa", -1);
  vocab.writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(vocab.Pieces("aaa"), "aa|a");
  EXPECT_EQ(vocab.Pieces("aaaaa"), "aa|aa|a");
}

TEST(Spm, PutsABlankAtTheStartAndAfterSpecialTokens) {
  SpmVocab vocab;
  vocab.Add(std::string(kMark) + "a", -1);
  EXPECT_EQ(vocab.Pieces("a"),
            "\xE2\x96\x81"
            "a");
  EXPECT_EQ(vocab.Pieces(""), "");
  EXPECT_EQ(vocab.Pieces("a<s>a", kParseSpecial),
            "\xE2\x96\x81"
            "a|<s>|\xE2\x96\x81"
            "a");
  EXPECT_EQ(vocab.Pieces("<s></s>", kParseSpecial), "<s>|</s>");
  EXPECT_EQ(vocab.Pieces("a", kAddSpecial),
            "<s>|\xE2\x96\x81"
            "a");
  EXPECT_EQ(vocab.Pieces("", kAddSpecial), "<s>");
}

TEST(Spm, WritesUnknownCharactersAsBytes) {
  SpmVocab vocab;
  EXPECT_EQ(vocab.Pieces("\xC3\xA9"), "\xE2\x96\x81|<0xC3>|<0xA9>");
  // A bad lead byte swallows nothing: the blank after it is still a blank.
  EXPECT_EQ(vocab.Pieces("\xF0\x9F a"), "\xE2\x96\x81|<0xF0>|<0x9F>|\xE2\x96\x81|a");
  EXPECT_EQ(vocab.tokenizer->Decode(vocab.Encode("\xC3\xA9 a"), false), "\xC3\xA9 a");
  // Text that spells a byte token is text.
  const std::vector<int32_t> ids = vocab.Encode("<0x41>");
  for (const int32_t id : ids) EXPECT_NE(id, vocab.first_byte + 0x41);
  EXPECT_EQ(vocab.tokenizer->Decode(ids, false), "<0x41>");
}

TEST(Spm, WithoutBytesACharacterIsUnknown) {
  TinyVocab vocab("llama");
  vocab.Add("<unk>", 0, kTypeUnknown);
  vocab.Add("a");
  EXPECT_EQ(vocab.Pieces("a\xC3\xA9"
                         "a"),
            "<unk>|a|<unk>|a");  // the first is the prefix
}

TEST(Spm, WithoutAnUnknownTokenNothingIsMadeUp) {
  TinyVocab vocab("llama");
  vocab.Add("a");
  EXPECT_EQ(vocab.Pieces("a\xC3\xA9\xFF"
                         "a"),
            "a|a");
}

TEST(Spm, UserDefinedTokensAreCutOutFirstLongestFirst) {
  SpmVocab vocab;
  vocab.Add("\n\n", 0, kTypeUser);
  vocab.Add("\n\n\n", 0, kTypeUser);
  vocab.Add("<b>", 0, kTypeUser);
  vocab.writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(vocab.Pieces("a\n\n\n\n\n<b>a"), "a|\n\n\n|\n\n|<b>|a");
}

TEST(Spm, ControlTextStaysTextUnlessParsed) {
  SpmVocab vocab;
  for (const int32_t id : vocab.Encode("</s>")) EXPECT_NE(id, 2);
  EXPECT_EQ(vocab.Encode("</s>", kParseSpecial), std::vector<int32_t>{2});
}

TEST(Spm, Phi3TokensSwallowTheBlanksAfterThem) {
  SpmVocab vocab;
  vocab.Add("<|end|>", 0, kTypeControl);
  vocab.writer.AddString("general.name", "Phi-3-mini");
  vocab.writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(vocab.Pieces("<|end|>\n \xC2\xA0"
                         "a<s> a",
                         kParseSpecial),
            "<|end|>|a|<s>|\xE2\x96\x81|a");
}

TEST(Spm, DecodeDropsExactlyOneLeadingBlank) {
  SpmVocab vocab;
  const Tokenizer& tokenizer = vocab.Loaded();
  EXPECT_EQ(tokenizer.Decode(vocab.Encode("a"), false), "a");
  EXPECT_EQ(tokenizer.Decode(vocab.Encode(" a"), false), " a");
  EXPECT_EQ(tokenizer.Decode(vocab.Encode("a", kAddSpecial), false), "<s> a");
  EXPECT_EQ(tokenizer.Decode(vocab.Encode("a", kAddSpecial), true), "a");
}

TEST(Spm, ScoresThatAreNoNumbersDoNotMatter) {
  SpmVocab vocab;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  vocab.Add("ab", nan);
  vocab.Add("bc", infinity);
  vocab.Add("ca", -infinity);
  vocab.writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(vocab.Pieces("abcab"), "a|bc|ab");
}

TEST(Spm, SpecialIdsOutOfRangeAreAbsent) {
  SpmVocab vocab;
  vocab.writer.AddU32("tokenizer.ggml.bos_token_id", 100000);
  vocab.writer.AddU32("tokenizer.ggml.eos_token_id", 0xFFFFFFFFu);
  vocab.writer.AddI32("tokenizer.ggml.unknown_token_id", -1);
  EXPECT_EQ(vocab.Loaded().bos(), std::optional<int32_t>(1));  // the family's own, if it fits
  TinyVocab small("llama");
  small.Add("a");
  small.writer.AddU32("tokenizer.ggml.bos_token_id", 7);
  EXPECT_EQ(small.Loaded().bos(), std::nullopt);
  EXPECT_EQ(small.Pieces("a", kAddSpecial), "a");
}

}  // namespace
}  // namespace sluice
