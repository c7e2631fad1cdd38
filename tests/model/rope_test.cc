// Rotary frequencies against the papers' formulas in double precision.
#include "src/model/rope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice {
namespace {

double Plain(double base, size_t dims, size_t i) {
  return std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
}

void ExpectNear(const std::vector<float>& found, size_t i, double expected) {
  EXPECT_NEAR(static_cast<double>(found[i]), expected, 1e-6 * expected) << "pair " << i;
}

TEST(Rope, PlainFrequencies) {
  RopeConfig rope;
  rope.dims = 64;
  rope.base = 500000;
  const std::vector<float> f = RopeFrequencies(rope, false, nullptr);
  ASSERT_EQ(f.size(), 32u);
  for (size_t i = 0; i < 32; ++i) ExpectNear(f, i, Plain(500000, 64, i));
}

TEST(Rope, FactorsDivide) {
  RopeConfig rope;
  rope.dims = 8;
  const float factors[] = {1, 1, 4, 32};
  const std::vector<float> f = RopeFrequencies(rope, false, factors);
  for (size_t i = 0; i < 4; ++i) {
    ExpectNear(f, i, Plain(10000, 8, i) / static_cast<double>(factors[i]));
  }
}

TEST(Rope, LinearScalingDividesAllOrOnlyFullLayers) {
  RopeConfig rope;
  rope.dims = 16;
  rope.base = 1e6f;
  rope.base_window = 10000;
  rope.scaling = RopeScaling::kLinear;
  rope.factor = 8;
  for (size_t i = 0; i < 8; ++i) {
    ExpectNear(RopeFrequencies(rope, false, nullptr), i, Plain(1e6, 16, i) / 8);
    ExpectNear(RopeFrequencies(rope, true, nullptr), i, Plain(10000, 16, i) / 8);
  }
  rope.scale_window = false;
  for (size_t i = 0; i < 8; ++i) {
    ExpectNear(RopeFrequencies(rope, true, nullptr), i, Plain(10000, 16, i));
  }
}

// YaRN (Peng et al. 2023, section 3.2): pairs that turn more than beta_fast times within the
// original context keep their frequency, those that turn less than beta_slow times are divided by
// the factor, between them lies a straight ramp over the pair index.
void CheckYarn(bool truncate) {
  RopeConfig rope;
  rope.dims = 128;
  rope.scaling = RopeScaling::kYarn;
  rope.factor = 16;
  rope.original_context = 4096;
  rope.truncate_ramp = truncate;
  const auto pair_of = [](double turns) {
    return 128 * std::log(4096 / (2 * std::numbers::pi * turns)) / (2 * std::log(10000.0));
  };
  const double low = truncate ? std::floor(pair_of(32)) : pair_of(32);
  const double high = truncate ? std::ceil(pair_of(1)) : pair_of(1);
  const std::vector<float> f = RopeFrequencies(rope, false, nullptr);
  for (size_t i = 0; i < 64; ++i) {
    const double t = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double plain = Plain(10000, 128, i);
    ExpectNear(f, i, (1 - t) * plain + t * plain / 16);
  }
  ExpectNear(f, 0, 1);                            // fast: as it was
  ExpectNear(f, 63, Plain(10000, 128, 63) / 16);  // slow: stretched
}

TEST(Rope, YarnRampWithWholeBounds) { CheckYarn(true); }
TEST(Rope, YarnRampWithFractionalBounds) { CheckYarn(false); }

TEST(Rope, YarnWithARampOfNoWidthStaysFinite) {
  RopeConfig rope;
  rope.dims = 4;
  rope.scaling = RopeScaling::kYarn;
  rope.factor = 4;
  rope.original_context = 1;
  for (float f : RopeFrequencies(rope, false, nullptr)) EXPECT_TRUE(std::isfinite(f));
}

TEST(Rope, AnglesAreFloatProductsOfPositionAndFrequency) {
  const std::vector<float> f = {1, 0.1f, 1e-4f};
  float cos[3], sin[3];
  for (int32_t position : {0, 1, 4095, 1 << 20}) {
    RopeAngles(f, position, 1.5f, cos, sin);
    for (size_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(static_cast<float>(position) * f[i]);
      EXPECT_NEAR(static_cast<double>(cos[i]), 1.5 * std::cos(angle), 3e-7);
      EXPECT_NEAR(static_cast<double>(sin[i]), 1.5 * std::sin(angle), 3e-7);
    }
  }
}

}  // namespace
}  // namespace sluice
