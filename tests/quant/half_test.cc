// The short floats, checked against their definition: sign * 2^exponent * fraction.
#include "quant/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice {
namespace {

double F16ByDefinition(uint16_t h) {
  const int exponent = h >> 10 & 31;
  const double fraction = h & 1023;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return h & 0x8000 ? -size : size;
}

TEST(Half, EveryF16IsExactAndComesBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto h = static_cast<uint16_t>(i);
    const float f = F32FromF16(h);
    if ((h & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isnan(f), (h & 0x3ff) != 0) << h;
      EXPECT_EQ(std::isinf(f), (h & 0x3ff) == 0) << h;
      if (std::isnan(f)) continue;
    } else {
      ASSERT_EQ(f, F16ByDefinition(h)) << h;
    }
    EXPECT_EQ(std::signbit(f), (h & 0x8000) != 0) << h;
    ASSERT_EQ(F16FromF32(f), h);
  }
}

// Between every two neighbours: the middle goes to the even one, its float neighbours do not.
TEST(Half, F16RoundsToNearestTiesToEven) {
  for (uint16_t h = 0; h < 0x7bff; ++h) {
    const float low = F32FromF16(h), high = F32FromF16(h + 1);
    const float middle = low + (high - low) / 2;
    const uint16_t even = h % 2 ? h + 1 : h;
    ASSERT_EQ(F16FromF32(middle), even) << h;
    ASSERT_EQ(F16FromF32(std::nextafterf(middle, low)), h);
    ASSERT_EQ(F16FromF32(std::nextafterf(middle, high)), h + 1);
    ASSERT_EQ(F16FromF32(-middle), even | 0x8000);
  }
}

TEST(Half, F16OfLargeAndTinyAndNaN) {
  EXPECT_EQ(F16FromF32(65504), 0x7bff);
  EXPECT_EQ(F16FromF32(std::nextafterf(65520, 0)), 0x7bff);
  EXPECT_EQ(F16FromF32(65520), 0x7c00);
  EXPECT_EQ(F16FromF32(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(F16FromF32(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(F16FromF32(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(F16FromF32(-0.0f), 0x8000);
  EXPECT_TRUE(std::isnan(F32FromF16(F16FromF32(std::nanf("")))));
}

TEST(Half, BF16RoundsToNearestTiesToEven) {
  EXPECT_EQ(F32FromBF16(0x3f80), 1);
  EXPECT_EQ(BF16FromF32(1 + 0x1p-8f), 0x3f80);             // tie, even below
  EXPECT_EQ(BF16FromF32(1 + 3 * 0x1p-8f), 0x3f82);         // tie, even above
  EXPECT_EQ(BF16FromF32(1 + 0x1p-8f + 0x1p-20f), 0x3f81);  // past the tie
  EXPECT_EQ(BF16FromF32(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(BF16FromF32(F32FromBF16(0x0001)), 0x0001);  // subnormal
  EXPECT_TRUE(std::isnan(F32FromBF16(BF16FromF32(std::nanf("")))));
  for (uint32_t i = 0; i < 0x7f80; ++i) {
    ASSERT_EQ(BF16FromF32(F32FromBF16(static_cast<uint16_t>(i))), i);
  }
}

TEST(Half, E8M0HalfIsAPowerOfTwo) {
  for (int e = 0; e < 256; ++e) {
    ASSERT_EQ(F32FromE8M0Half(static_cast<uint8_t>(e)), std::ldexp(1.0, e - 128)) << e;
  }
}

TEST(Half, E4M3HalfByDefinition) {
  for (int x = 0; x < 0x7f; ++x) {
    const double fraction = x & 7;
    const double whole = x < 8 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, (x >> 3) - 10);
    ASSERT_EQ(F32FromE4M3Half(static_cast<uint8_t>(x)), whole / 2) << x;
  }
  EXPECT_EQ(F32FromE4M3Half(0x7f), 0);
}

}  // namespace
}  // namespace sluice
