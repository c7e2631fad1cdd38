#include "src/machine/bandwidth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice {
namespace {

// Wide limits: the value belongs to the machine and the moment; wrong units are off by more.
TEST(Bandwidth, OfMemoryIsPlausible) {
  auto team = ThreadTeam::Create(0);
  ASSERT_TRUE(team.ok());
  const auto rate = MeasureReadBandwidth(**team, 0.05);
  ASSERT_TRUE(rate.ok()) << rate.status().message();
  EXPECT_GT(*rate, 0.05);
  EXPECT_LT(*rate, 20000);
}

TEST(Bandwidth, OfFewBytesReadsNoMoreThanThose) {
  EXPECT_EQ(ReadProbeBytes(0), MemoryProbeBytes());
  EXPECT_EQ(ReadProbeBytes(1), size_t{16} << 20);
  EXPECT_EQ(ReadProbeBytes(size_t{100} << 20), size_t{100} << 20);
  EXPECT_EQ(ReadProbeBytes(size_t{1} << 40), MemoryProbeBytes());
  EXPECT_GE(MemoryProbeBytes(), size_t{256} << 20);
  auto team = ThreadTeam::Create(2);
  ASSERT_TRUE(team.ok());
  const auto rate = MeasureReadBandwidth(**team, 0.05, 0, 1);
  ASSERT_TRUE(rate.ok()) << rate.status().message();
  EXPECT_GT(*rate, 0.05);
  EXPECT_LT(*rate, 20000);
}

// Threads that take turns on a CPU must not be counted as if all had run at once: on 2 CPUs 64
// threads once said 421 GB/s where 8 said 110.
TEST(Bandwidth, MoreThreadsThanCpusAreNoFaster) {
  const int cpus = ThisMachine().RunningAtOnce(1024);
  if (cpus > 32) GTEST_SKIP() << "no team is 32 times as large as " << cpus << " CPUs";
  auto few = ThreadTeam::Create(cpus), many = ThreadTeam::Create(32 * cpus);
  ASSERT_TRUE(few.ok() && many.ok());
  double ratio = 0;  // the least of a few: another program can slow down one of the two
  for (int turn = 0; turn < 3; ++turn) {
    const auto one_each = MeasureReadBandwidth(**few, 0.1),
               in_turns = MeasureReadBandwidth(**many, 0.1);
    ASSERT_TRUE(one_each.ok() && in_turns.ok());
    ratio = turn == 0 ? *in_turns / *one_each : std::min(ratio, *in_turns / *one_each);
  }
  EXPECT_LT(ratio, 4);
}

TEST(Bandwidth, OfARangeReadsAnySize) {
  auto team = ThreadTeam::Create(3);
  ASSERT_TRUE(team.ok());
  const std::vector<char> data(100000, 1);
  for (size_t bytes : {size_t{1}, size_t{4097}, data.size()}) {
    const double rate = MeasureReadBandwidth(**team, data.data(), bytes, 0.0);
    EXPECT_GT(rate, 0);
    EXPECT_TRUE(std::isfinite(rate));
  }
  EXPECT_EQ(MeasureReadBandwidth(**team, data.data(), 0, 0.0), 0);
}

}  // namespace
}  // namespace sluice
