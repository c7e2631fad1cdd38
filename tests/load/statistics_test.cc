#include "src/load/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "src/base/random.h"

namespace sluice::load {
namespace {

TEST(StatisticsTest, PercentilesLieOnTheLineBetweenValues) {
  const std::vector<double> sorted = {1, 2, 4, 8};
  EXPECT_EQ(Percentile(sorted, 0), 1);
  EXPECT_EQ(Percentile(sorted, 1), 8);
  EXPECT_DOUBLE_EQ(Percentile(sorted, 0.5), 3);    // place 1.5
  EXPECT_DOUBLE_EQ(Percentile(sorted, 0.9), 6.8);  // place 2.7
  EXPECT_EQ(Percentile(std::array{5.0}, 0.999), 5);
}

TEST(StatisticsTest, EveryValueCounts) {
  std::vector<double> values;
  for (int i = 1000; i >= 0; --i) values.push_back(i);
  const Distribution d = Describe(values);
  EXPECT_EQ(d.count, 1001u);
  EXPECT_DOUBLE_EQ(d.mean, 500);
  EXPECT_EQ(d.p50, 500);
  EXPECT_EQ(d.p90, 900);
  EXPECT_EQ(d.p95, 950);
  EXPECT_EQ(d.p99, 990);
  EXPECT_EQ(d.p999, 999);
  EXPECT_EQ(d.least, 0);
  EXPECT_EQ(d.most, 1000);
  EXPECT_NEAR(d.deviation, 289.1, 0.05);
  EXPECT_EQ(Describe({}).count, 0u);
}

double NormalValue(uint64_t stream, uint64_t i) {
  const double radius = std::sqrt(-2 * std::log1p(-RandomUniform(5, stream, 2 * i)));
  return radius * std::cos(2 * M_PI * RandomUniform(5, stream, 2 * i + 1));
}

GroupedValues Normal(uint64_t stream, double mean, size_t groups, size_t group_size = 1) {
  GroupedValues out;
  for (size_t g = 0; g < groups; ++g) {
    out.AddGroup(std::vector<double>(group_size, mean + NormalValue(stream, g)));
  }
  return out;
}

TEST(StatisticsTest, ADifferenceIsToldFromNoise) {
  constexpr std::array kMedian = {0.5};
  const GroupedValues a = Normal(1, 20, 200), same = Normal(2, 20, 200), more = Normal(3, 22, 200);
  const RatioEstimate noise = ComparePercentiles(a, same, kMedian)[0];
  EXPECT_TRUE(noise.sure);
  EXPECT_FALSE(noise.differs());
  EXPECT_LT(noise.low, 1);
  EXPECT_GT(noise.high, 1);
  const RatioEstimate real = ComparePercentiles(a, more, kMedian)[0];
  EXPECT_TRUE(real.differs());
  EXPECT_LT(real.low, 1.1);
  EXPECT_GT(real.high, 1.1);
  EXPECT_TRUE(CompareMeans(a, more).differs());
  EXPECT_FALSE(CompareMeans(a, same).differs());
}

// Copies of a value are no evidence: the interval is that of the groups.
TEST(StatisticsTest, ValuesOfAGroupAreDrawnTogether) {
  constexpr std::array kMedian = {0.5};
  const RatioEstimate one = ComparePercentiles(Normal(1, 20, 60), Normal(2, 20, 60), kMedian)[0];
  const RatioEstimate many =
      ComparePercentiles(Normal(1, 20, 60, 50), Normal(2, 20, 60, 50), kMedian)[0];
  EXPECT_NEAR(many.high - many.low, one.high - one.low, 0.3 * (one.high - one.low));
}

TEST(StatisticsTest, AFewValuesHaveNoInterval) {
  constexpr std::array kMedian = {0.5};
  const RatioEstimate few = ComparePercentiles(Normal(1, 20, 9), Normal(2, 40, 9), kMedian)[0];
  EXPECT_FALSE(few.sure);
  EXPECT_FALSE(few.differs());
  EXPECT_NEAR(few.ratio(), 2, 0.3);
  EXPECT_EQ(ComparePercentiles({}, Normal(2, 40, 9), kMedian)[0].ratio(), 0);
}

}  // namespace
}  // namespace sluice::load
