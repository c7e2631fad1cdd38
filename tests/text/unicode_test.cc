#include "src/text/unicode.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice {
namespace {

std::string Utf8(std::initializer_list<uint32_t> codes) {
  std::string text;
  for (const uint32_t code : codes) AppendUtf8(code, text);
  return text;
}

TEST(Unicode, EveryScalarValueGoesThereAndBack) {
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code == 0xD800) code = 0xE000;
    const std::string text = Utf8({code});
    const DecodedChar c = DecodeChar(text, 0);
    ASSERT_TRUE(c.valid) << code;
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(c.length, text.size());
  }
}

// Unicode 15, table 3-8: one U+FFFD for each maximal part that could have begun a character.
TEST(Unicode, BadSequencesBecomeOneReplacementPerMaximalPart) {
  const std::string r(kReplacementUtf8);
  EXPECT_EQ(ReplaceBadUtf8("a\x80z"), "a" + r + "z");
  EXPECT_EQ(ReplaceBadUtf8("\xC0\xAF"), r + r);                  // overlong
  EXPECT_EQ(ReplaceBadUtf8("\xED\xA0\x80"), r + r + r);          // surrogate
  EXPECT_EQ(ReplaceBadUtf8("\xF4\x90\x80\x80"), r + r + r + r);  // past U+10FFFF
  EXPECT_EQ(ReplaceBadUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                           "A"),
            r + r + r + r + "A");
  EXPECT_EQ(ReplaceBadUtf8("x\xF0\x9F\x98 y"), "x" + r + " y");
  EXPECT_EQ(ReplaceBadUtf8("caf\xC3"), "caf" + r);
  EXPECT_FALSE(IsUtf8("caf\xC3"));
  EXPECT_TRUE(IsUtf8("caf\xC3\xA9"));
}

TEST(Unicode, OnlyAnUnfinishedSequenceIsCutOff) {
  EXPECT_TRUE(DecodeChar("\xF0\x9F\x98", 0).cut_off);
  EXPECT_FALSE(DecodeChar("\xF0\x9F(", 0).cut_off);
  EXPECT_FALSE(DecodeChar("\xFF", 0).cut_off);
}

TEST(Unicode, ClassesAreTheOnesOfTheExpressions) {
  EXPECT_EQ(ClassOf(0xBD), kNumber);       // one half
  EXPECT_TRUE(ClassOf(0x2163) & kNumber);  // roman four
  EXPECT_TRUE(ClassOf(0xA0) & kSpace);     // no-break space
  EXPECT_TRUE(ClassOf(0x3000) & kSpace);
  EXPECT_FALSE(ClassOf(0x200B) & kSpace);  // zero width: a format character
  EXPECT_EQ(ClassOf('\n'), kSpace | kNewline | kHidden);
  EXPECT_TRUE(ClassOf(0x0E31) & kMark);  // Thai vowel sign
  EXPECT_FALSE(ClassOf(0x0E31) & kLetter);
  EXPECT_EQ(ClassOf('$'), kSymbol);
  EXPECT_TRUE(ClassOf(0x1F600) & kSymbol);
  EXPECT_TRUE(IsHan(0x4E2D));
  EXPECT_FALSE(IsHan(0x3042));
}

TEST(Unicode, ComposesAndDecomposes) {
  EXPECT_EQ(Nfc(Utf8({'e', 0x301, 'x'})), Utf8({0xE9, 'x'}));
  EXPECT_EQ(Nfc(Utf8({0x1112, 0x1161, 0x11AB})), Utf8({0xD55C}));
  EXPECT_EQ(Nfc(Utf8({'a', 0x316, 0x301})), Utf8({0xE1, 0x316}));
  EXPECT_EQ(Nfc(Utf8({'a', 0x301, 0x316})), Utf8({0xE1, 0x316}));
  EXPECT_EQ(Nfc(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(Nfd(Utf8({0x1EC7})), (std::vector<uint32_t>{'e', 0x323, 0x302}));
}

// A run of marks in the wrong order must not cost its square: 200,000 swaps of neighbours each
// way would take minutes.
TEST(Unicode, SortsLongRunsOfMarks) {
  std::string text = "a";
  for (int i = 0; i < 200000; ++i) text += i % 2 ? "\xCC\x96" : "\xCC\x81";
  const std::string composed = Nfc(text);
  EXPECT_EQ(composed.size(), text.size() - 1);  // a + U+0301 is one character of 2 bytes
  EXPECT_EQ(composed.substr(0, 4), Utf8({0xE1, 0x316}));
}

}  // namespace
}  // namespace sluice
