#include "src/machine/quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

namespace fs = std::filesystem;

// A made-up file system root: Write("proc/self/cgroup", "0::/a\n").
class QuotaTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            (std::string("quota-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void V2(const std::string& group, const std::string& mount_root = "/") {
    Write("proc/self/cgroup", "0::" + group + "\n");
    Write("proc/self/mountinfo",
          "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
          "31 22 0:27 " +
              mount_root + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void V1(const std::string& group, const std::string& mount_root = "/") {
    Write("proc/self/cgroup",
          "9:memory:" + group + "\n4:cpu,cpuacct:" + group + "\n1:name=systemd:/\n");
    Write("proc/self/mountinfo",
          "33 22 0:29 " + mount_root +
              " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
              "34 22 0:30 " +
              mount_root + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  }
  std::optional<double> Cpu() const { return CpuQuota(root_.string()); }
  std::optional<uint64_t> Memory() const { return MemoryLimit(root_.string()); }

  fs::path root_;
};

TEST_F(QuotaTest, NoFilesMeansNoLimit) {
  EXPECT_FALSE(Cpu().has_value());
  EXPECT_FALSE(Memory().has_value());
}

TEST_F(QuotaTest, V2ReadsOwnGroup) {
  V2("/app.slice/x.scope");
  Write("sys/fs/cgroup/app.slice/x.scope/cpu.max", "150000 100000\n");
  Write("sys/fs/cgroup/app.slice/x.scope/memory.max", "1073741824\n");
  EXPECT_EQ(Cpu(), 1.5);
  EXPECT_EQ(Memory(), 1073741824u);
}

TEST_F(QuotaTest, V2TakesTheSmallestOfTheAncestors) {
  V2("/a/b/c");
  Write("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
  Write("sys/fs/cgroup/a/cpu.max", "153000 20000\n");
  Write("sys/fs/cgroup/a/b/c/memory.max", "max\n");
  Write("sys/fs/cgroup/a/memory.max", "5000000\n");
  EXPECT_DOUBLE_EQ(*Cpu(), 7.65);
  EXPECT_EQ(Memory(), 5000000u);
}

TEST_F(QuotaTest, V2MaxEverywhereIsNoLimit) {
  V2("/a");
  Write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/a/memory.max", "max\n");
  EXPECT_FALSE(Cpu().has_value());
  EXPECT_FALSE(Memory().has_value());
}

// Its own cgroup namespace: the container's group is the root of what it sees.
TEST_F(QuotaTest, V2InsideAContainer) {
  V2("/");
  Write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(Cpu(), 4.0);
}

// No namespace: /proc tells the host's path, the mount starts at the container's group.
TEST_F(QuotaTest, MountThatStartsBelowTheRoot) {
  V2("/docker/abc/inner", "/docker/abc");
  Write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  Write("sys/fs/cgroup/inner/cpu.max", "250000 100000\n");
  EXPECT_EQ(Cpu(), 2.5);
}

TEST_F(QuotaTest, GroupOutsideOfTheMountReadsTheTop) {
  V2("/../../elsewhere", "/");
  Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(Cpu(), 2.0);
}

TEST_F(QuotaTest, V1ReadsQuotaAndPeriod) {
  V1("/kubepods/pod1");
  Write("sys/fs/cgroup/cpu,cpuacct/kubepods/pod1/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu,cpuacct/kubepods/pod1/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/kubepods/cpu.cfs_quota_us", "50000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/kubepods/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/memory/kubepods/pod1/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Cpu(), 0.5);
  EXPECT_FALSE(Memory().has_value()) << "the largest value is v1's word for none";
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(Memory(), 2147483648u);
}

TEST_F(QuotaTest, SurvivesNonsense) {
  V2("/a");
  for (const char* text : {"", "\n", "abc def\n", "0 100000\n", "100000\n", "-5 10\n", "1 0\n",
                           "nan nan\n", "99999999999999999999999999 x\n"}) {
    Write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_FALSE(Cpu().has_value()) << text;
  }
  Write("proc/self/mountinfo", "31 22 0:27 - cgroup2\n- - -\n\n");
  Write("proc/self/cgroup", "0:\n::::\n:\n");
  EXPECT_FALSE(Cpu().has_value());
}

TEST_F(QuotaTest, CountsThrottledPeriods) {
  EXPECT_EQ(CpuThrottledPeriods(root_.string()), 0u);
  V2("/app.slice/x.scope");
  Write("sys/fs/cgroup/app.slice/x.scope/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 3\n");
  EXPECT_EQ(CpuThrottledPeriods(root_.string()), 3u);
  Write("sys/fs/cgroup/app.slice/cpu.stat", "nr_periods 9\nnr_throttled 7\nthrottled_usec 1\n");
  EXPECT_EQ(CpuThrottledPeriods(root_.string()), 7u);  // the parent was stopped, and this with it
}

TEST_F(QuotaTest, V1CountsThrottledPeriods) {
  V1("/docker/a");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.stat",
        "nr_periods 9\nnr_throttled 4\nthrottled_time 12\n");
  EXPECT_EQ(CpuThrottledPeriods(root_.string()), 4u);
}

}  // namespace
}  // namespace sluice
