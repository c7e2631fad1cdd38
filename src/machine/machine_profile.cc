#include "src/machine/machine_profile.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "src/machine/profile_file.h"
#include "src/machine/simd_target.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr double kEnough = 0.97;
constexpr const char* kSection = "profiles";
constexpr int kMostThreads = 1024;  // of a ThreadTeam

template <class Rate>
int FewestNearBest(const std::vector<ThreadRates>& rates, const Rate& rate) {
  double best = 0;
  for (const ThreadRates& r : rates) best = std::max(best, rate(r));
  for (const ThreadRates& r : rates) {
    if (rate(r) >= kEnough * best) return r.threads;
  }
  return 1;
}

json::object ToJson(const MachineProfile& p) {
  json::array rates;
  for (const ThreadRates& r : p.rates) {
    rates.push_back({{"threads", r.threads}, {"read_gb_s", r.read_gb_s}, {"gmac_s", r.gmac_s}});
  }
  return {{"key", p.key},
          {"decode_threads", p.decode_threads},
          {"prefill_threads", p.prefill_threads},
          {"barrier_us", p.barrier_us},
          {"kind_rates", json::array(p.kind_rates.begin(), p.kind_rates.end())},
          {"rates", std::move(rates)}};
}

// The reader's answer to anything unexpected is a value that Sane refuses.
double Number(const json::value* v) {
  if (v == nullptr || !v->is_number()) return -1;
  return v->is_double()  ? v->get_double()
         : v->is_int64() ? static_cast<double>(v->get_int64())
                         : -1;
}
double Number(const json::object& o, const char* name) { return Number(o.if_contains(name)); }
int Count(const json::object& o, const char* name) {
  const double n = Number(o, name);
  return n >= 1 && n <= kMostThreads && n == std::floor(n) ? static_cast<int>(n) : 0;
}
const json::array* ArrayOf(const json::object& o, const char* name) {
  const json::value* v = o.if_contains(name);
  return v == nullptr ? nullptr : v->if_array();
}

bool Sane(const MachineProfile& p) {
  const auto good = [](double x) { return std::isfinite(x) && x >= 0; };
  bool sane = p.decode_threads > 0 && p.prefill_threads > 0 && good(p.barrier_us);
  for (const ThreadRates& r : p.rates) {
    sane = sane && r.threads > 0 && good(r.read_gb_s) && good(r.gmac_s);
  }
  for (const double rate : p.kind_rates) sane = sane && good(rate) && rate > 0 && rate <= 100;
  return sane;
}

Result<MachineProfile> FromJson(const json::object& o, const std::string& path) {
  MachineProfile p;
  p.key = std::string(o.at("key").get_string());
  p.decode_threads = Count(o, "decode_threads");
  p.prefill_threads = Count(o, "prefill_threads");
  p.barrier_us = Number(o, "barrier_us");
  const json::array *kinds = ArrayOf(o, "kind_rates"), *rates = ArrayOf(o, "rates");
  if (kinds != nullptr) {
    for (const json::value& v : *kinds) p.kind_rates.push_back(Number(&v));
  }
  if (rates != nullptr) {
    for (const json::value& v : *rates) {
      const json::object* r = v.if_object();
      p.rates.push_back(r == nullptr ? ThreadRates{.threads = 0}
                                     : ThreadRates{Count(*r, "threads"), Number(*r, "read_gb_s"),
                                                   Number(*r, "gmac_s")});
    }
  }
  if (!Sane(p)) {
    return Status(StatusCode::kCorrupt, path +
                                            ": a machine profile with impossible numbers; "
                                            "remove the file or run sluice bench --calibrate");
  }
  return p;
}

}  // namespace

std::string ProfileKey(const Topology& machine) {
  std::string key = machine.cpu_name + ", " + std::to_string(machine.cores.size()) + " cores, " +
                    std::to_string(machine.cpus) + " CPUs, quota ";
  char quota[32] = "none";
  if (machine.cpu_quota) std::snprintf(quota, sizeof(quota), "%.2f", *machine.cpu_quota);
  key += quota;
  key += ", sluice " SLUICE_VERSION;
  for (const std::string& target : UsableSimdTargets()) key += " " + target;
  return key + ", on " + SimdTarget();
}

bool WorthCalibrating(const Topology& machine) {
  return machine.DefaultThreads() > 2 || (machine.DefaultThreads() > 1 && machine.core_kinds > 1);
}

MachineProfile DefaultProfile(const Topology& machine) {
  MachineProfile p;
  p.key = ProfileKey(machine);
  p.decode_threads = p.prefill_threads = machine.DefaultThreads();
  return p;
}

void ChooseThreads(MachineProfile& profile) {
  if (profile.rates.empty()) return;
  profile.decode_threads =
      FewestNearBest(profile.rates, [](const ThreadRates& r) { return r.read_gb_s; });
  profile.prefill_threads =
      FewestNearBest(profile.rates, [](const ThreadRates& r) { return r.gmac_s; });
}

std::vector<double> WorkerRates(const Topology& machine, const MachineProfile& profile,
                                int threads) {
  std::vector<double> rates;
  if (profile.kind_rates.size() < 2 || static_cast<size_t>(threads) != machine.cores.size()) {
    return rates;
  }
  for (const Core& core : machine.cores) {
    const size_t kind = static_cast<size_t>(core.kind);
    if (kind >= profile.kind_rates.size()) return {};
    rates.push_back(profile.kind_rates[kind]);
  }
  return rates;
}

Result<MachineProfile> ReadProfile(const std::string& path, const std::string& key) {
  ASSIGN_OR_RETURN(const json::object entry, ReadMachineEntry(path, kSection, key));
  return FromJson(entry, path);
}

Status WriteProfile(const std::string& path, const MachineProfile& profile) {
  return WriteMachineEntry(path, kSection, ToJson(profile));
}

MachineProfile ProfileOfThisMachine() {
  const Topology& machine = ThisMachine();
  const Result<std::string> path = MachineFilePath();
  if (path.ok()) {
    Result<MachineProfile> kept = ReadProfile(*path, ProfileKey(machine));
    if (kept.ok()) return *std::move(kept);
  }
  if (!WorthCalibrating(machine)) return DefaultProfile(machine);
  Result<MachineProfile> measured = Calibrate();
  if (!measured.ok()) return DefaultProfile(machine);
  if (path.ok()) (void)WriteProfile(*path, *measured);  // an unwritable folder costs 2 s next time
  return *std::move(measured);
}

Result<MachineProfile> Recalibrate() {
  ASSIGN_OR_RETURN(const std::string path, MachineFilePath());
  ASSIGN_OR_RETURN(MachineProfile profile, Calibrate());
  RETURN_IF_ERROR(WriteProfile(path, profile));
  return profile;
}

}  // namespace sluice
