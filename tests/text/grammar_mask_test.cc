// Which tokens a constraint allows: the same as trying each of them byte by
// byte, at every step of random walks; where texts end; the limits.
#include <random>

#include "tests/text/grammar_vocabulary.h"

namespace sluice {
namespace {

std::vector<std::string> RandomPieces(const std::string& letters, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::string> pieces;
  for (const char c : letters) pieces.push_back(std::string(1, c));
  while (pieces.size() < count) {
    std::string piece;
    const size_t length = 1 + random() % 7;
    for (size_t i = 0; i < length; ++i) piece += letters[random() % letters.size()];
    pieces.push_back(piece);  // the same bytes may come twice
  }
  return pieces;
}

// Random walks: at each step every token is allowed exactly if its bytes fit, tried one by one
// with a vocabulary of single bytes. Returns how many walks ended.
int ExpectMasks(const Grammar& grammar, const PieceTokenizer& tokenizer, int walks, int steps,
                uint32_t seed) {
  const auto vocabulary = MakeGrammarVocabulary(tokenizer);
  std::mt19937 random(seed);
  int ended = 0;
  for (int walk = 0; walk < walks; ++walk) {
    const auto constraint = grammar.Start(vocabulary);
    std::string text;
    for (int step = 0; step < steps; ++step) {
      const std::span<const uint64_t> mask = constraint->Allowed();
      EXPECT_EQ(mask.size(), (tokenizer.vocab_size() + 63) / 64);
      bool ends = false;
      EXPECT_EQ(Bytes::Get().Fits(grammar, text, &ends), text.size()) << text;
      std::vector<int32_t> allowed;
      for (size_t i = 0; i < tokenizer.text_tokens(); ++i) {
        const int32_t id = static_cast<int32_t>(i);
        const std::string piece = tokenizer.Piece(id);
        const bool fits = !piece.empty() && Bytes::Get().IsPrefix(grammar, text + piece);
        EXPECT_EQ(Allows(*constraint, id), fits) << "text: " << text << "\npiece: " << piece;
        if (fits) allowed.push_back(id);
      }
      EXPECT_FALSE(Allows(*constraint, tokenizer.control()));
      EXPECT_EQ(Allows(*constraint, tokenizer.end()), ends || allowed.empty()) << text;
      if (testing::Test::HasFailure()) return ended;
      if (ends && (allowed.empty() || random() % 4 == 0)) {
        ++ended;
        break;
      }
      if (allowed.empty()) break;  // the vocabulary lacks what would be next
      const int32_t id = allowed[random() % allowed.size()];
      constraint->Accept(id);
      text += tokenizer.Piece(id);
    }
  }
  return ended;
}

TEST(TokenMask, SmallGrammars) {
  const std::string filler(100, 'z');
  const std::string sources[] = {
      "root ::= (\"ab\" | \"a\")* \"c\"",
      "root ::= \"a\" root \"b\" | \"c\"",
      "root ::= \"a\" root root | \"b\" | \"a\" root \"c\"",
      "root ::= (\"a\" | \"bc\"){3,9} \"c\" root?",
      "root ::= ([ab]{2,40} \"c\"){2,30}",
      "root ::= x{2,20}\nx ::= \"a\" (y \"b\")? | \"" + filler + "\"\ny ::= \"c\" x* | \"" +
          filler + "\"",
      "root ::= x x x \"c\"\nx ::= \"a\" | \"\" | \"b\" x \"b\"",
      "root ::= [a-c]{0,30}",
      "root ::= \"[\" (root (\",\" root)*)? \"]\"",
  };
  uint32_t seed = 1;
  for (const std::string& source : sources) {
    const auto grammar = MustParse(source);
    const PieceTokenizer tokenizer(RandomPieces("abc[],", 100, seed));
    EXPECT_GT(ExpectMasks(*grammar, tokenizer, 8, 20, ++seed), 0) << source;
    if (HasFailure()) FAIL() << source;
  }
}

// Characters cut over tokens in any way.
TEST(TokenMask, CutCharacters) {
  const auto grammar = MustParse("root ::= \"<\" [^\\u00e0-\\u0fff<>]{1,8} \">\"");
  std::vector<std::string> pieces = {"<",
                                     ">",
                                     "\xC3",
                                     "\xA9",
                                     "\xA0",
                                     "\xF0\x9F",
                                     "\x98",
                                     "\x80",
                                     "\x98\x80",
                                     "\x80>",
                                     "a",
                                     "\xE4\xB8\xAD",
                                     "\xE4\xB8",
                                     "\xAD",
                                     "\xAD\xE4",
                                     "",
                                     "\xFF",
                                     "<a",
                                     "\x98\x80\xF0\x9F"};
  EXPECT_GT(ExpectMasks(*grammar, PieceTokenizer(pieces), 40, 20, 5), 5);
}

TEST(TokenMask, JsonObject) {
  std::vector<std::string> pieces = RandomPieces("{}[]:,\" \n0123456789.eE-+ntrufalse\\", 150, 3);
  for (const char* piece :
       {"{\"", "\":", "\": \"", "\",", "\"}", "\"]}", "},", "}]", "true", "false", "null", "\\u",
        "D83D", "DE00", "\n  ", "\t", "\xC3\xA9", "\xC3", "ab"}) {
    pieces.push_back(piece);
  }
  EXPECT_GT(ExpectMasks(*Grammar::JsonObject(), PieceTokenizer(pieces), 30, 50, 3), 1);
}

TEST(TokenMask, OnlyTheEndAtTheEnd) {
  const auto grammar = MustParse("root ::= \"ab\"");
  const PieceTokenizer tokenizer({"a", "b", "ab", "abc"});
  const auto constraint = grammar->Start(MakeGrammarVocabulary(tokenizer));
  constraint->Accept(2);
  ASSERT_EQ(constraint->Allowed().size(), 1u);
  EXPECT_EQ(constraint->Allowed()[0], uint64_t{3} << tokenizer.end());
}

// A vocabulary that lacks what must come next: still one token.
TEST(TokenMask, NothingFits) {
  const auto grammar = MustParse("root ::= \"ab\"");
  const PieceTokenizer with_ends({"a", "c"}), without({"a", "c"}, false);
  auto constraint = grammar->Start(MakeGrammarVocabulary(with_ends));
  constraint->Accept(0);
  EXPECT_EQ(constraint->Allowed()[0], uint64_t{3} << with_ends.end());
  constraint = grammar->Start(MakeGrammarVocabulary(without));
  constraint->Accept(0);
  EXPECT_EQ(constraint->Allowed()[0], 1u);
  constraint->Accept(1);  // not one of the allowed: nothing fits any more, nothing breaks
  EXPECT_EQ(constraint->Allowed()[0], 1u);
}

// Sequences share masks, and each is where it is.
TEST(TokenMask, SequencesDoNotMix) {
  const auto grammar = MustParse("root ::= \"a\"{3} \"b\" | \"b\" \"c\"*");
  const PieceTokenizer tokenizer({"a", "b", "c"});
  const auto vocabulary = MakeGrammarVocabulary(tokenizer);
  const auto one = grammar->Start(vocabulary), two = grammar->Start(vocabulary);
  one->Accept(0);
  two->Accept(1);
  EXPECT_EQ(one->Allowed()[0], 1u);
  EXPECT_EQ(two->Allowed()[0], 4u | uint64_t{3} << tokenizer.end());
  const auto same = MustParse("root ::= \"a\"{3} \"b\" | \"b\" \"c\"*")->Start(vocabulary);
  EXPECT_EQ(same->Allowed()[0], 3u);
}

}  // namespace
}  // namespace sluice
