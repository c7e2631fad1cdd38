// The /proc and /sys of a machine that does not exist, in a folder: a healthy one, of which a test
// spoils one thing.
#ifndef SLUICE_TESTS_MACHINE_MADE_UP_MACHINE_H_
#define SLUICE_TESTS_MACHINE_MADE_UP_MACHINE_H_

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/base/temp_folder.h"

namespace sluice {

// 4 cores with 2 threads each, 3.0 GHz and up to 4.0, 64 GB, one node, no limits.
class MadeUpMachine {
 public:
  MadeUpMachine() {
    Write("proc/cpuinfo",
          "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
          "model name\t: Made Up 9000\nflags\t\t: fpu sse2 constant_tsc avx2 fma avx512f\n"
          "bogomips\t: 6000.00\n");
    Write("proc/self/status", "Name:\tsluice\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
    Write("proc/self/cgroup", "0::/work\n");
    Write("proc/self/mountinfo",
          "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
          "31 22 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    Write("proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max open files            4096                 4096                 files     \n"
          "Max locked memory         unlimited            unlimited            bytes     \n");
    Memory(64000000, 50000000);
    Write("proc/stat", "cpu  1000 0 1000 100000 0 0 0 100 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\n");
    Write("proc/loadavg", "0.02 0.10 0.20 1/100 1234\n");
    Write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
    Write("proc/sys/vm/swappiness", "60\n");
    Write("proc/sys/vm/overcommit_memory", "0\n");
    Write("proc/sys/vm/max_map_count", "65530\n");
    Write("proc/sys/kernel/numa_balancing", "1\n");
    Write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    Write("sys/devices/system/cpu/online", "0-7\n");
    for (int cpu = 0; cpu < 8; ++cpu) {
      const std::string n = std::to_string(cpu % 4);
      Write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
            n + "," + std::to_string(cpu % 4 + 4) + "\n");
      Policy(cpu, "scaling_governor", "performance");
      Policy(cpu, "cpuinfo_max_freq", "4000000");
      Policy(cpu, "cpuinfo_min_freq", "1000000");
    }
    Write("sys/devices/system/cpu/cpufreq/boost", "1\n");
    Write("sys/devices/system/node/node0/meminfo", "Node 0 MemFree: 40000000 kB\n");
  }

  const std::string root() const { return folder_.path(); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_.path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::trunc) << text;
  }
  void Remove(const std::string& path) const { std::filesystem::remove_all(folder_.path(path)); }
  void Memory(unsigned long total_kb, unsigned long available_kb,
              const std::string& more = "") const {
    Write("proc/meminfo", "MemTotal:       " + std::to_string(total_kb) +
                              " kB\nMemAvailable:   " + std::to_string(available_kb) + " kB\n" +
                              (more.empty() ? "SwapTotal: 0 kB\nSwapFree: 0 kB\n" : more));
  }
  void Policy(int cpu, const std::string& file, const std::string& value) const {
    Write("sys/devices/system/cpu/cpufreq/policy" + std::to_string(cpu) + "/" + file, value + "\n");
  }
  void Policies(const std::string& file, const std::string& value) const {
    for (int cpu = 0; cpu < 8; ++cpu) Policy(cpu, file, value);
  }
  void SecondNode() const {
    Write("sys/devices/system/node/node0/meminfo",
          "Node 0 MemFree:  40000000 kB\nNode 0 Inactive(file):  1000 kB\n");
    Write("sys/devices/system/node/node1/meminfo",
          "Node 1 MemFree:  40000000 kB\nNode 1 Inactive(file):  1000 kB\n");
  }
  void CpuMax(const std::string& text) const { Write("sys/fs/cgroup/work/cpu.max", text); }

 private:
  const TempFolder folder_;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_MACHINE_MADE_UP_MACHINE_H_
