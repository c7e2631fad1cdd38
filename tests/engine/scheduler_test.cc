// How many rows of a prompt fit beside streams.
#include "src/engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice {
namespace {

// A machine: the weights are read once a pass, which hides its first rows.
double PassSeconds(size_t rows) {
  constexpr double kWeights_s = 0.03, kRow_s = 0.002;
  return std::max(kWeights_s, kRow_s * static_cast<double>(rows));
}

TEST(PrefillPace, AllRowsWithoutABudgetAndAFewBeforeAnySpeedIsKnown) {
  const PrefillPace pace;
  EXPECT_EQ(pace.Rows(0, true, 512), 512u);
  EXPECT_EQ(pace.Rows(0.2, false, 512), 512u);
  EXPECT_EQ(pace.Rows(0.2, true, 512), 64u);
  EXPECT_EQ(pace.Rows(0.2, true, 8), 8u);
}

// Whatever it begins with, it ends with what the budget allows.
TEST(PrefillPace, FindsTheRowsOfTheBudget) {
  for (const size_t first : {4u, 32u, 512u}) {
    PrefillPace pace;
    for (int i = 0; i < 4; ++i) pace.Learn(PassSeconds(2), 2, 0);
    size_t rows = first;
    for (int i = 0; i < 40; ++i) {
      pace.Learn(PassSeconds(rows + 2), rows + 2, rows);
      rows = pace.Rows(0.2, true, 512);
    }
    EXPECT_GE(rows, 96u) << first;
    EXPECT_LE(PassSeconds(rows + 2), 0.2 + PassSeconds(2)) << first;
  }
}

TEST(PrefillPace, OnePassThatWasHeldUpIsForgotten) {
  PrefillPace pace;
  for (int i = 0; i < 8; ++i) pace.Learn(PassSeconds(98), 98, 96);
  const size_t before = pace.Rows(0.2, true, 512);
  pace.Learn(3, 98, 96);
  EXPECT_LT(pace.Rows(0.2, true, 512), before);
  for (int i = 0; i < 20; ++i) {
    const size_t rows = pace.Rows(0.2, true, 512);
    pace.Learn(PassSeconds(rows + 2), rows + 2, rows);
  }
  EXPECT_GE(pace.Rows(0.2, true, 512), before);
}

TEST(PrefillPace, AFewRowsAtLeastAndWholeTiles) {
  PrefillPace pace;
  pace.Learn(20, 21, 20);  // a row takes a second
  EXPECT_EQ(pace.Rows(0.2, true, 512), 4u);
  EXPECT_EQ(pace.Rows(0.2, true, 2), 2u);
  PrefillPace fast;
  fast.Learn(0.1, 100, 100);
  EXPECT_EQ(fast.Rows(0.11, true, 512) % 32, 0u);
  EXPECT_EQ(fast.Rows(0.05, false, 512), 192u);  // nobody waits: four times as long
  // Rows that cost more for another reason are fewer.
  EXPECT_LT(fast.Rows(0.11, true, 512, 0.001), fast.Rows(0.11, true, 512));
  // A short prompt by itself says nothing about long ones.
  PrefillPace unknown;
  unknown.Learn(0.03, 5, 5);
  EXPECT_EQ(unknown.Rows(0.2, true, 512), 64u);
}

}  // namespace
}  // namespace sluice
