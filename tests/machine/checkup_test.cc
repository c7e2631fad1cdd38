#include "src/machine/checkup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/machine/made_up_machine.h"

namespace sluice {
namespace {

constexpr uint64_t kGb = 1'000'000'000;

class CheckupTest : public testing::Test {
 protected:
  CheckupTest() {
    in_.files = SystemFiles(machine_.root());
    in_.measured.idle = IdleWindow{0.4, 0, 0, 0, 0, {}};
    in_.measured.clock_ghz = 3.9;
    in_.measured.huge_page_gain = 1.25;
    in_.simd = {"AVX3_ZEN4", "AVX3_ZEN4", "AVX3_ZEN4", false, true, false};
    in_.places = {{"model", "/models/m.gguf", "ext4", 100 * kGb, true, 1000, ""},
                  {"cache", "/cache", "ext4", 100 * kGb, true, 1000, ""}};
    in_.connections = 2048;
  }

  ModelNeed& Model() {
    if (!in_.model) {
      in_.model =
          ModelNeed{"/models/m.gguf", 4 * kGb, 4 * kGb, 4 * kGb, 4 * kGb, 1.0, kGb / 2, 4096, {}};
    }
    return *in_.model;
  }

  // The findings that are not fine.
  std::vector<Finding> Bad() const {
    std::vector<Finding> bad;
    for (Finding& f : Checkup(in_)) {
      if (f.severity != Severity::kOk) bad.push_back(std::move(f));
    }
    return bad;
  }

  // Exactly one finding, of this check and severity, with something to do about it.
  Finding Only(const std::string& check, Severity severity) const {
    const std::vector<Finding> bad = Bad();
    std::string all;
    for (const Finding& f : bad) all += f.check + ": " + f.found + "\n";
    EXPECT_EQ(bad.size(), 1u) << all;
    if (bad.size() != 1) return {};
    EXPECT_EQ(bad[0].check, check) << all;
    EXPECT_EQ(bad[0].severity, severity) << all;
    const bool unknown = bad[0].found.starts_with("cannot tell: ");
    EXPECT_EQ(bad[0].fix.empty(), unknown) << all;
    return bad[0];
  }

  void ExpectCost(const Finding& f, double value, CostUnit unit, bool measured) const {
    EXPECT_NEAR(f.cost.value, value, 0.02 * std::abs(value)) << f.check;
    EXPECT_EQ(CostUnitName(f.cost.unit), std::string(CostUnitName(unit))) << f.check;
    EXPECT_EQ(f.cost.measured, measured) << f.check;
    EXPECT_FALSE(f.cost.how.empty()) << f.check;
  }

  const MadeUpMachine machine_;
  CheckupInput in_;
};

TEST_F(CheckupTest, AHealthyMachineHasNothing) {
  for (const Finding& f : Bad()) ADD_FAILURE() << f.check << ": " << f.found;
  Model();
  for (const Finding& f : Bad()) ADD_FAILURE() << f.check << ": " << f.found;
  EXPECT_GE(Checkup(in_).size(), 25u);
}

TEST_F(CheckupTest, NothingMeasuredIsNoFinding) {
  in_.measured = {};
  Model();
  for (const Finding& f : Bad()) ADD_FAILURE() << f.check << ": " << f.found;
}

// ---- Clock ----

TEST_F(CheckupTest, GovernorPowersave) {
  machine_.Policies("scaling_governor", "powersave");
  in_.measured.clock_ghz = 3.2;
  Finding f = Only("governor", Severity::kWarning);
  ExpectCost(f, 20, CostUnit::kPrefill, true);
  EXPECT_NE(f.fix[0].find("performance"), std::string::npos);
  in_.measured.clock_ghz.reset();
  ExpectCost(Only("governor", Severity::kWarning), 75, CostUnit::kPrefill, false);
}

TEST_F(CheckupTest, PowersaveOfADriverThatChoosesByPreference) {
  machine_.Policies("scaling_governor", "powersave");
  machine_.Policies("energy_performance_preference", "balance_performance");
  EXPECT_TRUE(Bad().empty());
  machine_.Policies("energy_performance_preference", "power");
  Only("governor", Severity::kWarning);
}

TEST_F(CheckupTest, BoostOff) {
  machine_.Write("sys/devices/system/cpu/cpufreq/boost", "0\n");
  ExpectCost(Only("boost", Severity::kWarning), 25, CostUnit::kPrefill, false);
  machine_.Remove("sys/devices/system/cpu/cpufreq/boost");
  machine_.Write("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
  Only("boost", Severity::kWarning);
  machine_.Write("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
  EXPECT_TRUE(Bad().empty());
}

TEST_F(CheckupTest, ClockBelowNominal) {
  in_.measured.clock_ghz = 1.5;
  ExpectCost(Only("clock", Severity::kWarning), 50, CostUnit::kPrefill, true);
}

TEST_F(CheckupTest, Heat) {
  machine_.Write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "12\n");
  EXPECT_TRUE(Bad().empty()) << "it is over";
  in_.measured.thermal_events = 2;
  Only("heat", Severity::kWarning);
}

// ---- Cores ----

TEST_F(CheckupTest, QuotaOfOneAndAHalf) {
  machine_.CpuMax("150000 100000\n");
  const Finding f = Only("quota", Severity::kWarning);
  ExpectCost(f, 100.0 / 3, CostUnit::kPrefill, false);
  EXPECT_NE(f.found.find("1 thread, 0.5 CPUs stay unused"), std::string::npos) << f.found;
  EXPECT_NE(f.fix[0].find("--cpus 2"), std::string::npos) << f.fix[0];
}

TEST_F(CheckupTest, QuotaBelowOneAndOfWholeCpus) {
  machine_.CpuMax("50000 100000\n");
  ExpectCost(Only("quota", Severity::kWarning), 50, CostUnit::kSpeed, false);
  machine_.CpuMax("200000 100000\n");
  ExpectCost(Only("quota", Severity::kNote), 50, CostUnit::kPrefill, false);
  machine_.CpuMax("400000 100000\n");
  EXPECT_TRUE(Bad().empty());
}

TEST_F(CheckupTest, Throttled) {
  machine_.CpuMax("400000 100000\n");
  machine_.Write("sys/fs/cgroup/work/cpu.stat", "nr_periods 1000\nnr_throttled 5\n");
  EXPECT_TRUE(Bad().empty());
  machine_.Write("sys/fs/cgroup/work/cpu.stat", "nr_periods 1000\nnr_throttled 30\n");
  ExpectCost(Only("throttling", Severity::kNote), 3, CostUnit::kSpeed, true);
  machine_.Write("sys/fs/cgroup/work/cpu.stat", "nr_periods 1000\nnr_throttled 250\n");
  ExpectCost(Only("throttling", Severity::kWarning), 25, CostUnit::kSpeed, true);
  machine_.Write("sys/fs/cgroup/work/cpu.stat", "nr_periods 1000\nnr_throttled 5\n");
  in_.measured.idle->throttled = 1;
  Only("throttling", Severity::kWarning);
}

TEST_F(CheckupTest, MaskOfFewerCores) {
  machine_.Write("proc/self/status", "Cpus_allowed_list:\t0,1,4,5\n");
  // 4 CPUs could be 4 cores: that is the finding, and the mask itself a note.
  const std::vector<Finding> bad = Bad();
  ASSERT_EQ(bad.size(), 2u);
  EXPECT_EQ(bad[0].check, "smt");
  ExpectCost(bad[0], 50, CostUnit::kPrefill, false);
  EXPECT_EQ(bad[0].fix[0], "taskset -c 0-3 sluice ...");
  EXPECT_EQ(bad[1].check, "affinity");
  machine_.Write("proc/self/status", "Cpus_allowed_list:\t0,1,2\n");
  ExpectCost(Only("affinity", Severity::kNote), 25, CostUnit::kPrefill, false);
}

TEST_F(CheckupTest, OnlyECores) {
  machine_.Write("sys/devices/cpu_core/cpus", "0-5\n");
  machine_.Write("sys/devices/cpu_atom/cpus", "6-7\n");
  EXPECT_TRUE(Bad().empty());
  machine_.Write("sys/devices/cpu_core/cpus", "8-9\n");
  machine_.Write("sys/devices/cpu_atom/cpus", "0-7\n");
  Only("core kinds", Severity::kWarning);
}

TEST_F(CheckupTest, OnlyLittleCoresOfArm) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    machine_.Write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity",
                   cpu < 6 ? "400\n" : "1024\n");
    machine_.Write(
        "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        std::to_string(cpu) + "\n");
  }
  EXPECT_TRUE(Bad().empty());
  machine_.Write("proc/self/status", "Cpus_allowed_list:\t0-5\n");
  const std::vector<Finding> bad = Bad();
  ASSERT_EQ(bad.size(), 2u);
  EXPECT_EQ(bad[0].check, "core kinds");
  EXPECT_EQ(bad[1].check, "affinity");
}

TEST_F(CheckupTest, CompetingLoad) {
  in_.measured.idle->busy_cpus = 4;
  in_.measured.idle->programs = {{"make;reboot", 4711, 1, 3.5}};
  const Finding f = Only("load", Severity::kWarning);
  ExpectCost(f, 50, CostUnit::kSpeed, true);
  EXPECT_EQ(f.fix[0], "sudo renice 19 -p 4711  # or stop it");
  in_.measured.idle->programs[0].processes = 3;
  EXPECT_EQ(Only("load", Severity::kWarning).fix[0], f.fix[0]) << "a name that is no plain word";
  in_.measured.idle->programs[0].name = "cc1plus";
  EXPECT_EQ(Only("load", Severity::kWarning).fix[0],
            "sudo renice 19 -p $(pgrep -x cc1plus)  # or stop it");
  in_.measured.idle.reset();
  EXPECT_TRUE(Bad().empty());
  machine_.Write("proc/loadavg", "4.00 1 1 1/100 1\n");
  ExpectCost(Only("load", Severity::kWarning), 50, CostUnit::kSpeed, false);
}

TEST_F(CheckupTest, Steal) {
  in_.measured.idle->steal_cpus = 0.4;
  ExpectCost(Only("steal", Severity::kWarning), 10, CostUnit::kSpeed, true);
  in_.measured.idle->steal_cpus = 0;
  machine_.Write("proc/stat", "cpu  1000 0 0 8000 0 0 0 1000 0 0\n");
  ExpectCost(Only("steal", Severity::kWarning), 10, CostUnit::kSpeed, true);
}

// ---- Instructions ----

TEST_F(CheckupTest, TargetHeldBelowTheBest) {
  in_.simd.running = "AVX2";
  ExpectCost(Only("simd target", Severity::kWarning), 29, CostUnit::kPrefill, false);
  in_.measured.target_gain = 2;
  const Finding f = Only("simd target", Severity::kWarning);
  ExpectCost(f, 50, CostUnit::kPrefill, true);
  EXPECT_EQ(f.fix[0], "unset SLUICE_TARGET");
}

TEST_F(CheckupTest, TargetHeldBelowAmx) {
  in_.simd.running = "AVX3_DL";
  in_.simd.best_built = in_.simd.best_of_cpu = "AVX3_SPR";
  in_.simd.amx = true;
  const Finding f = Only("simd target", Severity::kWarning);
  EXPECT_NE(f.found.find("at AVX3_DL, this CPU runs AVX3_SPR with AMX"), std::string::npos)
      << f.found;
  ExpectCost(f, 32, CostUnit::kPrefill, false);
}

TEST_F(CheckupTest, BuildWithoutTheBestTarget) {
  in_.simd.running = in_.simd.best_built = "AVX2";
  EXPECT_NE(Only("simd target", Severity::kWarning).found.find("AVX3_ZEN4"), std::string::npos);
}

TEST_F(CheckupTest, HiddenInstructions) {
  const auto cpu = [&](const char* vendor, int family, int model, const char* flags) {
    machine_.Write("proc/cpuinfo", std::string("vendor_id\t: ") + vendor +
                                       "\ncpu family\t: " + std::to_string(family) +
                                       "\nmodel\t\t: " + std::to_string(model) +
                                       "\nflags\t\t: " + flags + "\n");
    in_.simd.cpu_has_avx512 = in_.simd.cpu_has_amx = false;
  };
  cpu("AuthenticAMD", 25, 17, "avx2 hypervisor");
  EXPECT_NE(Only("hidden isa", Severity::kWarning).fix[0].find("-cpu host"), std::string::npos);
  in_.simd.cpu_has_avx512 = true;  // CPUID shows it, the system does not
  EXPECT_NE(Only("hidden isa", Severity::kWarning).fix[0].find("clearcpuid"), std::string::npos);
  cpu("AuthenticAMD", 25, 1, "avx2");  // Zen 3 has none
  EXPECT_TRUE(Bad().empty());
  cpu("GenuineIntel", 6, 143, "avx2 avx512f amx_int8");
  EXPECT_TRUE(Bad().empty());
  cpu("GenuineIntel", 6, 143, "avx2 avx512f");
  EXPECT_NE(Only("hidden isa", Severity::kWarning).found.find("AMX"), std::string::npos);
}

// ---- Memory ----

TEST_F(CheckupTest, HugePagesNever) {
  machine_.Write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  ExpectCost(Only("huge pages", Severity::kWarning), 20, CostUnit::kDecode, true);
  in_.measured.huge_page_gain = 1.0;  // no gain here
  Only("huge pages", Severity::kNote);
  in_.measured.huge_page_gain.reset();
  ExpectCost(Only("huge pages", Severity::kWarning), 35, CostUnit::kDecode, false);
}

TEST_F(CheckupTest, PanelsInSmallPages) {
  Model().huge_share = 0.5;
  ExpectCost(Only("panel pages", Severity::kWarning), 10, CostUnit::kDecode, true);
  in_.measured.huge_page_gain = 0.9;  // small ones are faster here
  EXPECT_TRUE(Bad().empty());
}

TEST_F(CheckupTest, PanelsInSlowMemory) {
  Model();
  in_.measured.read_gb_s = 35;
  in_.measured.panel_read_gb_s = 31;
  EXPECT_TRUE(Bad().empty());
  in_.measured.panel_read_gb_s = 21;
  ExpectCost(Only("panel memory", Severity::kWarning), 40, CostUnit::kDecode, true);
  Model().copy_room_bytes = 5 * kGb;
  ExpectCost(Only("panel memory", Severity::kNote), 4 * kGb, CostUnit::kBytes, false);
  in_.measured.read_gb_s.reset();
  EXPECT_TRUE(Bad().empty());
}

TEST_F(CheckupTest, ReservedHugePages) {
  machine_.Memory(64000000, 50000000,
                  "SwapTotal: 0 kB\nSwapFree: 0 kB\nHugePages_Free: 1000\nHugepagesize: 2048 kB\n");
  ExpectCost(Only("reserved pages", Severity::kNote), 2.1e9, CostUnit::kBytes, false);
}

TEST_F(CheckupTest, Swap) {
  machine_.Memory(64000000, 50000000, "SwapTotal: 8000000 kB\nSwapFree: 7900000 kB\n");
  EXPECT_TRUE(Bad().empty());
  machine_.Memory(64000000, 50000000, "SwapTotal: 8000000 kB\nSwapFree: 1000000 kB\n");
  Only("swap", Severity::kWarning);
  machine_.Memory(64000000, 50000000, "SwapTotal: 8000000 kB\nSwapFree: 8000000 kB\n");
  in_.measured.idle->swapped_in_mb_s = 20;
  Only("swap", Severity::kWarning);
  in_.measured.idle->swapped_in_mb_s = 0;
  machine_.Write("proc/sys/vm/swappiness", "180\n");
  Only("swap", Severity::kNote);
}

TEST_F(CheckupTest, MemoryForTheModel) {
  machine_.Memory(64000000, 5000000);  // 5.12 GB of the 4.5 needed
  Model();
  EXPECT_TRUE(Bad().empty());
  machine_.Memory(64000000, 3000000);  // 3.07 GB
  ExpectCost(Only("memory", Severity::kWarning), 1.43, CostUnit::kSecondsPerToken, false);
  machine_.Memory(4000000, 3000000);
  Only("memory", Severity::kProblem);
}

TEST_F(CheckupTest, LittleMemoryWithoutAModel) {
  machine_.Memory(64000000, 1000000);
  Only("memory", Severity::kWarning);
}

TEST_F(CheckupTest, MemoryLimitOfTheControlGroup) {
  machine_.Write("sys/fs/cgroup/work/memory.max", "4000000000\n");
  EXPECT_TRUE(Bad().empty());
  Model();
  const Finding f = Only("memory limit", Severity::kProblem);
  ExpectCost(f, 0.5, CostUnit::kSecondsPerToken, false);
  EXPECT_NE(f.fix[0].find("--memory 5620m"), std::string::npos) << f.fix[0];
}

TEST_F(CheckupTest, ContainerWithoutMemoryLimit) {
  machine_.Write(".dockerenv", "");
  EXPECT_EQ(Only("memory limit", Severity::kNote).fix[0],
            "docker update --memory 54687m --memory-swap 54687m CONTAINER");
  Model();
  EXPECT_EQ(Only("memory limit", Severity::kNote).fix[0],
            "docker update --memory 5620m --memory-swap 5620m CONTAINER");
  in_.model.reset();
  machine_.Write("sys/fs/cgroup/work/memory.max", "40000000000\n");
  EXPECT_TRUE(Bad().empty());
}

TEST_F(CheckupTest, MemoryPressure) {
  machine_.Write("proc/pressure/memory", "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\n");
  ExpectCost(Only("memory pressure", Severity::kWarning), 12.5, CostUnit::kSpeed, true);
}

TEST_F(CheckupTest, Overcommit) {
  machine_.Write("proc/sys/vm/overcommit_memory", "2\n");
  Only("overcommit", Severity::kWarning);
}

TEST_F(CheckupTest, NumaBalancing) {
  machine_.SecondNode();
  ExpectCost(Only("numa balancing", Severity::kWarning), 6.5, CostUnit::kSpeed, false);
  machine_.Write("proc/sys/kernel/numa_balancing", "0\n");
  EXPECT_TRUE(Bad().empty());
}

TEST_F(CheckupTest, NumaNodeWithoutRoom) {
  machine_.SecondNode();
  machine_.Write("proc/sys/kernel/numa_balancing", "0\n");
  Model().bytes_per_node = {3 * kGb, kGb};
  EXPECT_TRUE(Bad().empty());
  machine_.Write("sys/devices/system/node/node1/meminfo",
                 "Node 1 MemFree:  1000000 kB\nNode 1 Inactive(file):  1000 kB\n");
  const Finding f = Only("numa placement", Severity::kWarning);
  ExpectCost(f, 50, CostUnit::kDecode, false);
  EXPECT_NE(f.found.find("pages of the panel file: 2861 MiB 954 MiB"), std::string::npos)
      << f.found;
}

// ---- Limits ----

TEST_F(CheckupTest, Limits) {
  machine_.Write("proc/self/limits",
                 "Max open files            1024                 4096                 files\n"
                 "Max locked memory         unlimited            unlimited            bytes\n");
  EXPECT_EQ(Only("open files", Severity::kNote).fix[0], "ulimit -n 2112");
  machine_.Write("proc/self/limits",
                 "Max open files            4096                 4096                 files\n"
                 "Max locked memory         8388608              8388608              bytes\n");
  EXPECT_TRUE(Bad().empty()) << "nobody asked for --mlock";
  Model();
  const Finding locked = Only("locked memory", Severity::kNote);
  const unsigned long long mib =
      (in_.model->panel_bytes + in_.model->kv_bytes) / 8 * 9 / (1 << 20) + 1;
  EXPECT_EQ(locked.fix[1], "LimitMEMLOCK=" + std::to_string(mib) + "M in the systemd unit");
  machine_.Write("proc/self/status", "Cpus_allowed_list:\t0-7\nCapEff:\t0000000000004000\n");
  EXPECT_TRUE(Bad().empty()) << "CAP_IPC_LOCK";
  machine_.Write("proc/self/status", "Cpus_allowed_list:\t0-7\nCapEff:\t00000000a80425fb\n");
  Only("locked memory", Severity::kNote);
  in_.model.reset();
  machine_.Write("proc/sys/vm/max_map_count", "100\n");
  Only("map count", Severity::kWarning);
}

// ---- Storage ----

TEST_F(CheckupTest, FileSystems) {
  Place& model = in_.places[0];
  model.file_system = "nfs4";
  model.read_mb_s = 100;
  Model();
  ExpectCost(Only("model disk", Severity::kWarning), 40, CostUnit::kSeconds, true);
  model.file_system = "fuse.something";
  Only("model disk", Severity::kWarning);
  model.file_system = "tmpfs";
  Only("model disk", Severity::kNote);
  model.file_system = "overlay";
  Only("model disk", Severity::kNote);  // slow
  model.read_mb_s = 1000;
  EXPECT_TRUE(Bad().empty());
  in_.places[1].file_system = "nfs";
  Only("cache folder", Severity::kWarning);
}

TEST_F(CheckupTest, CacheFolder) {
  in_.places[1].writable = false;
  Only("cache folder", Severity::kWarning);
  in_.places.pop_back();
  Only("cache folder", Severity::kWarning);
}

TEST_F(CheckupTest, RoomForPanels) {
  Place& cache = in_.places[1];
  cache.free_bytes = kGb / 2;
  Only("cache room", Severity::kNote);
  Model();
  EXPECT_TRUE(Bad().empty()) << "they are there";
  Model().panels_resident_bytes.reset();
  Model().huge_share.reset();
  ExpectCost(Only("cache room", Severity::kWarning), 4.44, CostUnit::kSeconds, false);
}

TEST_F(CheckupTest, NextLoad) {
  Model().panels_resident_bytes = 0;
  Model().huge_share.reset();
  EXPECT_TRUE(Bad().empty()) << "4 s are no finding";
  in_.places[1].read_mb_s = 250;
  ExpectCost(Only("next load", Severity::kNote), 16, CostUnit::kSeconds, false);
}

// ---- What cannot be read ----

TEST_F(CheckupTest, UnreadableFilesAreNotes) {
  const std::pair<const char*, const char*> files[] = {
      {"sys/devices/system/cpu/cpufreq/policy3/scaling_governor", "governor"},
      {"sys/kernel/mm/transparent_hugepage/enabled", "huge pages"},
      {"proc/sys/vm/overcommit_memory", "overcommit"},
      {"proc/sys/vm/max_map_count", "map count"},
      {"proc/stat", "steal"},
      {"proc/cpuinfo", "hidden isa"}};
  for (const auto& [file, check] : files) {
    const std::vector<uint8_t> before = ReadFile(machine_.root() + "/" + file);
    machine_.Remove(file);
    const Finding f = Only(check, Severity::kNote);
    EXPECT_NE(f.found.find(file), std::string::npos) << f.found;
    machine_.Write(file, "?\n");
    // Nonsense is no crash; most of it is told.
    if (std::string(file) != "proc/cpuinfo" && std::string(check) != "governor") {
      Only(check, Severity::kNote);
    } else {
      Bad();
    }
    WriteFile(machine_.root() + "/" + file, before);
  }
  EXPECT_TRUE(Bad().empty());
}

TEST_F(CheckupTest, AnEmptyRootRunsEveryCheck) {
  const TempFolder empty;
  in_.files = SystemFiles(empty.path());
  const size_t all = Checkup(in_).size();
  in_.files = SystemFiles(machine_.root());
  EXPECT_EQ(all, Checkup(in_).size());
}

TEST_F(CheckupTest, TheWorstStandsFirst) {
  machine_.Write("proc/sys/vm/overcommit_memory", "2\n");             // a warning without a number
  machine_.Write("proc/self/status", "Cpus_allowed_list:\t0,1,2\n");  // a note
  in_.measured.idle->busy_cpus = 4;                                   // 50 %
  in_.measured.clock_ghz = 2.4;                                       // 20 %
  machine_.Write("sys/fs/cgroup/work/memory.max", "4000000000\n");
  Model();
  std::vector<std::string> order;
  for (const Finding& f : Bad()) order.push_back(f.check);
  EXPECT_EQ(order,
            (std::vector<std::string>{"memory limit", "load", "clock", "overcommit", "affinity"}));
}

}  // namespace
}  // namespace sluice
