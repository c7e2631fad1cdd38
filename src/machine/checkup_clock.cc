// Checks of how fast the cores' clock may run, and does.
#include <algorithm>
#include <cstdlib>

#include "src/machine/checkup_checks.h"

namespace sluice {
namespace {

constexpr char kCpufreq[] = "/sys/devices/system/cpu/cpufreq/";
constexpr double kSlowClock = 0.9;  // of the nominal clock

// The largest value of this file over the policies, in GHz; 0: none has it.
double LargestGhz(const SystemFiles& files, const char* file) {
  double most = 0;
  for (const std::string& policy : files.Numbered(kCpufreq, "policy")) {
    const Result<double> khz = files.Number(kCpufreq + policy + "/" + file);
    if (khz.ok()) most = std::max(most, *khz * 1e-6);
  }
  return most;
}

// What the CPU is sold with, GHz; 0 unknown. On x86 the time stamp counter runs at that clock, and
// BogoMIPS is twice the counter's MHz.
double NominalGhz(const SystemFiles& files) {
  if (const double base = LargestGhz(files, "base_frequency"); base > 0) return base;
  if (!HasCpuFlag(files, "constant_tsc")) return 0;
  Result<std::string> text = files.Field("/proc/cpuinfo", "bogomips");
  if (!text.ok() || text->find(": ") == std::string::npos) return 0;
  return std::strtod(text->c_str() + text->find(": ") + 2, nullptr) / 2000;
}

// What is lost to a clock that is below the fastest: measured where it was, else from the lowest.
Cost ClockCost(const CheckupInput& in) {
  const double most = LargestGhz(in.files, "cpuinfo_max_freq");
  const double least = LargestGhz(in.files, "cpuinfo_min_freq");
  if (most <= 0) return {};
  if (const auto now = in.measured.clock_ghz) {
    return Measure(100 * std::max(0.0, 1 - *now / most), CostUnit::kPrefill,
                   Printf("%.2f GHz under load, %.2f at most", *now, most));
  }
  if (least <= 0) return {};
  return Model(100 * (1 - least / most), CostUnit::kPrefill,
               Printf("it may stay at %.2f GHz of %.2f", least, most));
}

}  // namespace

Finding CheckGovernor(const CheckupInput& in) {
  const char* const name = "governor";
  const std::vector<std::string> policies = in.files.Numbered(kCpufreq, "policy");
  if (policies.empty()) {
    return InVirtualMachine(in.files) ? Ok(name, "the host sets the clock (no cpufreq here)")
                                      : Ok(name, "no cpufreq: the firmware sets the clock");
  }
  size_t slow = 0, saving = 0;
  std::string slow_word, saving_word, any;
  for (const std::string& policy : policies) {
    const Result<std::string> governor = in.files.Text(kCpufreq + policy + "/scaling_governor");
    if (!governor.ok()) return CannotTell(name, governor.status().message());
    const Result<std::string> preference =
        in.files.Text(kCpufreq + policy + "/energy_performance_preference");
    any = *governor;
    // intel_pstate and amd-pstate choose the clock themselves, by the preference; their
    // "powersave" is the usual state. Elsewhere it is the lowest clock there is.
    if (preference.ok()) {
      any += " (" + *preference + ")";
      if (*governor != "performance" &&
          (*preference == "power" || *preference == "balance_power")) {
        ++saving;
        saving_word = *preference;
      }
    } else if (*governor == "powersave" || *governor == "conservative") {
      ++slow;
      slow_word = *governor;
    }
  }
  if (slow > 0) {
    return {
        name,
        Severity::kWarning,
        Printf("%s on %zu of %zu clock domains", slow_word.c_str(), slow, policies.size()),
        ClockCost(in),
        {"sudo cpupower frequency-set -g performance",
         "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"}};
  }
  if (saving > 0) {
    return {name,
            Severity::kWarning,
            Printf("energy preference %s on %zu of %zu clock domains", saving_word.c_str(), saving,
                   policies.size()),
            ClockCost(in),
            {"echo performance | sudo tee "
             "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference"}};
  }
  return Ok(name, any);
}

Finding CheckBoost(const CheckupInput& in) {
  const char* const name = "boost";
  const std::string boost = "/sys/devices/system/cpu/cpufreq/boost";
  const std::string no_turbo = "/sys/devices/system/cpu/intel_pstate/no_turbo";
  const bool intel = in.files.Exists(no_turbo);
  if (!intel && !in.files.Exists(boost)) return Ok(name, "no switch here");
  const Result<double> value = in.files.Number(intel ? no_turbo : boost);
  if (!value.ok()) return CannotTell(name, value.status().message());
  if ((*value != 0) != intel) return Ok(name, "on");
  Finding f{name, Severity::kWarning, "the clock may not go above its nominal value", {}, {}};
  const double most = LargestGhz(in.files, "cpuinfo_max_freq"), nominal = NominalGhz(in.files);
  if (most > nominal && nominal > 0) {
    f.cost = Model(100 * (1 - nominal / most), CostUnit::kPrefill,
                   Printf("%.2f GHz instead of up to %.2f", nominal, most));
  }
  f.fix = {intel ? "echo 0 | sudo tee " + no_turbo : "echo 1 | sudo tee " + boost};
  return f;
}

Finding CheckClock(const CheckupInput& in) {
  const char* const name = "clock";
  if (!in.measured.clock_ghz) return Ok(name, "not measured");
  const double now = *in.measured.clock_ghz, nominal = NominalGhz(in.files);
  const double most = LargestGhz(in.files, "cpuinfo_max_freq");
  std::string found = Printf("%.2f GHz under load", now);
  if (nominal > 0) found += Printf(", nominal %.2f", nominal);
  if (most > 0) found += Printf(", at most %.2f", most);
  if (nominal <= 0 || now >= kSlowClock * nominal) return Ok(name, found);
  return {name,
          Severity::kWarning,
          found,
          Measure(100 * (1 - now / nominal), CostUnit::kPrefill,
                  "a chain of additions on every core at once"),
          {"look for heat (sensors), a power limit (turbostat) or a battery profile "
           "(powerprofilesctl set performance)"}};
}

Finding CheckThermal(const CheckupInput& in) {
  const char* const name = "heat";
  if (in.measured.thermal_events > 0) {
    return {name,
            Severity::kWarning,
            Printf("the CPU was slowed by heat %llu times while it was measured",
                   static_cast<unsigned long long>(in.measured.thermal_events)),
            ClockCost(in),
            {"clean the fans, raise the fan speed, or use fewer threads (--threads)"}};
  }
  double events = 0;
  bool any = false;
  for (const std::string& cpu : in.files.Numbered("/sys/devices/system/cpu", "cpu")) {
    const Result<double> count =
        in.files.Number("/sys/devices/system/cpu/" + cpu + "/thermal_throttle/core_throttle_count");
    any |= count.ok();
    if (count.ok()) events += *count;
  }
  if (!any) return Ok(name, "no counters here");
  if (events == 0) return Ok(name, "never slowed since boot");
  return Ok(name, Printf("slowed %.0f times since boot, not now", events));
}

}  // namespace sluice
