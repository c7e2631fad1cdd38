// What must hold for every entry of the list, and that codes, decode and the
// scalar recipe say the same thing about the same bytes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "quant/format.h"

namespace sluice {
namespace {

// Random bytes; no f16 field can be infinite or NaN because no byte has bits 3..6 all set ...
// which costs codes little: every other bit pattern still occurs.
std::vector<uint8_t> RandomBlocks(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> out(bytes);
  for (uint8_t& b : out) {
    do {
      b = static_cast<uint8_t>(random());
    } while ((b & 0x7c) == 0x7c);
  }
  return out;
}

TEST(Formats, ListIsSane) {
  std::set<uint32_t> types;
  std::set<std::string> names;
  for (const Format* f : Formats()) {
    SCOPED_TRACE(f->name);
    EXPECT_TRUE(types.insert(f->gguf_type).second);
    EXPECT_TRUE(names.insert(f->name).second);
    EXPECT_TRUE(f->block_values == 1 || f->block_values % 32 == 0);
    EXPECT_LE(f->block_values, 256u);
    EXPECT_LE(f->block_bytes, 4 * f->block_values);
    EXPECT_NE(f->decode, nullptr);
    EXPECT_EQ(f->codes != nullptr, f->arithmetic == Arithmetic::kInt8);
    EXPECT_EQ(f->to_panel != nullptr, f->panel_block_bytes != 0);
    EXPECT_EQ(f->from_panel != nullptr, f->panel_block_bytes != 0);
    EXPECT_EQ(f->panel_block_bytes % 16, 0u);
    // A panel may spend a little on unpacked scales, never on weights.
    EXPECT_LE(f->panel_block_bytes, 1.03 * kPanelRows * f->block_bytes);
    EXPECT_EQ(f->RowBytes(2 * f->block_values), 2 * f->block_bytes);
  }
}

TEST(Formats, FoundByNumberAndByNameInAnyCase) {
  for (const Format* f : Formats()) {
    EXPECT_EQ(FindFormat(f->gguf_type), f);
    EXPECT_EQ(FindFormat(f->name), f);
  }
  EXPECT_EQ(FindFormat("q4_k"), FindFormat(12u));
  EXPECT_EQ(FindFormat("iQ4_Nl"), FindFormat(20u));
  EXPECT_EQ(FindFormat("q4"), nullptr);
  EXPECT_EQ(FindFormat(""), nullptr);
  EXPECT_EQ(FindFormat("Q4_KX"), nullptr);
  EXPECT_EQ(FindFormat(4u), nullptr);  // retired in ggml
  EXPECT_EQ(FindFormat(0xffffffffu), nullptr);
}

TEST(Formats, CodesMeanWhatDecodeSays) {
  constexpr size_t kWeights = 1024;
  for (const Format* f : Formats()) {
    if (!f->codes) continue;
    SCOPED_TRACE(f->name);
    const std::vector<uint8_t> row = RandomBlocks(f->RowBytes(kWeights), f->gguf_type);
    std::vector<float> want(kWeights);
    f->decode(row.data(), kWeights, want.data());
    for (size_t b = 0; b < kWeights / 32; ++b) {
      Codes32 c;
      f->codes(row.data(), b, &c);
      for (size_t j = 0; j < 32; ++j) {
        const double sub = f->sub16 ? c.sub[j / 16] : 1;
        const double sub_min = f->sub16 ? c.sub_min[j / 16] : 1;
        const double part = double{c.scale} * sub * (c.u[j] - f->zero);
        const double min = f->has_min ? double{c.min} * sub_min : 0;
        const double rounding = (std::fabs(part) + std::fabs(min)) * 0x1p-22 + 1e-45;
        ASSERT_NEAR(part - min, want[32 * b + j], rounding) << b << " " << j;
      }
    }
  }
}

// Activations of two tokens, as the recipe holds them; only what the reference reads.
struct Activations {
  std::vector<int8_t> q;
  std::vector<float> scale, f32;
  ActView View(size_t k) {
    ActView view;
    view.rows = 2;
    view.k = view.stride = k;
    view.q = q.data();
    view.scale = scale.data();
    return view;
  }
};

Activations RandomActivations(size_t k) {
  std::mt19937 random(7);
  Activations a;
  for (size_t b = 0; b < 2 * k / 32; ++b) {
    a.scale.push_back(static_cast<float>(random() % 1000 + 1) / 4096);
    for (size_t j = 0; j < 32; ++j) {
      a.q.push_back(static_cast<int8_t>(static_cast<int>(random() % 255) - 127));
      a.f32.push_back(static_cast<float>(a.q.back()) * a.scale.back());
    }
  }
  return a;
}

TEST(ReferenceDot, IsTheDotProductOfDecodedWeights) {
  constexpr size_t kWeights = 1024;
  Activations a = RandomActivations(kWeights);
  for (const Format* f : Formats()) {
    SCOPED_TRACE(f->name);
    std::vector<uint8_t> row = RandomBlocks(f->RowBytes(kWeights), f->gguf_type);
    if (f->gguf_type == 39) {  // MXFP4: keep 2^(e - 128) near 1, or sums overflow
      for (size_t i = 0; i < row.size(); i += f->block_bytes) row[i] = 120 + row[i] % 16;
    }
    if (f->block_values == 1) {  // floats near 1
      std::vector<float> values(kWeights);
      for (size_t i = 0; i < kWeights; ++i) values[i] = 0.25f + static_cast<float>(row[i]) / 256;
      f->encode(values.data(), kWeights, row.data());
    }
    std::vector<float> w(kWeights);
    f->decode(row.data(), kWeights, w.data());
    for (size_t t = 0; t < 2; ++t) {
      double want = 0, size = 0;
      for (size_t i = 0; i < kWeights; ++i) {
        const double term = double{w[i]} * a.f32[t * kWeights + i];
        want += term;
        size += std::fabs(term);
      }
      const float got = ReferenceDot(*f, row.data(), kWeights, a.View(kWeights), t, a.f32.data());
      EXPECT_NEAR(got, want, 2e-5 * size) << "token " << t;
    }
  }
}

// One block of Q4_1 with everything exact, so that the two chains can be followed by hand:
// d = 2, m = -1, codes 0..15 twice; a = 1, da = 0.5: I = 240, sum a = 32.
TEST(ReferenceDot, FollowsTheRecipeByHand) {
  std::vector<uint8_t> block = {0x00, 0x40, 0x00, 0xbc};
  for (int j = 0; j < 16; ++j) block.push_back(static_cast<uint8_t>(j | j << 4));
  std::vector<int8_t> q(32, 1);
  float scale = 0.5f;
  ActView view;
  view.rows = 1;
  view.k = view.stride = 32;
  view.q = q.data();
  view.scale = &scale;
  // f = 240 * (2 * 0.5); m = 1 * (0.5 * 32), the recipe's minimum being -m of the block.
  EXPECT_EQ(ReferenceDot(*FindFormat("Q4_1"), block.data(), 32, view, 0, nullptr), 240 - 16);
}

}  // namespace
}  // namespace sluice
