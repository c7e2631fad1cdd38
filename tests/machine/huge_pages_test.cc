#include "src/machine/huge_pages.h"

#include <gtest/gtest.h>

#include "src/base/arena.h"
#include "tests/base/temp_folder.h"

namespace sluice {
namespace {

TEST(HugePages, GainOfTheSameMemoryIsNearOne) {
  const auto team = *ThreadTeam::Create(2);
  constexpr size_t kBytes = 160 << 20;
  auto arena = Arena::Create(kBytes);
  ASSERT_TRUE(arena.ok());
  for (size_t at = 0; at < kBytes; at += 4096) arena->data()[at] = 1;
  const double gain = HugePageGain(*team, arena->data(), arena->data(), kBytes);
  EXPECT_GT(gain, 0.05);  // a busy machine may be far off, but not senseless
  EXPECT_LT(gain, 20);
  EXPECT_EQ(HugePageGain(*team, arena->data(), arena->data(), 1 << 20), 1);  // too little to tell
}

TEST(HugePages, GainIsRememberedForThisMachineAndTeam) {
  const TempFolder folder;
  const std::string path = folder.path("huge_pages");
  const auto two = *ThreadTeam::Create(2), three = *ThreadTeam::Create(3);
  EXPECT_EQ(RecallHugePageGain(path, *two), std::nullopt);
  RememberHugePageGain(path, *two, 1.25);
  EXPECT_EQ(RecallHugePageGain(path, *two), 1.25);
  EXPECT_EQ(RecallHugePageGain(path, *three), std::nullopt);
  WriteFile(path, std::vector<uint8_t>{'x', '\n', '2', '\n'});
  EXPECT_EQ(RecallHugePageGain(path, *two), std::nullopt);
  RememberHugePageGain(folder.path("no/such/folder"), *two, 1);  // no error
}

}  // namespace
}  // namespace sluice
