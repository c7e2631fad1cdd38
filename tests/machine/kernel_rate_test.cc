#include "src/machine/kernel_rate.h"

#include <gtest/gtest.h>

#include <vector>

#include "quant/tiles.h"
#include "src/base/arena.h"

namespace sluice {
namespace {

// More workers than there are parts of the matrix, and a matrix smaller than a part. The sanitizers
// see whether the probe stays inside it.
TEST(KernelRate, RunsEveryFormatInBothForms) {
  auto team = ThreadTeam::Create(3);
  ASSERT_TRUE(team.ok());
  for (const Format* format : Formats()) {
    if (format->matmul == nullptr) continue;
    for (const size_t rows : {16u, 144u}) {
      constexpr size_t k = 512;
      const std::vector<uint8_t> bytes(rows * format->RowBytes(k));  // zeros are valid in all
      KernelMatrix matrix{format, bytes.data(), false, false, rows, k};
      const Result<double> in_place = MeasureMatMulRate(**team, 3, matrix, 8, 0);
      ASSERT_TRUE(in_place.ok()) << format->name;
      EXPECT_GT(*in_place, 0) << format->name;
      if (format->panel_block_bytes == 0) continue;
      const size_t blocks = k / format->block_values;
      const std::vector<uint8_t> panels(rows / kPanelRows * blocks * format->panel_block_bytes);
      matrix.weights = panels.data();
      matrix.panels = true;
      EXPECT_GT(*MeasureMatMulRate(**team, 2, matrix, 16, 0), 0) << format->name;
    }
  }
}

TEST(KernelRate, MoreThreadsThanCpusAreNoFaster) {
  const int cpus = ThisMachine().RunningAtOnce(1024);
  if (cpus > 32) GTEST_SKIP() << "no team is 32 times as large as " << cpus << " CPUs";
  auto few = ThreadTeam::Create(cpus), many = ThreadTeam::Create(32 * cpus);
  ASSERT_TRUE(few.ok() && many.ok());
  const Format* format = FindFormat("Q8_0");
  const std::vector<uint8_t> bytes(64 * format->RowBytes(512));
  const KernelMatrix matrix{format, bytes.data(), false, false, 64, 512};
  const double one_each = *MeasureMatMulRate(**few, 0, matrix, 8, 0.05);
  EXPECT_LT(*MeasureMatMulRate(**many, 0, matrix, 8, 0.05), 8 * one_each);
}

// Widths that fill no whole tile, few and many tokens, more workers than tiles.
TEST(KernelRate, ProductsOfFewAndOfManyTokens) {
  auto team = ThreadTeam::Create(3);
  const Format* format = FindFormat("Q4_0");
  for (const size_t rows : {16u, 64u, 2112u}) {
    const std::vector<uint8_t> bytes(rows * format->RowBytes(64));
    for (const size_t tokens : {1u, 8u, 9u, 70u}) {
      const KernelMatrix matrix{format, bytes.data(), false, false, rows, 64};
      const Result<double> rate = MeasureProductRate(**team, 3, matrix, tokens, 0);
      ASSERT_TRUE(rate.ok());
      // A matrix without a whole tile has no rate.
      EXPECT_EQ(*rate > 0, rows >= kLeastTileColumns) << rows << " x " << tokens;
    }
  }
}

TEST(KernelRate, DecodedFloats) {
  auto team = ThreadTeam::Create(1);
  const Format* format = FindFormat("Q4_0");
  const std::vector<uint8_t> bytes(64 * format->RowBytes(64));
  EXPECT_GT(*MeasureMatMulRate(**team, 0, {format, bytes.data(), false, true, 64, 64}, 4, 0), 0);
}

TEST(KernelRate, AttentionOfEveryType) {
  auto team = ThreadTeam::Create(2);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8}) {
    const KvShape shape{64, 32, type};
    EXPECT_GT(*MeasureAttentionRate(**team, 2, shape, 0), 0) << KvTypeName(type);
    // Two units for each worker, and a part of one that is left over.
    const size_t bytes = 4 * kUnitSpans * KvPageBytes(shape) + 100;
    const Result<Arena> memory = Arena::Create(bytes);
    ASSERT_TRUE(memory.ok());
    EXPECT_GT(
        *MeasureAttentionRate(**team, 2, shape, 0, 4, RateWindows::kAll, {memory->data(), bytes}),
        0);
  }
}

}  // namespace
}  // namespace sluice
