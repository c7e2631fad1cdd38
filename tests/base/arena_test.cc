#include "src/base/arena.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

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

// VmFlags of the map that holds `p`, from smaps: "rd wr ... hg".
std::string FlagsOf(const uint8_t* p) {
  std::ifstream maps("/proc/self/smaps");
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
      ours = reinterpret_cast<uintptr_t>(p) >= from && reinterpret_cast<uintptr_t>(p) < to;
    } else if (ours && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return "";
}

TEST(Arena, LargeOnesAskForHugePagesOnWholeOnes) {
  const auto huge = Arena::Create(9 << 20);
  const auto small = Arena::Create(9 << 20, false);
  ASSERT_TRUE(huge.ok() && small.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(huge->data()) % (2 << 20), 0u);
  if (FlagsOf(huge->data()).empty() || access("/sys/kernel/mm/transparent_hugepage", R_OK) != 0) {
    GTEST_SKIP() << "skipped: this kernel has no huge pages or does not tell";
  }
  EXPECT_NE(FlagsOf(huge->data()).find(" hg "), std::string::npos);
  EXPECT_NE(FlagsOf(huge->data() + (9 << 20) - 1).find(" hg "), std::string::npos);
  EXPECT_NE(FlagsOf(small->data()).find(" nh "), std::string::npos);
}

TEST(Arena, LocksWhatItHas) {
  const auto arena = Arena::Create(1 << 16);
  ASSERT_TRUE(arena.ok());
  arena->data()[0] = 1;
  const Status status = arena->Lock("keys and values");
  // A machine may allow no locked memory at all; then the message says what to raise.
  if (!status.ok()) {
    EXPECT_NE(status.message().find("ulimit -l"), std::string::npos) << status.message();
  }
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
