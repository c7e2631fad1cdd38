#include "src/machine/memory_use.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "src/machine/topology.h"

namespace sluice {
namespace {

constexpr size_t kBlock = 64 << 20;

TEST(MemoryUse, FollowsWhatIsTouched) {
  const MemoryUse before = ThisProcessMemory();
  ASSERT_GT(before.rss_bytes, 0u);
  void* block = mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kBlock);
  const MemoryUse during = ThisProcessMemory();
  munmap(block, kBlock);
  const MemoryUse after = ThisProcessMemory();
  const size_t most = kBlock - kBlock / 8;
  EXPECT_GE(during.rss_bytes, before.rss_bytes + most);
  EXPECT_GE(during.anonymous_bytes, before.anonymous_bytes + most);
  EXPECT_LE(after.rss_bytes, during.rss_bytes - most);
  EXPECT_GE(after.peak_rss_bytes, during.rss_bytes - kBlock / 8) << "a peak does not fall";
}

TEST(MemoryUse, PartsMakeTheWhole) {
  const MemoryUse use = ThisProcessMemory();
  EXPECT_EQ(use.anonymous_bytes + use.file_bytes + use.shared_bytes, use.rss_bytes);
  EXPECT_GT(use.file_bytes, 0u) << "the program itself is mapped";
}

TEST(MemoryUse, AvailableIsPartOfTheMachine) {
  EXPECT_GT(AvailableMemoryBytes(), 0u);
  EXPECT_LE(AvailableMemoryBytes(), ThisMachine().UsableMemoryBytes());
}

}  // namespace
}  // namespace sluice
