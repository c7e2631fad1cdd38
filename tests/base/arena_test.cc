#include "src/base/arena.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice {
namespace {

TEST(Arena, HandsOutAlignedZeroedRanges) {
  auto arena = Arena::Create(100000);
  ASSERT_TRUE(arena.ok());
  uint8_t* a = arena->Allocate(3);
  uint8_t* b = arena->Allocate(100, 4096);
  float* c = arena->Array<float>(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(c) % 64, 0u);
  EXPECT_GE(b, a + 3);
  EXPECT_GE(reinterpret_cast<uint8_t*>(c), b + 100);
  EXPECT_TRUE(std::all_of(c, c + 1000, [](float f) { return f == 0; }));
  EXPECT_LE(arena->used(), arena->size());
}

TEST(Arena, TooMuchIsAStatus) {
  const auto arena = Arena::Create(size_t{1} << 62);
  ASSERT_FALSE(arena.ok());
  EXPECT_EQ(arena.status().code(), StatusCode::kOutOfMemory);
}

TEST(Arena, MovesItsMemory) {
  auto arena = Arena::Create(4096);
  ASSERT_TRUE(arena.ok());
  uint8_t* p = arena->Allocate(4096);
  p[4095] = 7;
  Arena other = *std::move(arena);
  EXPECT_EQ(other.data()[4095], 7);
  other = Arena();
  EXPECT_EQ(other.size(), 0u);
}

TEST(ArenaDeathTest, OverrunIsOurBug) {
  auto arena = Arena::Create(64);
  ASSERT_TRUE(arena.ok());
  EXPECT_DEATH(arena->Allocate(65), "CHECK failed");
}

}  // namespace
}  // namespace sluice
