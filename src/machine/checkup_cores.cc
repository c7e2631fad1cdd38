// Checks of which cores this process may use, for how long, and who else does.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "src/machine/checkup_checks.h"
#include "src/machine/quota.h"

namespace sluice {
namespace {

constexpr double kBusyWarning = 0.1, kBusyNote = 0.05;  // CPUs
constexpr double kStealWarning = 0.02, kStealNote = 0.005;
constexpr double kThrottledWarning = 0.05, kThrottledNote = 0.01;

std::string CommandOn(const std::vector<int>& cpus) {
  return "taskset -c " + ListText(cpus) + " sluice ...";
}

// What lets a program give way. Its name goes into a command only if it is a plain word.
std::string GiveWay(const BusyProgram& program) {
  const bool plain = std::all_of(program.name.begin(), program.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  const std::string pid = program.processes > 1 && plain ? "$(pgrep -x " + program.name + ")"
                                                         : std::to_string(program.pid);
  return "sudo renice 19 -p " + pid + "  # or stop it";
}

// Share of the time of all CPUs that the hypervisor gave to others, since boot.
Result<double> StealSinceBoot(const SystemFiles& files) {
  ASSIGN_OR_RETURN(const std::string line, files.Field("/proc/stat", "cpu "));
  std::istringstream words(line);
  double all = 0, steal = 0, ticks = 0;
  for (int i = 0; i < 8 && words >> ticks; ++i) {
    all += ticks;
    if (i == 7) steal = ticks;
  }
  return all > 0 ? steal / all : 0;
}

}  // namespace

Finding CheckQuota(const CheckupInput& in) {
  const char* const name = "quota";
  const std::optional<double> quota = CpuQuota(in.files.root());
  if (!quota) return Ok(name, "no limit on CPU time");
  const Result<CpuMap> map = ReadCpuMap(in.files);
  if (!map.ok()) return CannotTell(name, map.status().message());
  const double cores = static_cast<double>(map->cores.size());
  const double threads = std::min(cores, std::max(1.0, std::floor(*quota)));
  Finding f{name, Severity::kOk, Printf("%.3g CPUs for %.0f cores", *quota, cores), {}, {}};
  if (*quota >= cores) return f;
  const double whole = std::min(cores, std::floor(*quota) + 1);
  f.fix = {Printf("docker update --cpus %.0f CONTAINER", whole),
           Printf("sudo systemctl set-property UNIT CPUQuota=%.0f%%", 100 * whole)};
  if (*quota < 1) {
    f.severity = Severity::kWarning;
    f.found += ": one thread, stopped once its time is used up";
    f.cost = Model(100 * (1 - *quota), CostUnit::kSpeed,
                   Printf("it runs %.0f ms of every 100", 100 * *quota));
    return f;
  }
  const double unused = *quota - threads;
  f.found += Printf(": %.0f thread%s", threads, threads == 1 ? "" : "s");
  if (unused > 0.01) f.found += Printf(", %.3g CPUs stay unused", unused);
  // A smaller number of whole CPUs is what somebody asked for; a piece of one is of no use.
  f.severity = unused >= 0.25 ? Severity::kWarning : Severity::kNote;
  f.cost = unused >= 0.25 ? Model(100 * unused / *quota, CostUnit::kPrefill,
                                  "threads are whole: more than the quota would be stopped")
                          : Model(100 * (1 - threads / cores), CostUnit::kPrefill,
                                  Printf("%.0f threads instead of %.0f", threads, cores));
  return f;
}

Finding CheckThrottling(const CheckupInput& in) {
  const char* const name = "throttling";
  if (!CpuQuota(in.files.root())) return Ok(name, "no quota");
  const double share = CpuThrottledShare(in.files.root());
  const uint64_t now = in.measured.idle ? in.measured.idle->throttled : 0;
  if (share < kThrottledNote && now == 0) return Ok(name, "the quota stopped nobody so far");
  const bool often = share >= kThrottledWarning || now > 0;
  return {name,
          often ? Severity::kWarning : Severity::kNote,
          Printf("the quota stopped this control group in %.1f %% of its periods", 100 * share) +
              (now > 0 ? ", and does now" : ""),
          Measure(100 * share, CostUnit::kSpeed,
                  "periods with a stop, counted by the kernel since the group was made"),
          {"fewer threads (--threads), nothing else in the same container, or a larger quota"}};
}

Finding CheckAffinity(const CheckupInput& in) {
  const char* const name = "affinity";
  const Result<CpuMap> map = ReadCpuMap(in.files);
  if (!map.ok()) return CannotTell(name, map.status().message());
  const std::string found =
      Printf("%zu of %zu cores, CPUs ", map->cores.size(), map->machine_cores) +
      ListText(map->allowed);
  if (map->cores.size() == map->machine_cores) return Ok(name, found);
  return {name,
          Severity::kNote,
          found,
          Model(100 * (1 - static_cast<double>(map->cores.size()) /
                               static_cast<double>(map->machine_cores)),
                CostUnit::kPrefill, "as many cores fewer"),
          {CommandOn(map->online),
           "docker update --cpuset-cpus " + ListText(map->online) + " CONTAINER"}};
}

Finding CheckSmt(const CheckupInput& in) {
  const char* const name = "smt";
  const Result<CpuMap> map = ReadCpuMap(in.files);
  if (!map.ok()) return CannotTell(name, map.status().message());
  if (map->threads_per_core < 2) {
    return Ok(name, InVirtualMachine(in.files) ? "one thread a core, as the hypervisor shows them"
                                               : "one thread a core");
  }
  const size_t wanted = std::min(map->allowed.size(), map->machine_cores);
  if (map->cores.size() >= wanted) {
    return Ok(name, Printf("%zu threads a core; sluice takes one", map->threads_per_core));
  }
  // As many CPUs of the mask as a better mask would give cores.
  std::vector<int> better;
  std::vector<int> taken;
  for (const int cpu : map->online) {
    if (better.size() == wanted) break;
    if (std::find(taken.begin(), taken.end(), cpu) != taken.end()) continue;
    better.push_back(cpu);
    const Result<std::vector<int>> siblings = in.files.List(
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    if (siblings.ok()) taken.insert(taken.end(), siblings->begin(), siblings->end());
  }
  return {name,
          Severity::kWarning,
          Printf("the %zu allowed CPUs are threads of only %zu core%s", map->allowed.size(),
                 map->cores.size(), map->cores.size() == 1 ? "" : "s"),
          Model(100 * (1 - static_cast<double>(map->cores.size()) / static_cast<double>(wanted)),
                CostUnit::kPrefill, Printf("%zu cores would do", wanted)),
          {CommandOn(better), "docker update --cpuset-cpus " + ListText(better) + " CONTAINER"}};
}

Finding CheckCoreKinds(const CheckupInput& in) {
  const char* const name = "core kinds";
  const Result<std::vector<int>> fast = in.files.List("/sys/devices/cpu_core/cpus");
  const Result<std::vector<int>> slow = in.files.List("/sys/devices/cpu_atom/cpus");
  std::vector<int> fast_cpus = fast.ok() ? *fast : std::vector<int>();
  std::vector<int> slow_cpus = slow.ok() ? *slow : std::vector<int>();
  const Result<CpuMap> map = ReadCpuMap(in.files);
  if (!map.ok()) return CannotTell(name, map.status().message());
  if (fast_cpus.empty()) {  // ARM: relative speeds
    double most = 0;
    std::vector<std::pair<double, int>> capacities;
    for (const int cpu : map->online) {
      const Result<double> capacity =
          in.files.Number("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity");
      if (!capacity.ok()) continue;
      capacities.emplace_back(*capacity, cpu);
      most = std::max(most, *capacity);
    }
    for (const auto& [capacity, cpu] : capacities) {
      (capacity >= 0.9 * most ? fast_cpus : slow_cpus).push_back(cpu);
    }
  }
  if (slow_cpus.empty() || fast_cpus.empty()) return Ok(name, "all cores alike");
  const auto allowed = [&](const std::vector<int>& cpus) {
    return std::count_if(cpus.begin(), cpus.end(), [&](int cpu) {
      return std::binary_search(map->allowed.begin(), map->allowed.end(), cpu);
    });
  };
  const auto fast_allowed = allowed(fast_cpus), slow_allowed = allowed(slow_cpus);
  if (fast_allowed == 0) {
    return {name,
            Severity::kWarning,
            "only slow cores are allowed: CPUs " + ListText(map->allowed),
            Model(50, CostUnit::kPrefill, "an E core does about half the work of a P core"),
            {CommandOn(fast_cpus)}};
  }
  return Ok(name, Printf("%td CPUs of fast cores and %td of slow ones; work is divided by their "
                         "measured speed",
                         fast_allowed, slow_allowed));
}

Finding CheckLoad(const CheckupInput& in) {
  const char* const name = "load";
  const double cores = UsableCores(in.files);
  if (!in.measured.idle) {
    const Result<double> load = in.files.Number("/proc/loadavg");
    if (!load.ok()) return CannotTell(name, load.status().message());
    const std::string found = Printf("load average %.2f on %.0f cores", *load, cores);
    if (*load < 0.5) return Ok(name, found);
    return {name,
            Severity::kWarning,
            found,
            Model(100 * std::min(*load, cores) / (cores + *load), CostUnit::kSpeed,
                  "a fair share of the time for as many others"),
            {"stop or renice (renice 19 -p PID) what runs beside it"}};
  }
  const IdleWindow& idle = *in.measured.idle;
  if (idle.busy_cpus < kBusyNote) return Ok(name, "nothing else runs");
  std::string found = Printf("%.1f CPUs are busy with other programs", idle.busy_cpus);
  const Result<std::string> waited = in.files.Field("/proc/pressure/cpu", "some avg10=");
  if (waited.ok()) {
    found += Printf(", somebody waits for one %.0f %% of the time",
                    std::strtod(waited->c_str(), nullptr));
  }
  for (size_t i = 0; i < std::min<size_t>(idle.programs.size(), 3); ++i) {
    const BusyProgram& p = idle.programs[i];
    found += (i == 0 ? ": " : ", ") + p.name;
    found += p.processes > 1 ? Printf(" (%d processes, %.1f)", p.processes, p.cpus)
                             : Printf(" (pid %d, %.1f)", p.pid, p.cpus);
  }
  const double lost = std::min(idle.busy_cpus, cores) / (cores + idle.busy_cpus);
  Finding f{
      name,
      idle.busy_cpus >= kBusyWarning ? Severity::kWarning : Severity::kNote,
      found,
      Measure(100 * lost, CostUnit::kSpeed,
              Printf("busy time over %.1f s, shared fairly with one thread a core", idle.seconds)),
      {}};
  f.fix = {idle.programs.empty() ? "stop what runs beside it" : GiveWay(idle.programs[0])};
  return f;
}

Finding CheckSteal(const CheckupInput& in) {
  const char* const name = "steal";
  const Result<double> boot = StealSinceBoot(in.files);
  if (!boot.ok()) return CannotTell(name, boot.status().message());
  double share = *boot;
  std::string found =
      Printf("the hypervisor gave %.1f %% of the CPU time to others since boot", 100 * *boot);
  std::string how = "/proc/stat since boot";
  if (in.measured.idle) {
    // In a window in which sluice rests there is little to steal: the larger of the two.
    const double now = in.measured.idle->steal_cpus / UsableCores(in.files);
    found += Printf(", %.1f %% now", 100 * now);
    if (now > share) {
      share = now;
      how = Printf("/proc/stat over %.1f s", in.measured.idle->seconds);
    }
  }
  if (share < kStealNote) return Ok(name, "none");
  return {name,
          share >= kStealWarning ? Severity::kWarning : Severity::kNote,
          found,
          Measure(100 * share, CostUnit::kSpeed, how),
          {"a machine with dedicated CPUs, or a quieter host"}};
}

}  // namespace sluice
