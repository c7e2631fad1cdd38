#include "src/machine/checkup_probes.h"

#include <gtest/gtest.h>

#include <thread>

#include "src/machine/simd_target.h"

namespace sluice {
namespace {

TEST(CheckupProbes, MeasuresThisMachine) {
  std::thread([] {  // a team binds the thread that leads it
    const auto team = ThreadTeam::Create(0);
    ASSERT_TRUE(team.ok());
    const Measured m = MeasureForCheckup(**team);
    ASSERT_TRUE(m.idle.has_value());
    EXPECT_GT(m.idle->seconds, 0.3);
    EXPECT_GE(m.idle->busy_cpus, 0);
    EXPECT_GT(m.clock_ghz.value_or(0), 0.1);
    if (m.huge_page_gain) {
      EXPECT_GT(*m.huge_page_gain, 0.1);
    }
  })
      .join();
}

TEST(CheckupProbes, LeavesTheTargetAsItWas) {
  const std::vector<std::string> usable = UsableSimdTargets();
  ASSERT_FALSE(usable.empty());
  std::thread([&] {
    const auto team = ThreadTeam::Create(1);
    ASSERT_TRUE(team.ok());
    ASSERT_TRUE(ChooseSimdTarget(usable.back()).ok());
    const std::optional<double> gain = MeasureTargetGain(**team);
    EXPECT_EQ(gain.has_value(), usable.size() > 1);
    EXPECT_EQ(SimdTarget(), usable.back());
    const SimdFacts facts = ReadSimdFacts();
    EXPECT_EQ(facts.running, usable.back());
    EXPECT_EQ(facts.best_built, usable.front());
    EXPECT_EQ(SimdTarget(), usable.back()) << "asking changes nothing";
    ASSERT_TRUE(ChooseSimdTarget("").ok());
  }).join();
}

}  // namespace
}  // namespace sluice
