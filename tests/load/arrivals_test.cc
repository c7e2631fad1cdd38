#include "src/load/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/load/statistics.h"

namespace sluice::load {
namespace {

std::vector<double> Gaps(Arrivals arrivals, size_t count) {
  std::vector<double> gaps;
  double before = arrivals.Next();
  EXPECT_EQ(before, 0);
  for (size_t i = 0; i < count; ++i) {
    const double at = arrivals.Next();
    gaps.push_back(at - before);
    before = at;
  }
  return gaps;
}

TEST(ArrivalsTest, PoissonGapsAreExponential) {
  const Distribution d = Describe(Gaps(Arrivals(4, 1, 7), 20000));
  EXPECT_NEAR(d.mean, 0.25, 0.006);
  EXPECT_NEAR(d.deviation, 0.25, 0.01);
  EXPECT_NEAR(d.p50, 0.25 * std::log(2.0), 0.006);
  EXPECT_GT(d.least, 0);
}

TEST(ArrivalsTest, ConstantGapsAreAllTheSame) {
  const Distribution d =
      Describe(Gaps(Arrivals(4, std::numeric_limits<double>::infinity(), 7), 100));
  EXPECT_NEAR(d.least, 0.25, 1e-9);
  EXPECT_NEAR(d.most, 0.25, 1e-9);
}

// A gamma distribution of shape k and mean m has the deviation m / sqrt(k).
TEST(ArrivalsTest, BurstinessIsTheShapeOfAGamma) {
  for (const double shape : {0.25, 0.5, 4.0}) {
    const Distribution d = Describe(Gaps(Arrivals(10, shape, 3), 40000));
    EXPECT_NEAR(d.mean, 0.1, 0.006) << shape;
    EXPECT_NEAR(d.deviation, 0.1 / std::sqrt(shape), 0.06 * 0.1 / std::sqrt(shape)) << shape;
  }
}

TEST(ArrivalsTest, TheSeedDecides) {
  EXPECT_EQ(Gaps(Arrivals(4, 1, 7), 50), Gaps(Arrivals(4, 1, 7), 50));
  EXPECT_NE(Gaps(Arrivals(4, 1, 7), 50), Gaps(Arrivals(4, 1, 8), 50));
}

TEST(ArrivalsTest, AllAtOnceAndListed) {
  Arrivals at_once(kAllAtOnce, 1, 1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(at_once.Next(), 0);
  Arrivals listed({0, 0.5, 0.5, 2});
  for (const double t : {0.0, 0.5, 0.5, 2.0}) EXPECT_EQ(listed.Next(), t);
  EXPECT_TRUE(std::isinf(listed.Next()));
}

}  // namespace
}  // namespace sluice::load
