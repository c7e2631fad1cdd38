// Stop strings: what may leave, when, and what never does.
#include "src/engine/stop_matcher.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(StopMatcher, WithoutStopsAllLeavesAtOnce) {
  StopMatcher m({});
  EXPECT_EQ(m.Push("abc"), "abc");
  EXPECT_FALSE(m.stopped());
  EXPECT_EQ(m.Flush(), "");
}

TEST(StopMatcher, AStopInsideOnePiece) {
  StopMatcher m({"END"});
  EXPECT_EQ(m.Push("before END after"), "before ");
  EXPECT_TRUE(m.stopped());
  EXPECT_EQ(m.Push("more"), "");
  EXPECT_EQ(m.Flush(), "");
}

TEST(StopMatcher, AStopAcrossPieces) {
  StopMatcher m({"END"});
  EXPECT_EQ(m.Push("xE"), "x");
  EXPECT_EQ(m.Push("N"), "");
  EXPECT_FALSE(m.stopped());
  EXPECT_EQ(m.Push("D!"), "");
  EXPECT_TRUE(m.stopped());
}

TEST(StopMatcher, AFalseStartLeavesLater) {
  StopMatcher m({"END"});
  EXPECT_EQ(m.Push("EN"), "");
  EXPECT_EQ(m.Push("E"), "EN");  // the last E may begin anew
  EXPECT_EQ(m.Push("x"), "Ex");
  EXPECT_EQ(m.Push("EN"), "");
  EXPECT_EQ(m.Flush(), "EN");
  EXPECT_FALSE(m.stopped());
}

TEST(StopMatcher, OverlappingStarts) {
  StopMatcher m({"aab"});
  EXPECT_EQ(m.Push("aaa"), "a");
  EXPECT_EQ(m.Push("b"), "");
  EXPECT_TRUE(m.stopped());
}

TEST(StopMatcher, TheFirstOfSeveralStopsWins) {
  StopMatcher m({"yy", "x"});
  EXPECT_EQ(m.Push("abxyy"), "ab");
  EXPECT_TRUE(m.stopped());
  StopMatcher longest({"\n\nUser:", "\n"});
  EXPECT_EQ(longest.Push("answer\n\nUser:"), "answer");
}

TEST(StopMatcher, EmptyStopsAreLeftOut) {
  StopMatcher m({"", "z"});
  EXPECT_EQ(m.Push("abc"), "abc");
  EXPECT_FALSE(m.stopped());
}

// Every way to cut a text into pieces gives the same output, and nothing leaves too late.
TEST(StopMatcher, CutsDoNotMatter) {
  const std::string text = "abcabdababcabdx", stop = "abcabdx";
  for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); cuts += 7) {
    StopMatcher m({stop});
    std::string out, piece;
    for (size_t i = 0; i < text.size(); ++i) {
      piece += text[i];
      if (cuts >> i & 1 || i + 1 == text.size()) {
        out += m.Push(piece);
        piece.clear();
      }
    }
    EXPECT_TRUE(m.stopped());
    ASSERT_EQ(out + m.Flush(), "abcabdab");
  }
}

}  // namespace
}  // namespace sluice
