// The activation quantiser against its definition in plain code, on every target.
#include "simd/activations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "hwy/aligned_allocator.h"
#include "simd/amx.h"
#include "tests/simd/each_target.h"

namespace sluice {
namespace {

struct Quantised {
  hwy::AlignedFreeUniquePtr<uint8_t[]> storage;
  ActView view;
  Quantised(size_t rows, size_t k) : storage(hwy::AllocateAligned<uint8_t>(ActBytes(rows, k))) {
    memset(storage.get(), 0x5a, ActBytes(rows, k));
    view = MakeActView(storage.get(), rows, k);
  }
};

// What activations.h promises, value by value.
void ExpectBlock(const float* x, const ActView& a, size_t row, size_t b) {
  float amax = 0;
  for (size_t i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[i]));
  const float inverse = amax > 0x1p-100f ? 127.0f / amax : 0.0f;
  const size_t at = row * (a.stride / 32) + b;
  int pair[4] = {}, sum = 0;
  for (int i = 0; i < 32; ++i) {
    const int q = static_cast<int>(std::nearbyint(x[i] * inverse));
    ASSERT_LE(std::abs(q), 127);
    ASSERT_EQ(a.q[row * a.stride + b * 32 + i], q) << "value " << i;
    pair[i / 16 * 2 + i % 4 / 2] += q;
    sum += q;
  }
  EXPECT_EQ(a.scale[at], amax > 0x1p-100f ? amax / 127.0f : 0.0f);
  EXPECT_EQ(a.neg_sum[at], -sum);
  EXPECT_EQ(a.scaled_sum[at], a.scale[at] * static_cast<float>(sum));
  for (int h = 0; h < 2; ++h) {
    EXPECT_EQ(a.sum16[2 * at + h], pair[2 * h] + pair[2 * h + 1]);
    EXPECT_EQ(static_cast<int16_t>(a.neg_pair[2 * at + h] & 0xffff), -pair[2 * h]);
    EXPECT_EQ(static_cast<int16_t>(a.neg_pair[2 * at + h] >> 16), -pair[2 * h + 1]);
  }
}

void ExpectRow(const std::vector<float>& x, const ActView& a, size_t row) {
  for (size_t b = 0; b < a.k / 32; ++b) ExpectBlock(&x[32 * b], a, row, b);
}

TEST(ActivationsTest, QuantisesAsDefined) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const size_t k : {32, 64, 640, 2304}) {
    std::vector<float> x(k);
    for (float& v : x) v = normal(random) * (random() % 50 == 0 ? 30.0f : 1.0f);
    ForEachTarget([&] {
      Quantised q(3, k);
      QuantiseRow(x.data(), q.view, 1);
      ExpectRow(x, q.view, 1);
      EXPECT_EQ(q.view.q[0], 0x5a);  // its neighbours are untouched
      EXPECT_EQ(q.view.q[q.view.stride + k], 0x5a);
      EXPECT_EQ(q.view.q[2 * q.view.stride], 0x5a);
    });
  }
}

TEST(ActivationsTest, TiesGoToEven) {
  std::vector<float> x(32);
  x[0] = 127.0f;  // scale 1
  for (int i = 1; i < 32; ++i) x[i] = static_cast<float>(i - 16) + 0.5f;
  ForEachTarget([&] {
    Quantised q(1, 32);
    QuantiseRow(x.data(), q.view, 0);
    ExpectRow(x, q.view, 0);
    EXPECT_EQ(q.view.q[16], 0);   // 0.5
    EXPECT_EQ(q.view.q[17], 2);   // 1.5
    EXPECT_EQ(q.view.q[15], 0);   // -0.5
    EXPECT_EQ(q.view.q[14], -2);  // -1.5
  });
}

TEST(ActivationsTest, TinyRowsAreZeros) {
  for (const float amax :
       {0.0f, std::numeric_limits<float>::denorm_min(), 1e-40f, 0x1p-126f, 0x1p-100f}) {
    std::vector<float> x(64, amax);
    x[33] = -amax;
    ForEachTarget([&] {
      Quantised q(1, 64);
      QuantiseRow(x.data(), q.view, 0);
      for (size_t i = 0; i < 64; ++i) EXPECT_EQ(q.view.q[i], 0);
      for (size_t b = 0; b < 2; ++b) {
        EXPECT_EQ(q.view.scale[b], 0);
        EXPECT_EQ(q.view.scaled_sum[b], 0);
        EXPECT_EQ(q.view.neg_sum[b], 0);
      }
    });
  }
}

TEST(ActivationsTest, LargestAndSmallestValuesStayInRange) {
  for (const float amax : {std::nextafter(0x1p-100f, 1.0f), 1e-20f, 1.0f / 3, 1e20f,
                           std::numeric_limits<float>::max()}) {
    std::vector<float> x(32);
    for (int i = 0; i < 32; ++i) x[i] = i % 2 == 0 ? amax : -amax;
    ForEachTarget([&] {
      Quantised q(1, 32);
      QuantiseRow(x.data(), q.view, 0);
      for (int i = 0; i < 32; ++i) EXPECT_EQ(q.view.q[i], i % 2 == 0 ? 127 : -127);
    });
  }
}

TEST(ActivationsTest, ArraysDoNotOverlap) {
  const size_t rows = 3, k = 96;
  Quantised q(rows, k);
  const ActView& a = q.view;
  const uint8_t* const end = q.storage.get() + ActBytes(rows, k);
  const auto bytes = [](const void* p) { return static_cast<const uint8_t*>(p); };
  EXPECT_GE(bytes(a.scale), bytes(a.q + rows * a.stride));
  EXPECT_GE(bytes(a.scaled_sum), bytes(a.scale + rows * a.stride / 32));
  EXPECT_GE(bytes(a.neg_sum), bytes(a.scaled_sum + rows * a.stride / 32));
  EXPECT_GE(bytes(a.neg_pair), bytes(a.neg_sum + rows * a.stride / 32));
  EXPECT_GE(bytes(a.sum16), bytes(a.neg_pair + rows * a.stride / 16));
  EXPECT_LE(bytes(a.sum16 + rows * a.stride / 16), end);
}

// Rows of a chunk lie in tiles too where the CPU has AMX; parts of it that start inside one do not.
TEST(ActivationsTest, TilesHoldTheSameValues) {
  const size_t rows = 101, k = 96;
  Quantised q(rows, k);
  const ActView& a = q.view;
  EXPECT_EQ(a.tile_q != nullptr, HasAmx());
  if (!HasAmx()) GTEST_SKIP() << "this CPU has no AMX";
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(rows * k);
  for (float& v : x) v = normal(random);
  ForEachTarget([&] {
    for (size_t r = 0; r < rows; ++r) QuantiseRow(&x[r * k], a, r);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t b = 0; b < k / 32; ++b) {
        const size_t at = (r / 16 * (k / 32) + b) * 16 + r % 16;
        EXPECT_EQ(0, memcmp(a.tile_q + 32 * at, a.q + r * a.stride + 32 * b, 32)) << r << " " << b;
        EXPECT_EQ(a.tile_scale[at], a.scale[r * (a.stride / 32) + b]);
      }
    }
  });
  const ActView part = ActRows(a, 32, 40);
  EXPECT_EQ(0, memcmp(part.tile_q, a.q + 32 * a.stride, 32));
  EXPECT_EQ(part.tile_scale[1], a.scale[33 * (a.stride / 32)]);
  EXPECT_EQ(ActRows(a, 33, 40).tile_q, nullptr);
}

TEST(Bf16, RoundsToNearestEven) {
  std::vector<float> x = {1.0f, 0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, -0x1.fffffep0f, 0.0f, -3.5f};
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  while (x.size() < 67) x.push_back(normal(random));
  ForEachTarget([&] {
    for (const size_t n : {x.size(), size_t{7}, size_t{1}}) {
      std::vector<uint16_t> out(n + 1, 0x5a5a);
      RoundToBf16(x.data(), n, out.data());
      for (size_t i = 0; i < n; ++i) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        EXPECT_EQ(out[i], (bits + 0x7fff + (bits >> 16 & 1)) >> 16) << x[i];
      }
      EXPECT_EQ(out[n], 0x5a5a);
    }
  });
}

}  // namespace
}  // namespace sluice
