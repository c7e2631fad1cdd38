#include "src/machine/clock.h"

#include <gtest/gtest.h>

#include "src/machine/topology.h"

namespace sluice {
namespace {

// One cycle an addition: neither folded by the compiler nor two at a time.
TEST(Clock, IsThatOfACpu) {
  for (int threads : {1, 2}) {
    auto team = ThreadTeam::Create(2);
    ASSERT_TRUE(team.ok());
    const double ghz = MeasureClockGhz(**team, threads);
    EXPECT_GT(ghz, 0.05);  // a sanitizer, an emulator, a busy machine
    EXPECT_LT(ghz, 8);
  }
}

}  // namespace
}  // namespace sluice
