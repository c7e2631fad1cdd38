#include "src/machine/memory_use.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "src/machine/topology.h"

namespace sluice {
namespace {

struct Field {
  std::string_view name;  // with its colon: "VmRSS:"
  uint64_t* bytes;
};

// Lines of /proc/self/status and /proc/meminfo: "VmRSS:     1234 kB".
void ReadKilobytes(const char* path, std::initializer_list<Field> fields) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    for (const Field& field : fields) {
      if (!line.starts_with(field.name)) continue;
      uint64_t kilobytes = 0;
      if (std::istringstream(line.substr(field.name.size())) >> kilobytes) {
        *field.bytes = kilobytes * 1024;
      }
    }
  }
}

}  // namespace

MemoryUse ThisProcessMemory() {
  MemoryUse use;
  ReadKilobytes("/proc/self/status", {{"VmRSS:", &use.rss_bytes},
                                      {"VmHWM:", &use.peak_rss_bytes},
                                      {"RssAnon:", &use.anonymous_bytes},
                                      {"RssFile:", &use.file_bytes},
                                      {"RssShmem:", &use.shared_bytes}});
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    use.major_faults = static_cast<uint64_t>(usage.ru_majflt);
    // Kernels that hide VmHWM still tell this one (in kB on Linux).
    if (use.peak_rss_bytes == 0) use.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  }
  return use;
}

void RestartPeakRss() { std::ofstream("/proc/self/clear_refs") << 5; }

uint64_t AvailableMemoryBytes() {
  const Topology& machine = ThisMachine();
  uint64_t available = 0;
  ReadKilobytes("/proc/meminfo", {{"MemAvailable:", &available}});
  if (available == 0) available = machine.memory_bytes / 2;  // kernels before 3.14
  if (!machine.memory_limit) return available;
  const uint64_t used = ThisProcessMemory().anonymous_bytes;  // file pages can be dropped
  return std::min(available, *machine.memory_limit - std::min(*machine.memory_limit, used));
}

}  // namespace sluice
