#include "src/machine/huge_pages.h"

#include <gtest/gtest.h>

#include "src/base/arena.h"

namespace sluice {
namespace {

TEST(HugePages, GainOfTheSameMemoryIsNearOne) {
  const auto team = *ThreadTeam::Create(2);
  constexpr size_t kBytes = 160 << 20;
  auto arena = Arena::Create(kBytes);
  ASSERT_TRUE(arena.ok());
  for (size_t at = 0; at < kBytes; at += 4096) arena->data()[at] = 1;
  const std::span<const uint8_t> all(arena->data(), kBytes), few = all.first(1 << 20);
  const double gain = HugePageGain(*team, all, all);
  EXPECT_GT(gain, 0.05);  // a busy machine may be far off, but not senseless
  EXPECT_LT(gain, 20);
  EXPECT_EQ(HugePageGain(*team, few, few), 1);  // too little to tell
}

}  // namespace
}  // namespace sluice
