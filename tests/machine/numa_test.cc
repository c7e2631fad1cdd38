#include "src/machine/numa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "src/base/arena.h"
#include "src/machine/topology.h"

namespace sluice {
namespace {

TEST(Numa, TellsWhereTouchedPagesAre) {
  constexpr size_t kBytes = 1 << 20;
  auto arena = Arena::Create(kBytes);
  ASSERT_TRUE(arena.ok());
  const auto total = [&] {
    const std::vector<uint64_t> nodes = BytesPerNode(arena->data(), kBytes);
    return std::accumulate(nodes.begin(), nodes.end(), uint64_t{0});
  };
  EXPECT_EQ(total(), 0u);
  std::fill_n(arena->data(), kBytes / 2, 1);
  if (total() == 0) GTEST_SKIP() << "skipped: the system does not say";
  EXPECT_EQ(total(), kBytes / 2);
}

TEST(Numa, InterleavesOverAllNodes) {
  constexpr size_t kBytes = 1 << 20;
  auto arena = Arena::Create(kBytes);
  ASSERT_TRUE(arena.ok());
  const bool done = InterleavePages(arena->data(), kBytes);
  std::fill_n(arena->data(), kBytes, 1);
  EXPECT_EQ(arena->data()[kBytes - 1], 1);
  EXPECT_FALSE(InterleavePages(arena->data(), 0));
  const std::vector<uint64_t> nodes = BytesPerNode(arena->data(), kBytes);
  if (done && !nodes.empty()) {
    EXPECT_EQ(nodes.size(), static_cast<size_t>(ThisMachine().numa_nodes));
  }
}

}  // namespace
}  // namespace sluice
