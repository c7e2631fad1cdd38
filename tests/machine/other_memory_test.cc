#include "src/machine/other_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/arena.h"
#include "src/machine/memory_use.h"
#include "src/machine/read_in_turns.h"
#include "tests/base/temp_folder.h"

namespace sluice {
namespace {

constexpr size_t kBytes = 160 << 20;

Arena Touched(size_t bytes) {
  Arena arena = *Arena::Create(bytes);
  for (size_t at = 0; at < bytes; at += 4096) arena.data()[at] = 1;
  return arena;
}

TEST(ReadInTurns, EveryWindowOfBoth) {
  const auto team = *ThreadTeam::Create(2);
  const Arena arena = Touched(kBytes);
  const std::span<const uint8_t> all(arena.data(), kBytes), few = all.first(1 << 20);
  const WindowTimes times = ReadInTurns(*team, all, all, 2);
  EXPECT_EQ(times.a_s.size(), 2 * kBytes / kReadWindowBytes);
  EXPECT_EQ(times.b_s.size(), times.a_s.size());
  EXPECT_GT(*std::min_element(times.a_s.begin(), times.a_s.end()), 0);
  EXPECT_TRUE(ReadInTurns(*team, all, few, 2).a_s.empty());
}

TEST(Recall, ThisMachineTeamAndBoot) {
  const TempFolder folder;
  const std::string path = folder.path("number");
  const auto two = *ThreadTeam::Create(2), three = *ThreadTeam::Create(3);
  EXPECT_EQ(Recall(path, *two), std::nullopt);
  Remember(path, *two, 1.25);
  EXPECT_EQ(Recall(path, *two), 1.25);
  EXPECT_EQ(Recall(path, *three), std::nullopt);
  EXPECT_EQ(Recall(path, *two, true), std::nullopt);
  Remember(path, *two, 30, true);
  EXPECT_EQ(Recall(path, *two, true), 30);
  WriteFile(path, std::vector<uint8_t>{'x', '\n', '2', '\n'});
  EXPECT_EQ(Recall(path, *two), std::nullopt);
  Remember(folder.path("no/such/folder"), *two, 1);  // no error
}

// Rates are not asserted on: a busy machine may be far off.
TEST(OtherMemory, ComparesWhatIsThereWithWhatTheSystemGives) {
  const auto team = *ThreadTeam::Create(2);
  const Arena arena = Touched(kBytes);
  if (AvailableMemoryBytes() < 8 * kBytes) GTEST_SKIP() << "too little memory is free";
  const auto rates = CompareMemory(*team, {arena.data(), kBytes});
  ASSERT_TRUE(rates);
  EXPECT_GT(rates->here_gb_s, 0);
  EXPECT_GT(rates->other_gb_s, 0);
  EXPECT_FALSE(CompareMemory(*team, {arena.data(), 1 << 20}));  // too little to tell
}

TEST(OtherMemory, SlowOnlyFarBelow) {
  EXPECT_FALSE((MemoryRates{34, 35}.Slow()));
  EXPECT_FALSE((MemoryRates{30, 35}.Slow()));
  EXPECT_TRUE((MemoryRates{27, 35}.Slow()));
}

TEST(OtherMemory, RememberedRateSparesTheComparison) {
  const TempFolder folder;
  const std::string path = folder.path("other_memory");
  const auto team = *ThreadTeam::Create(2);
  const Arena arena = Touched(kBytes);
  Remember(path, *team, 1e-3, true);  // whatever is read is faster
  EXPECT_FALSE(FindSlowMemory(*team, {arena.data(), kBytes}, path));
  EXPECT_EQ(Recall(path, *team, true), 1e-3);
  Remember(path, *team, 1e6, true);  // whatever is read is slower: compared, and never faster
  FindSlowMemory(*team, {arena.data(), kBytes}, path);
  EXPECT_EQ(Recall(path, *team, true), 1e6);
}

}  // namespace
}  // namespace sluice
