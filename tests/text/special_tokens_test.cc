#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

TEST(EndTokens, FromTheFileAndByTheirText) {
  TinyVocab vocab("llama");
  const int32_t eos = vocab.Add("</s>", 0, kTypeControl);
  const int32_t eot = vocab.Add("<stop>", 0, kTypeControl);
  const int32_t turn = vocab.Add("<|im_end|>", 0, kTypeUser);  // some converters type it so
  const int32_t other = vocab.Add("<|im_start|>", 0, kTypeControl);
  vocab.writer.AddU32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos));
  vocab.writer.AddU32("tokenizer.ggml.eot_token_id", static_cast<uint32_t>(eot));
  const Tokenizer& tokenizer = vocab.Loaded();
  for (const int32_t id : {eos, eot, turn}) EXPECT_TRUE(tokenizer.IsEnd(id)) << id;
  for (const int32_t id : {other, -1, 1000}) EXPECT_FALSE(tokenizer.IsEnd(id)) << id;
}

TEST(EndTokens, AnHtmlTagOfTheSameTextIsNone) {
  TinyVocab vocab("llama");
  vocab.Add("<eos>", 0, kTypeControl);
  const int32_t tag = vocab.Add("</s>", 0, kTypeUser);
  EXPECT_FALSE(vocab.Loaded().IsEnd(tag));
  EXPECT_TRUE(vocab.Loaded().IsEnd(0));
}

TEST(EndTokens, InTheHarmonyFormatAMessageEndsNoAnswer) {
  TinyVocab vocab("llama");
  const int32_t end = vocab.Add("<|end|>", 0, kTypeControl);
  const int32_t done = vocab.Add("<|return|>", 0, kTypeControl);
  const int32_t call = vocab.Add("<|call|>", 0, kTypeControl);
  EXPECT_FALSE(vocab.Loaded().IsEnd(end));
  EXPECT_TRUE(vocab.Loaded().IsEnd(done));
  EXPECT_TRUE(vocab.Loaded().IsEnd(call));
}

TEST(SpecialTokens, LeftmostThenLongest) {
  TinyVocab vocab("llama");
  vocab.AddByteTokens();
  vocab.Add("<a>", 0, kTypeControl);
  vocab.Add("<a><b>", 0, kTypeControl);
  vocab.Add("b><c><d>", 0, kTypeControl);
  vocab.writer.AddBool("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(vocab.Pieces("<a><b><a>", kParseSpecial), "<a><b>|<a>");
  EXPECT_EQ(vocab.Pieces("<a><b><c><d>", kParseSpecial).substr(0, 7), "<a><b>|");
}

TEST(SpecialTokens, AreFoundByTheirText) {
  TinyVocab vocab("llama");
  vocab.Add("plain");
  const int32_t control = vocab.Add("<x>", 0, kTypeControl);
  const Tokenizer& tokenizer = vocab.Loaded();
  EXPECT_EQ(tokenizer.SpecialId("<x>"), control);
  EXPECT_EQ(tokenizer.SpecialId("plain"), std::nullopt);
  EXPECT_EQ(tokenizer.SpecialId(""), std::nullopt);
  EXPECT_EQ(tokenizer.text(-5), "");
  EXPECT_EQ(tokenizer.Piece(99), "");
  EXPECT_EQ(tokenizer.type(99), TokenType::kUnused);
}

}  // namespace
}  // namespace sluice
