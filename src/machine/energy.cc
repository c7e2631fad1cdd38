#include "src/machine/energy.h"

#include <filesystem>
#include <fstream>
#include <optional>

namespace sluice {
namespace {

std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream in(path);
  uint64_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

}  // namespace

// Zones are called intel-rapl:0 (package 0), intel-rapl:0:1 (a part of it) and so on; intel also on
// AMD. Parts are left out: the package's counter holds them.
EnergyMeter::EnergyMeter(const std::string& root) {
  std::error_code none;
  for (const auto& zone : std::filesystem::directory_iterator(root + "/sys/class/powercap", none)) {
    const std::string name = zone.path().filename();
    const std::string kind = "intel-rapl:";
    if (!name.starts_with(kind) || name.find(':', kind.size()) != std::string::npos) continue;
    const std::string folder = zone.path();
    std::string package;
    std::ifstream(folder + "/name") >> package;
    if (!package.starts_with("package")) continue;  // psys: the whole machine, packages included
    const auto now = NumberIn(folder + "/energy_uj");
    if (!now) continue;
    const auto range = NumberIn(folder + "/max_energy_range_uj");
    packages_.push_back({folder + "/energy_uj", *now, range.value_or(0)});
  }
}

double EnergyMeter::Joules() {
  for (Package& p : packages_) {
    const auto now = NumberIn(p.file);
    if (!now) continue;
    const uint64_t round = *now < p.seen_uj ? p.range_uj : 0;
    if (*now + round >= p.seen_uj) joules_ += 1e-6 * static_cast<double>(*now + round - p.seen_uj);
    p.seen_uj = *now;
  }
  return joules_;
}

}  // namespace sluice
