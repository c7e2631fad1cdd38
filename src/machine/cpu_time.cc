#include "src/machine/cpu_time.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <set>
#include <sstream>

#include "src/machine/quota.h"
#include "src/machine/topology.h"

namespace sluice {
namespace {

std::set<int> AllowedCpus() {
  std::set<int> cpus;
  for (const Core& core : ThisMachine().cores) cpus.insert(core.cpus.begin(), core.cpus.end());
  return cpus;
}

double OwnSeconds() {
  struct timespec t{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Lines read "cpu3 user nice system idle iowait irq softirq steal guest guest_nice", in ticks;
// guest time is part of user time.
void AddCpus(const std::string& path, CpuTime* time) {
  const std::set<int> allowed = AllowedCpus();
  const long hertz = sysconf(_SC_CLK_TCK);
  const double tick_s = hertz > 0 ? 1.0 / static_cast<double>(hertz) : 0.01;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.starts_with("cpu") || name.size() < 4 || name.size() > 8) continue;
    if (name.find_first_not_of("0123456789", 3) != std::string::npos) continue;
    if (!allowed.contains(std::stoi(name.substr(3)))) continue;
    double ticks[8] = {};
    for (double& t : ticks) words >> t;
    constexpr int kIdle = 3, kWaiting = 4, kSteal = 7;
    for (int i = 0; i < kSteal; ++i) {
      if (i != kIdle && i != kWaiting) time->busy_s += ticks[i] * tick_s;
    }
    time->steal_s += ticks[kSteal] * tick_s;
  }
}

}  // namespace

CpuTime ReadCpuTime(const std::string& root) {
  CpuTime time;
  AddCpus(root + "/proc/stat", &time);
  time.own_s = OwnSeconds();
  time.throttled = CpuThrottledPeriods(root);
  return time;
}

}  // namespace sluice
