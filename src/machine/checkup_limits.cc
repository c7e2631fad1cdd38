// Checks of limits that a process meets late: locked memory, files, maps.
#include <cstdlib>
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

// CAP_IPC_LOCK, with which the kernel does not ask the limit of locked memory.
bool MayLockAll(const SystemFiles& files) {
  constexpr int kIpcLock = 14;
  const Result<std::string> text = files.Field("/proc/self/status", "CapEff:");
  return text.ok() && (std::strtoull(text->c_str(), nullptr, 16) >> kIpcLock & 1) != 0;
}

}  // namespace

Finding CheckLockedMemory(const CheckupInput& in) {
  const char* const name = "locked memory";
  const Result<std::optional<double>> limit = Limit(in.files, "Max locked memory");
  if (!limit.ok()) return CannotTell(name, limit.status().message());
  if (!*limit) return Ok(name, "no limit");
  if (MayLockAll(in.files)) return Ok(name, "no limit with CAP_IPC_LOCK");
  const auto bytes = static_cast<uint64_t>(**limit);
  const uint64_t need = in.model ? in.model->panel_bytes + in.model->kv_bytes : 0;
  if (need <= bytes) return Ok(name, Size(bytes) + " may be locked");
  const uint64_t wanted_mib = ((need + need / 8) >> 20) + 1;  // and the buffers
  const auto mib = static_cast<unsigned long long>(wanted_mib);
  return {name,
          Severity::kNote,
          "--mlock would need " + Size(need) + ", the limit is " + Size(bytes),
          {},
          {Printf("ulimit -l %llu (in KiB; the hard limit: /etc/security/limits.conf)", mib << 10),
           Printf("LimitMEMLOCK=%lluM in the systemd unit", mib),
           Printf("docker run --ulimit memlock=%llu, or --cap-add IPC_LOCK", mib << 20)}};
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
