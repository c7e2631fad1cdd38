#include "src/base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers published with the generator (Random123, philox4x32-10).
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, BitsFollowTheDefinition) {
  const Words words = Philox({7, 1, 3, 2}, {5, 9});
  EXPECT_EQ(RandomBits(5 | uint64_t{9} << 32, 3 | uint64_t{2} << 32, 7 | uint64_t{1} << 32),
            words[0] | uint64_t{words[1]} << 32);
}

TEST(Random, UniformIsInRangeAndEven) {
  constexpr int kDraws = 100000, kBins = 16;
  int bins[kBins] = {};
  for (int step = 0; step < kDraws; ++step) {
    const double u = RandomUniform(42, 0, step);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<int>(u * kBins)];
  }
  // Six standard deviations of a bin; the draws are fixed, so this cannot flake.
  const double expected = kDraws / double{kBins};
  for (int count : bins) EXPECT_NEAR(count, expected, 6 * std::sqrt(expected));
}

TEST(Random, SeedsStreamsAndStepsDiffer) {
  const uint64_t base = RandomBits(1, 1, 1);
  EXPECT_EQ(base, RandomBits(1, 1, 1));
  EXPECT_NE(base, RandomBits(2, 1, 1));
  EXPECT_NE(base, RandomBits(1, 2, 1));
  EXPECT_NE(base, RandomBits(1, 1, 2));
  EXPECT_NE(base, RandomBits(1 + (uint64_t{1} << 40), 1, 1));
}

}  // namespace
}  // namespace sluice
