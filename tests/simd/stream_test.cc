#include "simd/stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hwy/highway.h"

namespace sluice {
namespace {

uint64_t BytewiseSum(const uint8_t* data, size_t bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) sum += uint64_t{data[i]} << (8 * (i % 8));
  return sum;
}

// Runs `body` once on every SIMD target that is compiled in and that this CPU has.
template <class Body>
void OnEveryTarget(Body body) {
  hwy::SetSupportedTargetsForTest(0);
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  ASSERT_NE(usable, 0);
  for (int64_t left = usable; left != 0; left &= left - 1) {
    hwy::SetSupportedTargetsForTest(left & -left);
    SCOPED_TRACE(hwy::TargetName(left & -left));
    body(hwy::TargetName(left & -left));
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(Stream, SumsEveryByteOnEveryTarget) {
  std::vector<uint8_t> data(5000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 167 + i / 256 + 1);
  OnEveryTarget([&](const char*) {
    for (size_t offset : {0, 1, 13}) {
      for (size_t bytes : {0, 1, 7, 8, 9, 63, 64, 255, 256, 511, 512, 513, 1024, 4095, 4987}) {
        const uint8_t* from = data.data() + offset;
        for (const bool prefetch : {false, true}) {
          EXPECT_EQ(ReadSum(from, bytes, prefetch), BytewiseSum(from, bytes))
              << offset << " " << bytes;
        }
      }
    }
  });
}

TEST(Stream, NamesTheTargetItRunsOn) {
  OnEveryTarget([](const char* name) { EXPECT_STREQ(StreamTarget(), name); });
}

}  // namespace
}  // namespace sluice
