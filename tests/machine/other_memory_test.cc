#include "src/machine/other_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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

// 8 windows of a first pass and 8 of a second.
WindowTimes Times(double a_s, double b_s) {
  return {std::vector<double>(16, a_s), std::vector<double>(16, b_s)};
}

TEST(OtherMemory, RatesAreOfTheSecondPassWithoutItsOutliers) {
  WindowTimes times = Times(0.001, 0.002);
  const double fast = 1e-6 * kReadWindowBytes;  // GB/s of a window in a millisecond
  EXPECT_NEAR(RatesOf(times).here_gb_s, fast, 1e-9);
  EXPECT_NEAR(RatesOf(times).other_gb_s, fast / 2, 1e-9);
  times.a_s[3] = 1;     // the first pass
  times.a_s[12] = 0.1;  // another program
  EXPECT_NEAR(RatesOf(times).here_gb_s, fast, 1e-9);
  for (size_t i = 8; i < 16; i += 2) times.a_s[i] = 0.002;  // every other window in slow memory
  EXPECT_NEAR(RatesOf(times).here_gb_s, fast / 1.5, 1e-9);
  EXPECT_TRUE(RatesOf(Times(0.0013, 0.001)).Slow());
  EXPECT_FALSE(RatesOf(Times(0.0011, 0.001)).Slow());
}

// What is measured is not asserted on: a busy machine may be far off.
TEST(OtherMemory, ComparesWhatIsThereWithWhatTheSystemGives) {
  const auto team = *ThreadTeam::Create(2);
  const Arena arena = Touched(kBytes);
  EXPECT_FALSE(CompareMemory(*team, {arena.data(), 1 << 20}, true));  // too little to tell
  const auto rates = CompareMemory(*team, {arena.data(), kBytes}, true);
  if (!rates) GTEST_SKIP() << "too little memory is free";
  EXPECT_GT(rates->here_gb_s, 0);
  EXPECT_GT(rates->other_gb_s, 0);
}

TEST(OtherMemory, OnlyARateFarFromWhatIsReadIsMeasuredAgain) {
  if (AvailableMemoryBytes() < 16 * kBytes) GTEST_SKIP() << "too little memory is free";
  const TempFolder folder;
  const std::string path = folder.path("other_memory");
  const auto team = *ThreadTeam::Create(2);
  const Arena arena = Touched(kBytes);
  const std::span<const uint8_t> memory(arena.data(), kBytes);
  FindSlowMemory(*team, memory, true, path);
  const auto first = Recall(path, *team, true);
  ASSERT_TRUE(first);
  EXPECT_GT(*first, 0);
  bool spared = false;  // a rate like what is read stays: nothing is compared
  for (int i = 0; i < 20 && !spared; ++i) {
    Remember(path, *team, RatesOf(ReadInTurns(*team, memory, memory, 1)).here_gb_s, true);
    const auto kept = Recall(path, *team, true);
    FindSlowMemory(*team, memory, true, path);
    spared = Recall(path, *team, true) == kept;
  }
  EXPECT_TRUE(spared);
  Remember(path, *team, 1e-3, true);  // as if others had had all of the memory
  FindSlowMemory(*team, memory, true, path);
  EXPECT_GT(*Recall(path, *team, true), 1e-2);
  Remember(path, *team, 1e6, true);  // whatever is read is slower
  FindSlowMemory(*team, memory, true, path);
  EXPECT_LT(*Recall(path, *team, true), 0.95e6);
}

}  // namespace
}  // namespace sluice
