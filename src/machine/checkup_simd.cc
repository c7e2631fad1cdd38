// Checks of the instructions that the kernels use against those the CPU has.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "src/machine/checkup_checks.h"

namespace sluice {
namespace {

// bench/README.md, Kernels: multiply-adds a cycle on one Zen 4 core, Q4_0.
constexpr double kAvx2Rate = 33.3, kAvx512Rate = 47;
// 1B Q4_0, 512 tokens, two threads of a Xeon, AVX3_DL and AVX3_SPR with AMX: tok/s of prefill.
constexpr double kVnniRate = 406, kAmxRate = 600;
constexpr char kAmxSource[] = "1B Q4_0, 512 tokens on a Xeon: 406 and 600 tok/s";

struct CpuModel {
  bool amd = false, intel = false;
  int family = 0, model = 0;
};

CpuModel ReadCpuModel(const SystemFiles& files) {
  const auto value = [&](const char* key) {
    const Result<std::string> text = files.Field("/proc/cpuinfo", key);
    const size_t colon = text.ok() ? text->find(':') : std::string::npos;
    return colon == std::string::npos ? std::string() : text->substr(colon + 1);
  };
  CpuModel cpu;
  cpu.amd = value("vendor_id").find("AuthenticAMD") != std::string::npos;
  cpu.intel = value("vendor_id").find("GenuineIntel") != std::string::npos;
  cpu.family = std::atoi(value("cpu family").c_str());
  cpu.model = std::atoi(value("model\t").c_str());
  return cpu;
}

// CPUs that are made with AVX-512 and VNNI, whatever flags are shown: Zen 4 and 5; Ice Lake and
// later servers.
bool MadeWithAvx512(const CpuModel& cpu) {
  if (cpu.amd) {
    const int m = cpu.model;
    return cpu.family == 26 ||
           (cpu.family == 25 && ((m >= 0x10 && m < 0x20) || (m >= 0x60 && m < 0xb0)));
  }
  constexpr int kModels[] = {106, 108, 143, 173, 174, 207};
  return cpu.intel && cpu.family == 6 &&
         std::find(std::begin(kModels), std::end(kModels), cpu.model) != std::end(kModels);
}

// Sapphire Rapids, Emerald Rapids, Granite Rapids.
bool MadeWithAmx(const CpuModel& cpu) {
  constexpr int kModels[] = {143, 173, 174, 207};
  return cpu.intel && cpu.family == 6 &&
         std::find(std::begin(kModels), std::end(kModels), cpu.model) != std::end(kModels);
}

Finding Hidden(const CheckupInput& in, const char* what, bool in_cpuid, Cost cost) {
  const bool guest = InVirtualMachine(in.files);
  Finding f{"hidden isa", Severity::kWarning, "", std::move(cost), {}};
  if (in_cpuid) {
    f.found = Printf("the CPU has %s, the system does not use it", what);
    f.fix = {
        "boot without noxsave and clearcpuid= (cat /proc/cmdline); AMX needs Linux 5.16 or later"};
  } else if (guest) {
    f.found = Printf("this CPU is made with %s, the hypervisor hides it", what);
    f.fix = {
        "give the virtual machine the host's CPU: -cpu host (QEMU), host-passthrough (libvirt), "
        "\"host\" (Proxmox)"};
  } else {
    f.found = Printf("this CPU is made with %s, it is turned off", what);
    f.fix = {"turn it on in the firmware's setup, or update its microcode"};
  }
  return f;
}

// What runs on this process's CPU when `target` is chosen: its kernels take AMX only in two
// targets.
std::string WithAmx(const SimdFacts& s, const std::string& target) {
  const bool takes = target == "AVX3_ZEN4" || target == "AVX3_SPR";
  return target + (s.amx && takes ? " with AMX" : "");
}

}  // namespace

Finding CheckSimdTarget(const CheckupInput& in) {
  const char* const name = "simd target";
  const SimdFacts& s = in.simd;
  if (s.running.empty()) return Ok(name, "not looked at");
  const std::string now = WithAmx(s, s.running), best = WithAmx(s, s.best_built);
  if (s.running != s.best_built) {
    Finding f{name,
              Severity::kWarning,
              "SLUICE_TARGET holds the kernels at " + now + ", this CPU runs " + best,
              {},
              {"unset SLUICE_TARGET"}};
    if (const auto gain = in.measured.target_gain) {
      f.cost = Measure(100 * std::max(0.0, 1 - 1 / *gain), CostUnit::kPrefill,
                       "a Q4_0 product of 64 tokens on both targets");
    } else if (s.running.starts_with("AVX2")) {
      f.cost = Model(100 * (1 - kAvx2Rate / kAvx512Rate), CostUnit::kPrefill,
                     "AVX2 against AVX-512, Q4_0 on Zen 4: 33.3 and 47 multiply-adds a cycle");
    } else if (best != s.best_built) {
      f.cost = Model(100 * (1 - kVnniRate / kAmxRate), CostUnit::kPrefill, kAmxSource);
    }
    return f;
  }
  if (s.best_built != s.best_of_cpu) {
    return {
        name,
        Severity::kWarning,
        "this build has no kernels for " + s.best_of_cpu + ", which this CPU has; it runs " + now,
        Model(100 * (1 - kAvx2Rate / kAvx512Rate), CostUnit::kPrefill,
              "at most: AVX2 against AVX-512, Q4_0 on Zen 4: 33.3 and 47 multiply-adds a cycle"),
        {"./dev build (the release has every target)"}};
  }
  return Ok(name, now);
}

Finding CheckHiddenIsa(const CheckupInput& in) {
  const char* const name = "hidden isa";
  const Result<std::string> info = in.files.Text("/proc/cpuinfo");
  if (!info.ok()) return CannotTell(name, info.status().message());
  const CpuModel cpu = ReadCpuModel(in.files);
  const bool avx512 = HasCpuFlag(in.files, "avx512f");
  if (!avx512 && (in.simd.cpu_has_avx512 || MadeWithAvx512(cpu))) {
    return Hidden(in, "AVX-512", in.simd.cpu_has_avx512,
                  Model(100 * (1 - kAvx2Rate / kAvx512Rate), CostUnit::kPrefill,
                        "Q4_0 on Zen 4: 33.3 and 47 multiply-adds a cycle (Q8_0: 17 and 47)"));
  }
  const bool amx = HasCpuFlag(in.files, "amx_int8");
  if (!amx && (in.simd.cpu_has_amx || MadeWithAmx(cpu))) {
    return Hidden(in, "AMX", in.simd.cpu_has_amx,
                  Model(100 * (1 - kVnniRate / kAmxRate), CostUnit::kPrefill, kAmxSource));
  }
  return Ok(name, "nothing that this CPU is known to have is missing");
}

}  // namespace sluice
