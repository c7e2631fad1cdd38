// Checks of limits that a process meets late: locked memory, files, maps.
#include <sstream>

#include "src/machine/checkup_checks.h"

namespace sluice {
namespace {

constexpr double kOtherFiles = 64;      // that serve has open beside connections
constexpr double kMapsOfAModel = 2000;  // parts, threads, arenas, libraries: with a margin

// The soft limit; no value: unlimited.
Result<std::optional<double>> Limit(const SystemFiles& files, const char* name) {
  ASSIGN_OR_RETURN(const std::string text, files.Field("/proc/self/limits", name));
  double value = 0;
  if (std::istringstream(text) >> value) return std::optional<double>(value);
  return std::optional<double>();
}

}  // namespace

Finding CheckLockedMemory(const CheckupInput& in) {
  const char* const name = "locked memory";
  const Result<std::optional<double>> limit = Limit(in.files, "Max locked memory");
  if (!limit.ok()) return CannotTell(name, limit.status().message());
  if (!*limit) return Ok(name, "no limit");
  const auto bytes = static_cast<uint64_t>(**limit);
  const uint64_t need = in.model ? in.model->panel_bytes + in.model->kv_bytes : 0;
  if (need <= bytes) return Ok(name, Size(bytes) + " may be locked");
  return {name,
          Severity::kNote,
          "--mlock would need " + Size(need) + ", the limit is " + Size(bytes),
          {},
          {"ulimit -l unlimited (hard limit: /etc/security/limits.conf)",
           "LimitMEMLOCK=infinity in the systemd unit", "docker run --ulimit memlock=-1"}};
}

Finding CheckOpenFiles(const CheckupInput& in) {
  const char* const name = "open files";
  const Result<std::optional<double>> limit = Limit(in.files, "Max open files");
  if (!limit.ok()) return CannotTell(name, limit.status().message());
  if (!*limit) return Ok(name, "no limit");
  const double need = static_cast<double>(in.connections) + kOtherFiles;
  if (in.connections == 0 || **limit >= need) return Ok(name, Printf("%.0f", **limit));
  return {
      name,
      Severity::kNote,
      Printf("%.0f may be open; `sluice serve` takes up to %zu connections", **limit,
             in.connections),
      {},
      {Printf("ulimit -n %.0f", need), "LimitNOFILE= in the systemd unit",
       Printf("sluice serve --max-connections %.0f", **limit > 128 ? **limit - kOtherFiles : 64)}};
}

Finding CheckMapCount(const CheckupInput& in) {
  const char* const name = "map count";
  const Result<double> count = in.files.Number("/proc/sys/vm/max_map_count");
  if (!count.ok()) return CannotTell(name, count.status().message());
  const std::string found = Printf("vm.max_map_count=%.0f", *count);
  if (*count >= kMapsOfAModel) return Ok(name, found);
  return {name,
          Severity::kWarning,
          found + ": loading may fail",
          {},
          {"sudo sysctl vm.max_map_count=65530"}};
}

}  // namespace sluice
