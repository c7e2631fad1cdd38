#include "src/machine/simd_target.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "simd/stream.h"

namespace sluice {
namespace {

// What a kernel says of itself: AVX2 is one target of the library beneath, with and without
// AVX-VNNI.
std::string StreamTargetOf(const std::string& name) { return name == "AVX2_VNNI" ? "AVX2" : name; }

class SimdTargetTest : public testing::Test {
 protected:
  void TearDown() override {
    unsetenv("SLUICE_TARGET");
    EXPECT_TRUE(ChooseSimdTarget("").ok());
  }
};

// What the kernel says about itself must follow the choice, not only what we report.
TEST_F(SimdTargetTest, ForcesEachUsableTarget) {
  const auto usable = UsableSimdTargets();
  ASSERT_FALSE(usable.empty());
  for (const std::string& name : usable) {
    const Status chosen = ChooseSimdTarget(name);
    ASSERT_TRUE(chosen.ok()) << chosen.message();
    EXPECT_EQ(StreamTarget(), StreamTargetOf(name));
    EXPECT_EQ(SimdTarget(), name);
    EXPECT_EQ(UsableSimdTargets(), usable) << "a choice must not hide the others";
  }
}

TEST_F(SimdTargetTest, TakesTheBestUnlessTold) {
  ASSERT_TRUE(ChooseSimdTarget(UsableSimdTargets().back()).ok());
  ASSERT_TRUE(ChooseSimdTargetFromEnvironment().ok());
  EXPECT_EQ(StreamTarget(), StreamTargetOf(UsableSimdTargets().front()));
}

TEST_F(SimdTargetTest, ObeysTheEnvironment) {
  const std::string last = UsableSimdTargets().back();
  setenv("SLUICE_TARGET", last.c_str(), 1);
  ASSERT_TRUE(ChooseSimdTargetFromEnvironment().ok());
  EXPECT_EQ(StreamTarget(), StreamTargetOf(last));
}

TEST_F(SimdTargetTest, RefusesUnknownNamesAndListsTheValidOnes) {
  const std::string before = StreamTarget();
  setenv("SLUICE_TARGET", "MMX", 1);
  const Status status = ChooseSimdTargetFromEnvironment();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("'MMX'"), std::string::npos);
  for (const std::string& name : UsableSimdTargets()) {
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
  EXPECT_EQ(StreamTarget(), before);
}

}  // namespace
}  // namespace sluice
