// How products are cut into tiles.
#include "quant/tiles.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(TileColumns, FewRowsStreamAndManyFillLines) {
  const Format& q4 = *FindFormat("Q4_0");  // 18 bytes for 32 values: 1152 of a row of 2048
  EXPECT_EQ(TileColumns(q4, 2048, 2048, kFewRows + 1, 2), kTileColumns);
  EXPECT_EQ(TileColumns(q4, 2048, 2048, kFewRows, 2), 32u);  // 56 rows are 64 KB
  EXPECT_EQ(TileColumns(q4, 2048, 512, kFewRows, 2), 224u);  // 227 rows
  EXPECT_EQ(TileColumns(q4, 65536, 64, 1, 2), kWideTileColumns);
}

TEST(TileColumns, FourForEachWorkerWhereThatCanBe) {
  const Format& q4 = *FindFormat("Q4_0");
  EXPECT_EQ(TileColumns(q4, 1024, 512, 1, 2), 128u);
  EXPECT_EQ(TileColumns(q4, 256, 512, 512, 2), 32u);
  EXPECT_EQ(TileColumns(q4, 64, 512, 512, 16), 32u);  // no smaller
}

}  // namespace
}  // namespace sluice
