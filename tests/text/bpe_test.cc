#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

// The 256 bytes, then "he", "ll", "lo", "hel", "hell", "hello" by the merges given.
struct BpeVocab : TinyVocab {
  explicit BpeVocab(const char* pre = "gpt-2") : TinyVocab("gpt2") {
    AddByteChars();
    AddMerge("h", "e");
    AddMerge("l", "l");
    AddMerge("l", "o");
    AddMerge("he", "ll");
    AddMerge("\xC4\xA0", "a");  // " a"
    if (pre != nullptr) writer.AddString("tokenizer.ggml.pre", pre);
    with_scores = false;
  }
};

TEST(Bpe, MergesInTheOrderOfTheList) {
  BpeVocab vocab;
  EXPECT_EQ(vocab.Pieces("hello"), "hell|o");
  EXPECT_EQ(vocab.Pieces("lllo"), "ll|lo");  // leftmost ll before lo
  EXPECT_EQ(vocab.Pieces("lo a"),
            "lo|\xC4\xA0"
            "a");
}

TEST(Bpe, WordsDoNotMergeAcross) {
  BpeVocab vocab("llama-bpe");
  EXPECT_EQ(vocab.Pieces("h1e"), "h|1|e");
  EXPECT_EQ(vocab.Pieces("he he"), "he|\xC4\xA0|he");
}

TEST(Bpe, SomeFamiliesLookTheWholeWordUp) {
  for (const bool whole : {false, true}) {
    BpeVocab vocab(whole ? "llama-bpe" : "qwen2");
    vocab.Add("hello");  // no merge makes it
    EXPECT_EQ(vocab.Pieces("hello"), whole ? "hello" : "hell|o");
  }
}

TEST(Bpe, QwenComposesFirst) {
  BpeVocab vocab("qwen2");
  EXPECT_EQ(vocab.Encode("e\xCC\x81"), vocab.Encode("\xC3\xA9"));
  BpeVocab plain("llama-bpe");
  EXPECT_NE(plain.Encode("e\xCC\x81"), plain.Encode("\xC3\xA9"));
}

TEST(Bpe, UnknownPreTokenizerIsOneClearError) {
  BpeVocab vocab("gpt-9");
  const Status status = vocab.Load();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("\"gpt-9\""), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("tiny.gguf"), std::string::npos) << status.message();
}

TEST(Bpe, AbsentPreTokenizerIsTheDefaultOne) {
  BpeVocab vocab(nullptr);
  EXPECT_EQ(vocab.Loaded().pre(), "default");
  EXPECT_EQ(vocab.Pieces("12345"), "1|2|3|4|5");
}

TEST(Bpe, WithoutMergesThereIsNoTokenizer) {
  TinyVocab vocab("gpt2");
  vocab.AddByteChars();
  const Status status = vocab.Load();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("merges"), std::string::npos);
}

TEST(Bpe, MergesThatNameNoTokensAreIgnored) {
  BpeVocab vocab;
  for (const char* merge : {"zz y", "z zz", "noblank", "", " ", "  ", "h e", "hell o", "o "}) {
    vocab.merges.push_back(merge);
  }
  EXPECT_EQ(vocab.Pieces("hello zzy"), "hell|o|\xC4\xA0|z|z|y");
}

TEST(Bpe, MissingBytesAreUnknownOrLeftOut) {
  for (const bool has_unknown : {true, false}) {
    TinyVocab vocab("gpt2");
    if (has_unknown) {
      vocab.writer.AddU32("tokenizer.ggml.unknown_token_id",
                          static_cast<uint32_t>(vocab.Add("<unk>", 0, kTypeUnknown)));
    }
    vocab.Add("a");
    vocab.Add("b");
    vocab.AddMerge("a", "b");
    vocab.writer.AddString("tokenizer.ggml.pre", "gpt-2");
    EXPECT_EQ(vocab.Pieces("abxab"), has_unknown ? "ab|<unk>|ab" : "ab|ab");
  }
}

TEST(Bpe, UserDefinedTokensArePrintedAsWritten) {
  BpeVocab vocab;
  const int32_t umlaut = vocab.Add("\xC3\xB6", 0, kTypeUser);
  EXPECT_EQ(vocab.Loaded().Piece(umlaut), "\xC3\xB6");
  EXPECT_EQ(vocab.Encode("\xC3\xB6"), std::vector<int32_t>{umlaut});
}

TEST(Bpe, BosOnlyWhereTheFileOrTheFamilySaysSo) {
  for (const char* pre : {"gpt-2", "llama-bpe"}) {
    BpeVocab vocab(pre);
    const int32_t bos = vocab.Add("<bos>", 0, kTypeControl);
    vocab.writer.AddU32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(bos));
    EXPECT_EQ(vocab.Pieces("a", kAddSpecial), std::string(pre) == "gpt-2" ? "a" : "<bos>|a");
  }
}

// gemma4: blanks as SPM writes them, merges as BPE has them, runs of newlines as tokens.
TEST(Bpe, TextWithoutAByteMap) {
  TinyVocab vocab("gemma4");
  vocab.AddByteTokens();
  for (const char* piece : {"a", "b", "\xE2\x96\x81", "\n", "\n\n\n"}) vocab.Add(piece);
  vocab.AddMerge("\xE2\x96\x81", "a");
  EXPECT_EQ(vocab.Pieces("b a\n\n\na\xC3\xA9"),
            "b|\xE2\x96\x81"
            "a|\n\n\n|a|<0xC3>|<0xA9>");
  EXPECT_EQ(vocab.Loaded().Decode(vocab.Encode("b a\xC3\xA9"), false), "b a\xC3\xA9");
}

}  // namespace
}  // namespace sluice
