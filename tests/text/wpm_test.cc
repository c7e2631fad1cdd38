#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

const std::string kMark = "\xE2\x96\x81";

struct WpmVocab : TinyVocab {
  WpmVocab() : TinyVocab("bert") {
    Add("[PAD]", 0, kTypeControl);
    Add("[UNK]", 0, kTypeControl);
    Add("[CLS]", 0, kTypeControl);
    Add("[SEP]", 0, kTypeControl);
    for (const char* piece : {"un", "hello", "a", ",", "[", "]", "sep", "\xE4\xB8\xAD"}) {
      Add(kMark + piece);
    }
    for (const char* piece : {"aff", "able", "a"}) Add(piece);
    writer.AddU32("tokenizer.ggml.unknown_token_id", 1);
    writer.AddU32("tokenizer.ggml.cls_token_id", 2);
    writer.AddU32("tokenizer.ggml.seperator_token_id", 3);
  }
};

std::string Marked(std::initializer_list<const char*> pieces) {
  std::string joined;
  for (std::string piece : pieces) {
    if (!joined.empty()) joined += '|';
    joined += piece[0] == '_' ? kMark + piece.substr(1) : piece;
  }
  return joined;
}

TEST(Wpm, CoversWordsGreedily) {
  WpmVocab vocab;
  EXPECT_EQ(vocab.Pieces("unaffable"), Marked({"_un", "aff", "able"}));
  EXPECT_EQ(vocab.Pieces("hello unknown"), Marked({"_hello", "[UNK]"}));
  EXPECT_EQ(vocab.Pieces("a", kAddSpecial), Marked({"[CLS]", "_a", "[SEP]"}));
}

TEST(Wpm, CleansLowersAndStripsAccents) {
  WpmVocab vocab;
  EXPECT_EQ(vocab.Pieces("H\xC3\x89LLO\t\xE1\xBA\xA0\x01"), Marked({"_hello", "_a"}));
  EXPECT_EQ(vocab.Pieces("a,a"), Marked({"_a", "_,", "_a"}));
  EXPECT_EQ(vocab.Pieces("a\xE4\xB8\xAD"
                         "a"),
            Marked({"_a", "_\xE4\xB8\xAD", "_a"}));
  EXPECT_EQ(vocab.Pieces(std::string("a\0a", 3)), Marked({"_a", "a"}));
}

TEST(Wpm, BracketsAreTextUnlessParsed) {
  WpmVocab vocab;
  EXPECT_EQ(vocab.Pieces("[SEP]"), Marked({"_[", "_sep", "_]"}));
  EXPECT_EQ(vocab.Pieces("[SEP]", kParseSpecial), "[SEP]");
}

TEST(Wpm, WordsPastAHundredCharactersAreUnknown) {
  WpmVocab vocab;
  EXPECT_EQ(vocab.Encode(std::string(100, 'a')).size(), 100u);
  EXPECT_EQ(vocab.Pieces(std::string(101, 'a')), "[UNK]");
}

TEST(Wpm, PrintsWordsWithBlanks) {
  WpmVocab vocab;
  EXPECT_EQ(vocab.Loaded().Decode(vocab.Encode("hello unaffable"), false), "hello unaffable");
}

}  // namespace
}  // namespace sluice
