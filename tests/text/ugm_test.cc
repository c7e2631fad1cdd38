#include <cstring>

#include "src/text/charsmap.h"
#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

const std::string kMark = "\xE2\x96\x81";

struct UgmVocab : TinyVocab {
  UgmVocab() : TinyVocab("t5") {
    Add("<pad>", 0, kTypeControl);
    Add("</s>", 0, kTypeControl);
    Add("<unk>", 0, kTypeUnknown);
    Add(kMark, -2);
    Add("a", -3);
    Add("b", -3);
    Add("ab", -5);
    Add(kMark + "a", -3.5);
    Add("bb", -2.5);
  }
};

TEST(Ugm, TheBestSumWins) {
  UgmVocab vocab;
  EXPECT_EQ(vocab.Pieces("ab"), kMark + "a|b");    // -6.5; mark + ab is -7
  EXPECT_EQ(vocab.Pieces("abb"), kMark + "a|bb");  // -6
  EXPECT_EQ(vocab.Pieces("b ab"), kMark + "|b|" + kMark + "a|b");
}

TEST(Ugm, SqueezesBlanks) {
  UgmVocab vocab;
  EXPECT_EQ(vocab.Pieces("  a   a  "), kMark + "a|" + kMark + "a");
  EXPECT_EQ(vocab.Pieces("   "), "");
  EXPECT_EQ(vocab.Pieces("a", kAddSpecial), kMark + "a|</s>");
}

TEST(Ugm, RunsOfUnknownCharactersAreOneToken) {
  UgmVocab vocab;
  EXPECT_EQ(vocab.Pieces("ax\xC3\xA9\xFF"
                         "b"),
            kMark + "a|<unk>|b");
}

TEST(Ugm, UserDefinedTokensWin) {
  UgmVocab vocab;
  vocab.Add("<extra>", -50, kTypeUser);
  EXPECT_EQ(vocab.Pieces("a<extra>b"), kMark + "a|<extra>|" + kMark + "|b");
}

// Two rules, "A" to "a" and "AB" to "c", laid out by hand: a node lies at the offset of its
// parent xor the byte, and a rule's value at its own offset.
std::vector<uint8_t> TwoRules() {
  constexpr uint32_t kHasRule = 1u << 8, kValue = 1u << 31;
  const auto offset = [](uint32_t to) { return to << 10; };
  std::vector<uint32_t> units(512, 0);
  units[0] = offset(0x100);                                    // root: children at 0x100 ^ byte
  units[0x100 ^ 'A'] = offset(0x141 ^ 0x80) | kHasRule | 'A';  // its value at 0x80
  units[0x80] = kValue | 0;
  units[0x80 ^ 'B'] = offset((0x80 ^ 'B') ^ 0x90) | kHasRule | 'B';
  units[0x90] = kValue | 2;
  std::vector<uint8_t> blob(4 + units.size() * 4);
  const uint32_t bytes = static_cast<uint32_t>(units.size() * 4);
  std::memcpy(blob.data(), &bytes, 4);
  std::memcpy(blob.data() + 4, units.data(), bytes);
  for (const char c : {'a', '\0', 'c', '\0'}) blob.push_back(static_cast<uint8_t>(c));
  return blob;
}

TEST(Charsmap, TheLongestRuleApplies) {
  const std::vector<uint8_t> blob = TwoRules();
  const auto map = Charsmap::Parse(blob);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->Longest("Ax").bytes, 1u);
  EXPECT_EQ(map->Longest("Ax").replacement, "a");
  EXPECT_EQ(map->Longest("ABx").bytes, 2u);
  EXPECT_EQ(map->Longest("ABx").replacement, "c");
  EXPECT_EQ(map->Longest("xA").bytes, 0u);
}

TEST(Charsmap, ReadsInsideAnyBlob) {
  const std::vector<uint8_t> good = TwoRules();
  for (size_t bytes = 0; bytes < good.size(); bytes += 7) {
    EXPECT_FALSE(Charsmap::Parse(std::span(good).first(bytes)).ok() && bytes < 4);
  }
  uint32_t random = 12345;
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> blob = good;
    for (int i = 0; i < 40; ++i) {
      random = random * 1664525 + 1013904223;
      blob[4 + random / 7 % (blob.size() - 4)] = static_cast<uint8_t>(random >> 24);
    }
    const auto map = Charsmap::Parse(blob);
    ASSERT_TRUE(map.ok());
    for (const char* text : {"A", "AB", "ABABABAB", "zzz", "\xFF\xFE"}) {
      EXPECT_LE(map->Longest(text).bytes, std::strlen(text));
    }
  }
}

}  // namespace
}  // namespace sluice
