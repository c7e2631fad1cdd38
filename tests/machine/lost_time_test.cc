#include "src/machine/lost_time.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>
#include <fstream>

#include "src/machine/clock.h"
#include "src/machine/energy.h"
#include "src/machine/residency.h"
#include "tests/base/temp_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

TEST(SplitLost, ReadyTimeIsTheQuotasAsFarAsItWentAndOthersAfterwards) {
  LostEvidence e;
  e.ready_s = 0.9;
  e.throttling.seconds = 0.5;
  const LostCauses c = SplitLost(1.0, e);
  EXPECT_DOUBLE_EQ(c.throttled_s, 0.5);
  EXPECT_DOUBLE_EQ(c.preempted_s, 0.5);  // 0.4 ready, 0.1 that nothing explains
  EXPECT_EQ(c.page_faults_s, 0);
}

// The group has other threads, too.
TEST(SplitLost, TheQuotasTimeNeedNotBeReadyTime) {
  LostEvidence e;
  e.ready_s = 0.25;
  e.throttling.seconds = 0.75;
  const LostCauses c = SplitLost(1.0, e);
  EXPECT_DOUBLE_EQ(c.throttled_s, 0.75);
  EXPECT_DOUBLE_EQ(c.preempted_s, 0.25);
}

TEST(SplitLost, BlockedTimeIsTheDisksIfItWasRead) {
  LostEvidence e;
  e.ready_s = 0.25;
  e.major_faults = 3;
  LostCauses c = SplitLost(1.0, e);
  EXPECT_DOUBLE_EQ(c.page_faults_s, 0.75);
  EXPECT_DOUBLE_EQ(c.preempted_s, 0.25);
  e.major_faults = 0;
  e.disk_reads = 1;  // pages that were being read ahead
  EXPECT_DOUBLE_EQ(SplitLost(1.0, e).page_faults_s, 0.75);
}

TEST(SplitLost, NoMoreThanWasLost) {
  LostEvidence e;
  e.ready_s = 7;
  e.throttling.seconds = 9;
  const LostCauses c = SplitLost(2.0, e);
  EXPECT_DOUBLE_EQ(c.throttled_s, 2.0);
  EXPECT_EQ(c.preempted_s + c.page_faults_s, 0);
}

TEST(SplitLost, WithoutSchedstatFaultsTakeWhatTheQuotaLeaves) {
  LostEvidence e;
  e.throttling.seconds = 0.25;
  EXPECT_DOUBLE_EQ(SplitLost(1.0, e).preempted_s, 0.75);
  e.major_faults = 1;
  EXPECT_DOUBLE_EQ(SplitLost(1.0, e).page_faults_s, 0.75);
}

// A made-up file system root.
class FakeRoot : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const fs::path whole = fs::path(folder_.path()) / path;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::string root() const { return folder_.path(); }
  const TempFolder folder_;
};

TEST_F(FakeRoot, LostTimeReadsThreadsAndTheGroupThatWasStoppedLongest) {
  Write("proc/self/task/5/schedstat", "100 1000000000 3\n");
  Write("proc/self/task/6/schedstat", "100 2000000000 3\n");
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("proc/self/mountinfo", "31 22 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  Write("sys/fs/cgroup/a/b/cpu.stat", "nr_periods 9\nnr_throttled 1\nthrottled_usec 5\n");
  // Long before: it must not hide what happens to the other group now.
  Write("sys/fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 70\nthrottled_usec 900000000\n");
  LostTime lost(root());
  const int threads[] = {5, 6};
  EXPECT_EQ(lost.Next(threads).ready_s, 0);  // seen for the first time
  Write("proc/self/task/5/schedstat", "200 1250000000 4\n");
  Write("proc/self/task/6/schedstat", "200 2500000000 4\n");
  Write("sys/fs/cgroup/a/b/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_usec 500005\n");
  LostEvidence e = lost.Next(threads);
  EXPECT_DOUBLE_EQ(e.ready_s, 0.75);
  EXPECT_DOUBLE_EQ(e.throttling.seconds, 0.5);
  EXPECT_EQ(e.throttling.periods, 3u);
  e = lost.Next(threads);
  EXPECT_EQ(e.ready_s, 0);
  EXPECT_EQ(e.throttling.seconds, 0);
  const int gone[] = {5, 7};
  EXPECT_LT(lost.Next(gone).ready_s, 0);
}

TEST_F(FakeRoot, ThrottlingOfTheFirstHierarchyIsInNanoseconds) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/a\n");
  Write("proc/self/mountinfo", "33 22 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  Write("cg/cpu/a/cpu.stat", "nr_periods 9\nnr_throttled 0\nthrottled_time 0\n");
  ThrottleMeter meter(root());
  Write("cg/cpu/a/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 250000000\n");
  const Throttling grown = meter.Next();
  EXPECT_EQ(grown.periods, 2u);
  EXPECT_DOUBLE_EQ(grown.seconds, 0.25);
}

TEST_F(FakeRoot, EnergyIsThatOfThePackages) {
  const std::string zones = "sys/class/powercap/";
  const auto zone = [&](const std::string& name, const std::string& what, const char* uj) {
    Write(zones + name + "/name", what);
    Write(zones + name + "/energy_uj", uj);
    Write(zones + name + "/max_energy_range_uj", "10000000\n");
  };
  EXPECT_FALSE(EnergyMeter(root()).available());
  zone("intel-rapl:0", "package-0\n", "1000000\n");
  zone("intel-rapl:1", "package-1\n", "9000000\n");
  zone("intel-rapl:0:0", "core\n", "1000\n");
  zone("intel-rapl:2", "psys\n", "1000\n");
  EnergyMeter meter(root());
  ASSERT_TRUE(meter.available());
  EXPECT_EQ(meter.Joules(), 0);
  zone("intel-rapl:0", "package-0\n", "3500000\n");
  zone("intel-rapl:1", "package-1\n", "500000\n");  // went round
  zone("intel-rapl:0:0", "core\n", "900000\n");
  zone("intel-rapl:2", "psys\n", "9000000\n");
  EXPECT_DOUBLE_EQ(meter.Joules(), 2.5 + 1.5);
  EXPECT_DOUBLE_EQ(meter.Joules(), 4.0);
}

TEST_F(FakeRoot, TheNominalClockIsWhatTheSystemPromises) {
  const std::string cpu = "sys/devices/system/cpu/cpu0/";
  EXPECT_EQ(NominalClockGhz(root()), 0);
#if defined(__x86_64__)
  Write("proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2600.000\n");
  EXPECT_DOUBLE_EQ(NominalClockGhz(root()), 2.6);
  Write(cpu + "cpufreq/cpuinfo_max_freq", "4700000\n");  // with boost; MHz is of the moment
  EXPECT_EQ(NominalClockGhz(root()), 0);
#endif
  Write(cpu + "acpi_cppc/nominal_freq", "2900\n");
  EXPECT_DOUBLE_EQ(NominalClockGhz(root()), 2.9);
  Write(cpu + "cpufreq/base_frequency", "3100000\n");
  EXPECT_DOUBLE_EQ(NominalClockGhz(root()), 3.1);
}

TEST(Clock, AGlanceSeesAPlausibleClock) {
  const double ghz = GlanceAtClockGhz();
  EXPECT_GT(ghz, 0.05);
  EXPECT_LT(ghz, 12);
}

// 8 MB of which every other MB was touched.
TEST(Residency, CountsWhatWasTouched) {
  constexpr size_t kMb = 1 << 20, kSize = 8 * kMb;
  void* map = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  madvise(map, kSize, MADV_NOHUGEPAGE);
  auto* bytes = static_cast<uint8_t*>(map);
  const std::span<const uint8_t> memory[] = {{bytes, 3 * kMb}, {bytes + 3 * kMb, 5 * kMb}};
  EXPECT_EQ(ResidentShare(memory), 0);
  for (size_t at = 0; at < kSize; at += 2 * kMb) {
    for (size_t page = 0; page < kMb; page += 4096) bytes[at + page] = 1;
  }
  EXPECT_EQ(ResidentBytes(bytes, kMb), kMb);
  EXPECT_EQ(ResidentBytes(bytes + kMb, kMb), 0u);
  EXPECT_DOUBLE_EQ(ResidentShare(memory), 0.5);
  munmap(map, kSize);
  EXPECT_EQ(ResidentShare({}), 1);
}

}  // namespace
}  // namespace sluice
