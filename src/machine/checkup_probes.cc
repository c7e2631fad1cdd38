#include "src/machine/checkup_probes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "quant/format.h"
#include "simd/amx.h"
#include "src/base/arena.h"
#include "src/base/printable.h"
#include "src/machine/bandwidth.h"
#include "src/machine/clock.h"
#include "src/machine/cpu_time.h"
#include "src/machine/huge_pages.h"
#include "src/machine/kernel_rate.h"
#include "src/machine/memory_use.h"
#include "src/machine/simd_target.h"
#include "src/machine/topology.h"

namespace sluice {
namespace {

constexpr double kIdle_s = 0.4, kRead_s = 0.25, kMultiply_s = 0.1;
constexpr size_t kMegabyte = 1 << 20;
constexpr double kBusyProgram = 0.05;  // CPUs
constexpr int kCollapse = 25;          // MADV_COLLAPSE, which glibc 2.36 does not name yet

using Ticks = std::map<int, std::pair<std::string, double>>;

// CPU time of all programs: /proc/PID/stat reads "pid (name) state ppid ... utime stime", the name
// with whatever the program likes in it.
Ticks ProgramTicks(const SystemFiles& files) {
  Ticks ticks;
  for (const std::string& pid : files.Numbered("/proc", "")) {
    const Result<std::string> stat = files.Text("/proc/" + pid + "/stat");
    if (!stat.ok()) continue;  // it has ended
    const size_t open = stat->find('('), close = stat->rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open) continue;
    unsigned long user = 0, system = 0;
    if (std::sscanf(stat->c_str() + close + 1,
                    " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) {
      continue;
    }
    ticks[std::atoi(pid.c_str())] = {Printable(stat->substr(open + 1, close - open - 1)),
                                     static_cast<double>(user + system)};
  }
  return ticks;
}

double SwappedIn(const SystemFiles& files) {
  const Result<double> pages = files.FieldNumber("/proc/vmstat", "pswpin ");
  return pages.ok() ? *pages * static_cast<double>(sysconf(_SC_PAGESIZE)) * 1e-6 : 0;
}

uint64_t ThermalEvents(const SystemFiles& files) {
  uint64_t events = 0;
  for (const std::string& cpu : files.Numbered("/sys/devices/system/cpu", "cpu")) {
    for (const char* counter : {"core_throttle_count", "package_throttle_count"}) {
      const Result<double> n =
          files.Number("/sys/devices/system/cpu/" + cpu + "/thermal_throttle/" + counter);
      if (n.ok()) events += static_cast<uint64_t>(*n);
    }
  }
  return events;
}

// Anonymous memory of one kind of pages, touched by the workers that read it.
class Pages {
 public:
  Pages(ThreadTeam& team, size_t bytes, bool huge) {
    Result<Arena> arena = Arena::Create(bytes, huge);
    if (!arena.ok()) return;
    arena_ = *std::move(arena);
    team.Run([&](Worker& worker) { worker.TouchShare(arena_.data(), bytes, 2 * kMegabyte); });
  }
  const uint8_t* data() const { return arena_.data(); }
  // True: all of it is in 2 MB pages now.
  bool Collapse() const { return madvise(arena_.data(), arena_.size(), kCollapse) == 0; }

 private:
  Arena arena_;
};

}  // namespace

IdleWindow WatchIdle(double seconds) {
  using Clock = std::chrono::steady_clock;
  const SystemFiles files;
  const auto start = Clock::now();
  const CpuTime before = ReadCpuTime();
  const double swapped = SwappedIn(files);
  const Ticks ticks = ProgramTicks(files);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const Ticks later = ProgramTicks(files);
  const CpuTime after = ReadCpuTime();
  IdleWindow window;
  window.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double own = after.own_s - before.own_s;
  window.busy_cpus = std::max(0.0, after.busy_s - before.busy_s - own) / window.seconds;
  window.steal_cpus = (after.steal_s - before.steal_s) / window.seconds;
  window.throttled = after.throttled - before.throttled;
  window.swapped_in_mb_s = (SwappedIn(files) - swapped) / window.seconds;
  const double hertz = static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  std::map<std::string, BusyProgram> programs;
  std::map<std::string, double> busiest;
  for (const auto& [pid, program] : later) {
    const auto was = ticks.find(pid);
    const double used = program.second - (was == ticks.end() ? 0 : was->second.second);
    if (pid == getpid() || used <= 0) continue;
    BusyProgram& p = programs[program.first];
    p.name = program.first;
    p.cpus += used / hertz / window.seconds;
    ++p.processes;
    if (used > busiest[p.name]) {
      busiest[p.name] = used;
      p.pid = pid;
    }
  }
  for (auto& [name, program] : programs) {
    if (program.cpus >= kBusyProgram) window.programs.push_back(std::move(program));
  }
  std::sort(window.programs.begin(), window.programs.end(),
            [](const BusyProgram& a, const BusyProgram& b) { return a.cpus > b.cpus; });
  return window;
}

std::optional<double> MeasureHugePageGain(ThreadTeam& team) {
  const size_t bytes = std::clamp<size_t>(ThisMachine().l3_bytes, 160 * kMegabyte, 512 * kMegabyte);
  if (AvailableMemoryBytes() / 4 < 2 * bytes) return std::nullopt;
  const Pages small(team, bytes, false), huge(team, bytes, true);
  if (small.data() == nullptr || huge.data() == nullptr) return std::nullopt;
  const Result<std::string> mode =
      SystemFiles().Chosen("/sys/kernel/mm/transparent_hugepage/enabled");
  const bool never = !mode.ok() || *mode == "never";
  if (!huge.Collapse() && never) return std::nullopt;
  return HugePageGain(team, {small.data(), bytes}, {huge.data(), bytes});
}

std::optional<double> MeasureTargetGain(ThreadTeam& team) {
  const std::string chosen = SimdTarget();
  const std::vector<std::string> usable = UsableSimdTargets();
  const Format* const format = FindFormat("Q4_0");
  if (usable.empty() || usable[0] == chosen || format == nullptr) return std::nullopt;
  KernelMatrix matrix;
  matrix.format = format;
  matrix.panels = true;
  matrix.rows = 1024;
  matrix.k = 2048;
  Result<Arena> weights = Arena::Create(
      matrix.rows / kPanelRows * (matrix.k / format->block_values) * format->panel_block_bytes);
  if (!weights.ok()) return std::nullopt;
  matrix.weights = weights->data();
  double rates[2] = {};
  for (int i = 0; i < 2; ++i) {
    if (!ChooseSimdTarget(i == 0 ? chosen : usable[0]).ok()) return std::nullopt;
    const Result<double> rate = MeasureMatMulRate(team, 0, matrix, 64, kMultiply_s);
    if (rate.ok()) rates[i] = *rate;
  }
  if (!ChooseSimdTarget(chosen).ok() || rates[0] <= 0 || rates[1] <= 0) return std::nullopt;
  return rates[1] / rates[0];
}

Measured MeasureForCheckup(ThreadTeam& team, uint64_t read_bytes) {
  Measured m;
  m.read_bytes = read_bytes;
  m.idle = WatchIdle(kIdle_s);
  const SystemFiles files;
  const uint64_t events = ThermalEvents(files);
  // The largest of three: others only ever take time away.
  double ghz = 0;
  for (int i = 0; i < 3; ++i) ghz = std::max(ghz, MeasureClockGhz(team));
  if (ghz > 0) m.clock_ghz = ghz;
  const Result<double> read = MeasureReadBandwidth(team, kRead_s, 0, read_bytes);
  if (read.ok()) m.read_gb_s = *read;
  m.huge_page_gain = MeasureHugePageGain(team);
  m.target_gain = MeasureTargetGain(team);
  m.thermal_events = ThermalEvents(files) - events;
  return m;
}

SimdFacts ReadSimdFacts() {
  SimdFacts facts;
  facts.running = SimdTarget();
  const std::vector<std::string> usable = UsableSimdTargets();
  facts.best_built = usable.empty() ? facts.running : usable[0];
  facts.best_of_cpu = BestSimdTargetOfCpu();
  facts.amx = HasAmx();
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    facts.cpu_has_avx512 = (b >> 16 & 1) != 0;
    facts.cpu_has_amx = (d >> 24 & 3) == 3;  // tiles and int8
  }
#endif
  return facts;
}

}  // namespace sluice
