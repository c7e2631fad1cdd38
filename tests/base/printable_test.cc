#include "src/base/printable.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Printable, KeepsText) {
  EXPECT_EQ(Printable("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
  EXPECT_EQ(Printable("\u00e4\u4e2d\U0001F600"), "\u00e4\u4e2d\U0001F600");
}

TEST(Printable, EscapesWhatWouldBreakALine) {
  EXPECT_EQ(Printable("a\nb\r\t\x7f"), "a\\x0Ab\\x0D\\x09\\x7F");
  EXPECT_EQ(Printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(Printable("\x1b[31m"), "\\x1B[31m");
  EXPECT_EQ(Printable("\u0085"), "\\xC2\\x85");
  EXPECT_EQ(Printable("\u2028"), "\\xE2\\x80\\xA8");
}

TEST(Printable, EscapesBadUtf8) {
  EXPECT_EQ(Printable("\xff"), "\\xFF");
  EXPECT_EQ(Printable("\xc3"), "\\xC3");                             // cut short
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xC0\\xAF");                    // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xED\\xA0\\x80");           // surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80");  // past U+10FFFF
}

TEST(Printable, CutsLongText) {
  EXPECT_EQ(Printable(std::string(100, 'x'), 10), std::string(10, 'x') + "...");
  EXPECT_EQ(Printable(std::string(10, 'x'), 10), std::string(10, 'x'));
}

}  // namespace
}  // namespace sluice
