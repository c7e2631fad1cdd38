#include "src/machine/cpu_time.h"

#include <gtest/gtest.h>

#include <string>

#include "src/machine/topology.h"
#include "tests/base/temp_folder.h"

namespace sluice {
namespace {

TEST(CpuTime, ReadsTheAllowedCpus) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("proc"));
  const int cpu = ThisMachine().cores[0].cpus[0];
  const std::string stat =
      "cpu  900000 900000 900000 900000 0 0 0 900000 0 0\n"
      "cpu" +
      std::to_string(cpu) +
      " 100 200 300 99999 88888 50 50 400 7 7\n"
      "cpu98765 500000 0 0 0 0 0 0 500000 0 0\n"
      "cpufoo 1 2 3\nintr 5\n";
  WriteFile(folder.path("proc/stat"), std::vector<uint8_t>(stat.begin(), stat.end()));
  const CpuTime time = ReadCpuTime(folder.path());
  EXPECT_NEAR(time.busy_s, 7.0, 1e-9);  // at 100 ticks a second
  EXPECT_NEAR(time.steal_s, 4.0, 1e-9);
  EXPECT_EQ(time.throttled, 0u);
}

TEST(CpuTime, OwnTimeGrowsAndMissingFilesAreZero) {
  const TempFolder folder;
  const CpuTime before = ReadCpuTime(folder.path());
  EXPECT_EQ(before.busy_s, 0);
  EXPECT_EQ(before.steal_s, 0);
  volatile double x = 1;
  while (ReadCpuTime(folder.path()).own_s <= before.own_s) x = x + 1;
}

}  // namespace
}  // namespace sluice
