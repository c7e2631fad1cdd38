#include "src/machine/checkup.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <sstream>
#include <tuple>

#include "src/machine/checkup_checks.h"

namespace sluice {
namespace {

constexpr Check kChecks[] = {
    CheckGovernor,       CheckBoost,      CheckClock,         CheckThermal,
    CheckQuota,          CheckThrottling, CheckAffinity,      CheckSmt,
    CheckCoreKinds,      CheckLoad,       CheckSteal,         CheckSimdTarget,
    CheckHiddenIsa,      CheckHugePages,  CheckPanelPages,    CheckPanelMemory,
    CheckReservedPages,  CheckSwap,       CheckMemory,        CheckMemoryLimit,
    CheckMemoryPressure, CheckOvercommit, CheckNumaBalancing, CheckNumaPlacement,
    CheckLockedMemory,   CheckOpenFiles,  CheckMapCount,      CheckModelDisk,
    CheckCacheFolder,    CheckCacheRoom,  CheckFirstLoad,
};

// Percentages are compared with each other, whatever they are of.
int UnitRank(CostUnit unit) {
  switch (unit) {
    case CostUnit::kNone:
      return 0;
    case CostUnit::kBytes:
      return 1;
    case CostUnit::kSeconds:
      return 2;
    case CostUnit::kPrefill:
    case CostUnit::kDecode:
    case CostUnit::kSpeed:
      return 3;
    case CostUnit::kSecondsPerToken:
      return 4;
  }
  return 0;
}

}  // namespace

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return "ok";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kProblem:
      return "problem";
  }
  return "";
}

const char* CostUnitName(CostUnit unit) {
  switch (unit) {
    case CostUnit::kNone:
      return "";
    case CostUnit::kBytes:
      return "bytes";
    case CostUnit::kSeconds:
      return "s";
    case CostUnit::kPrefill:
      return "% of prefill speed";
    case CostUnit::kDecode:
      return "% of decode speed";
    case CostUnit::kSpeed:
      return "% of speed";
    case CostUnit::kSecondsPerToken:
      return "s a token";
  }
  return "";
}

bool Worse(const Finding& a, const Finding& b) {
  const auto key = [](const Finding& f) {
    return std::make_tuple(static_cast<int>(f.severity), UnitRank(f.cost.unit), f.cost.value);
  };
  return key(a) > key(b);
}

std::vector<Finding> Checkup(const CheckupInput& input) {
  std::vector<Finding> findings;
  for (const Check check : kChecks) findings.push_back(check(input));
  std::stable_sort(findings.begin(), findings.end(), Worse);
  return findings;
}

Finding Ok(const char* check, std::string found) {
  return {check, Severity::kOk, std::move(found), {}, {}};
}

Finding Note(const char* check, std::string found) {
  return {check, Severity::kNote, std::move(found), {}, {}};
}

Finding CannotTell(const char* check, const std::string& why) {
  return Note(check, "cannot tell: " + why);
}

Cost Measure(double value, CostUnit unit, std::string how) {
  return {value, unit, true, std::move(how)};
}

Cost Model(double value, CostUnit unit, std::string how) {
  return {value, unit, false, std::move(how)};
}

std::string Printf(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

std::string Size(uint64_t bytes) {
  constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
  const auto b = static_cast<double>(bytes);
  if (b >= 10 * kGiB) return Printf("%.1f GiB", b / kGiB);
  return b >= kMiB || b == 0 ? Printf("%.0f MiB", b / kMiB) : Printf("%.0f KiB", b / kKiB);
}

Result<CpuMap> ReadCpuMap(const SystemFiles& files) {
  const std::string folder = "/sys/devices/system/cpu/";
  CpuMap map;
  ASSIGN_OR_RETURN(map.online, files.List(folder + "online"));
  ASSIGN_OR_RETURN(const std::string mask, files.Field("/proc/self/status", "Cpus_allowed_list:"));
  const std::vector<int> allowed = ParseList(mask);
  std::set_intersection(allowed.begin(), allowed.end(), map.online.begin(), map.online.end(),
                        std::back_inserter(map.allowed));
  if (map.allowed.empty()) {
    return Status(StatusCode::kCorrupt, "/proc/self/status: expected allowed CPUs among " +
                                            ListText(map.online) + ", found '" + mask + "'");
  }
  // A CPU without a list of siblings is a core of its own.
  std::vector<std::vector<int>> seen;
  for (const int cpu : map.online) {
    const Result<std::vector<int>> list =
        files.List(folder + "cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    const std::vector<int> siblings = list.ok() ? *list : std::vector<int>{cpu};
    if (std::find(seen.begin(), seen.end(), siblings) != seen.end()) continue;
    seen.push_back(siblings);
    map.threads_per_core = std::max(map.threads_per_core, siblings.size());
    const bool mine = std::any_of(siblings.begin(), siblings.end(), [&](int sibling) {
      return std::binary_search(map.allowed.begin(), map.allowed.end(), sibling);
    });
    if (mine) map.cores.push_back(siblings);
  }
  map.machine_cores = seen.size();
  return map;
}

double UsableCores(const SystemFiles& files) {
  const Result<CpuMap> map = ReadCpuMap(files);
  return map.ok() ? static_cast<double>(map->cores.size()) : 1;
}

bool HasCpuFlag(const SystemFiles& files, const std::string& flag) {
  for (const char* key : {"flags", "Features"}) {
    const Result<std::string> flags = files.Field("/proc/cpuinfo", key);
    if (!flags.ok()) continue;
    std::istringstream words(*flags);
    for (std::string word; words >> word;) {
      if (word == flag) return true;
    }
  }
  return false;
}

bool InVirtualMachine(const SystemFiles& files) { return HasCpuFlag(files, "hypervisor"); }

const Place* FindPlace(const CheckupInput& in, const std::string& what) {
  for (const Place& place : in.places) {
    if (place.what == what) return &place;
  }
  return nullptr;
}

}  // namespace sluice
