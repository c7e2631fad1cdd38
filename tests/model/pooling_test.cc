// From the states of tokens to one vector.
#include "src/model/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace sluice {
namespace {

using Floats = std::vector<float>;

// The states (i, 10 i) of n tokens, those that are wanted.
Floats PoolOf(Pooling pooling, size_t n) {
  Pooler pooler(pooling, n);
  for (size_t i = 0; i < n; ++i) {
    const float state[] = {static_cast<float>(i), static_cast<float>(10 * i)};
    if (pooler.Wants(i)) pooler.Add(state);
  }
  return pooler.Take();
}

TEST(PoolingTest, OneVectorOfAll) {
  EXPECT_EQ(PoolOf(Pooling::kMean, 4), (Floats{1.5f, 15}));
  EXPECT_EQ(PoolOf(Pooling::kCls, 4), (Floats{0, 0}));
  EXPECT_EQ(PoolOf(Pooling::kLast, 4), (Floats{3, 30}));
  EXPECT_EQ(PoolOf(Pooling::kNone, 3), (Floats{0, 0, 1, 10, 2, 20}));
  for (const Pooling p : {Pooling::kMean, Pooling::kCls, Pooling::kLast, Pooling::kNone}) {
    EXPECT_EQ(PoolOf(p, 1), (Floats{0, 0})) << PoolingName(p);
  }
}

TEST(PoolingTest, ATextIsComputedAgain) {
  const float wrong[] = {100.0f}, right[] = {2.0f};
  for (const Pooling p : {Pooling::kMean, Pooling::kNone}) {
    Pooler pooler(p, 2);
    pooler.Add(wrong);
    pooler.Clear();
    pooler.Add(right);
    pooler.Add(right);
    EXPECT_EQ(pooler.Take(), (p == Pooling::kMean ? Floats{2} : Floats{2, 2}));
  }
}

TEST(PoolingTest, Names) {
  for (const char* name : {"none", "mean", "cls", "last", "rank"}) {
    EXPECT_STREQ(PoolingName(FindPooling(name).value()), name);
  }
  EXPECT_FALSE(FindPooling("").has_value());
  EXPECT_FALSE(FindPooling("max").has_value());
}

Floats Normalized(int norm, Floats v) {
  Normalize(norm, v);
  return v;
}

TEST(PoolingTest, Norms) {
  EXPECT_EQ(Normalized(-1, {3, -4}), (Floats{3, -4}));
  EXPECT_EQ(Normalized(0, {2, -4}), (Floats{16380, -32760}));
  EXPECT_EQ(Normalized(1, {1, -3}), (Floats{0.25f, -0.75f}));
  EXPECT_EQ(Normalized(2, {3, -4}), (Floats{0.6f, -0.8f}));
  const float third = static_cast<float>(1 / std::cbrt(2.0));
  EXPECT_FLOAT_EQ(Normalized(3, {1, -1})[1], -third);
  for (const int norm : {0, 1, 2, 5}) EXPECT_EQ(Normalized(norm, {0, 0}), (Floats{0, 0})) << norm;
}

}  // namespace
}  // namespace sluice
