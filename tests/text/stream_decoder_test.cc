#include <random>

#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

constexpr char kBad[] = "\xEF\xBF\xBD";

struct ByteVocab : TinyVocab {
  ByteVocab() : TinyVocab("llama") {
    Add("<unk>", 0, kTypeUnknown);
    Add("<s>", 0, kTypeControl);
    Add("</s>", 0, kTypeControl);
    first = AddByteTokens();
    Add("\xE2\x96\x81hi");
    Loaded();
  }
  int32_t Byte(int b) const { return first + b; }
  int32_t first;
};

TEST(StreamDecoder, HoldsBackAnUnfinishedCharacter) {
  ByteVocab vocab;
  StreamDecoder decoder(*vocab.tokenizer, true);
  EXPECT_EQ(decoder.Push(vocab.Byte(0xF0)), "");
  EXPECT_EQ(decoder.Push(vocab.Byte(0x9F)), "");
  EXPECT_EQ(decoder.Push(vocab.Byte(0xA6)), "");
  EXPECT_EQ(decoder.Push(vocab.Byte(0x99)), "\xF0\x9F\xA6\x99");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST(StreamDecoder, ReplacesWhatCanNeverBecomeOne) {
  ByteVocab vocab;
  StreamDecoder decoder(*vocab.tokenizer, true);
  EXPECT_EQ(decoder.Push(vocab.Byte(0x80)), kBad);
  EXPECT_EQ(decoder.Push(vocab.Byte(0xE2)), "");
  EXPECT_EQ(decoder.Push(vocab.Byte('x')), std::string(kBad) + "x");
  EXPECT_EQ(decoder.Push(vocab.Byte(0xE2)), "");
  EXPECT_EQ(decoder.Push(vocab.Byte(0x96)), "");
  EXPECT_EQ(decoder.Flush(), kBad);  // one for the whole unfinished part
}

TEST(StreamDecoder, SkippedTokensDoNotPartACharacter) {
  ByteVocab vocab;
  StreamDecoder decoder(*vocab.tokenizer, true);
  EXPECT_EQ(decoder.Push(vocab.Byte(0xC3)), "");
  EXPECT_EQ(decoder.Push(1), "");
  EXPECT_EQ(decoder.Push(vocab.Byte(0xA9)), "\xC3\xA9");
}

TEST(StreamDecoder, LeadingBlankIsDroppedOnlyFromAText) {
  ByteVocab vocab;
  const int32_t hi = vocab.first + 256;
  StreamDecoder text(*vocab.tokenizer, true);
  EXPECT_EQ(text.Push(hi), "hi");
  EXPECT_EQ(text.Push(hi), " hi");
  StreamDecoder more(*vocab.tokenizer, true, StreamDecoder::Start::kContinuation);
  EXPECT_EQ(more.Push(hi), " hi");
}

TEST(StreamDecoder, IdsOutsideTheVocabularyAreSilent) {
  ByteVocab vocab;
  StreamDecoder decoder(*vocab.tokenizer, false);
  EXPECT_EQ(decoder.Push(-1), "");
  EXPECT_EQ(decoder.Push(1 << 30), "");
  EXPECT_EQ(decoder.Push(vocab.Byte('a')), "a");
}

TEST(StreamDecoder, AnySequenceEqualsDecodeAndIsUtf8) {
  ByteVocab vocab;
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids;
    for (int i = 0; i < 12; ++i) {
      ids.push_back(static_cast<int32_t>(random() % vocab.tokens.size()));
    }
    StreamDecoder decoder(*vocab.tokenizer, false);
    std::string joined;
    for (const int32_t id : ids) {
      const std::string part = decoder.Push(id);
      EXPECT_TRUE(IsUtf8(part));
      joined += part;
    }
    joined += decoder.Flush();
    EXPECT_EQ(joined, vocab.tokenizer->Decode(ids, false));
  }
}

}  // namespace
}  // namespace sluice
