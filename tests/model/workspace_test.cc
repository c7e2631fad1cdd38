// Views of a matmul input: rows stay apart in every form.
#include "src/model/workspace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "hwy/aligned_allocator.h"

namespace sluice {
namespace {

constexpr size_t kRows = 66, kK = 128, kHeads = 3;
constexpr InputForms kAllForms{.int8 = true, .bf16 = true};

struct Storage {
  std::vector<float> f32 = std::vector<float>(kRows * RowStride(kK), -1);
  hwy::AlignedFreeUniquePtr<uint8_t[]> act = hwy::AllocateAligned<uint8_t>(ActBytes(kRows, kK));
  std::vector<uint16_t> bf16 = std::vector<uint16_t>(kRows * RowStride(kK));
  InputBuffer buffer{f32.data(), act.get(), bf16.data(), kRows, kK};
};

// The values of a head of a row, or of a row where heads are rows.
std::vector<float> Values(size_t i) {
  std::vector<float> x(kK);
  std::iota(x.begin(), x.end(), static_cast<float>(100 * i) + 1);
  return x;
}

void ExpectValues(const Input& in, size_t row) {
  const std::vector<float> x = Values(row);
  for (size_t j = 0; j < kK; ++j) {
    EXPECT_EQ(in.row(row)[j], x[j]) << row << " " << j;
    const float scaled = static_cast<float>(in.act.q[row * in.act.stride + j]) *
                         in.act.scale[row * (in.act.stride / kActBlock) + j / kActBlock];
    EXPECT_NEAR(scaled, x[j], x[kK - 1] / 127) << row << " " << j;
    const uint32_t bits = uint32_t{in.bf16[row * in.stride + j]} << 16;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    EXPECT_NEAR(rounded, x[j], x[j] / 128) << row << " " << j;
  }
}

void Fill(const Input& in, size_t row, size_t begin, size_t value) {
  const std::vector<float> x = Values(value);
  std::copy(x.begin(), x.end(), in.row(row) + begin);
  in.Fill(kAllForms, row, begin, begin + kK);
}

TEST(InputTest, RowsKeepTheirValuesInEveryForm) {
  const Storage storage;
  const Input in = storage.buffer.View(kRows, kK);
  for (size_t t = 0; t < kRows; ++t) Fill(in, t, 0, t);
  for (size_t t = 0; t < kRows; ++t) ExpectValues(in, t);
  const Input last = in.Rows(kRows - 2, 2);
  EXPECT_EQ(last.row(1), in.row(kRows - 1));
  EXPECT_EQ(last.bf16 + last.stride, in.bf16 + (kRows - 1) * in.stride);
  EXPECT_EQ(last.act.q + last.act.stride, in.act.q + (kRows - 1) * in.act.stride);
}

// Attention writes all heads of a row, a product reads each head as a row.
TEST(InputTest, HeadsOfJoinedRowsAreRows) {
  const Storage storage;
  const Input heads = storage.buffer.View(kRows, kK, kK);
  const Input joined = heads.Joined(kHeads);
  ASSERT_EQ(joined.rows, kRows / kHeads);
  ASSERT_EQ(joined.k, kHeads * kK);
  EXPECT_EQ(joined.act.tile_q, nullptr);  // with AMX 66 rows have tiles, 22 longer ones no room
  for (size_t i = 0; i < kRows; ++i) Fill(joined, i / kHeads, i % kHeads * kK, i);
  for (size_t i = 0; i < kRows; ++i) ExpectValues(heads, i);
}

}  // namespace
}  // namespace sluice
