#include "src/machine/topology.h"

#include <hwloc.h>
#include <hwloc/linux.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "src/machine/quota.h"

namespace sluice {
namespace {

using Bitmap = hwloc_bitmap_t;

// Loaded once and kept for the life of the process: binding needs it, and the thread team may
// outlive any static that would free it.
hwloc_topology_t Hwloc() {
  static const hwloc_topology_t topology = [] {
    hwloc_topology_t t = nullptr;
    if (hwloc_topology_init(&t) != 0) return hwloc_topology_t(nullptr);
    hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(t) == 0) return t;
    hwloc_topology_destroy(t);
    return hwloc_topology_t(nullptr);
  }();
  return topology;
}

uint64_t CacheBytes(hwloc_topology_t t, hwloc_obj_type_t type, bool total) {
  uint64_t bytes = 0;
  for (hwloc_obj_t cache = nullptr;
       (cache = hwloc_get_next_obj_by_type(t, type, cache)) != nullptr;) {
    bytes = total ? bytes + cache->attr->cache.size : std::max(bytes, cache->attr->cache.size);
  }
  return bytes;
}

// hwloc numbers kinds by rising performance, and has none on most machines.
int KindOf(hwloc_topology_t t, hwloc_const_bitmap_t cpus, int kinds) {
  const int kind = kinds > 1 ? hwloc_cpukinds_get_by_cpuset(t, cpus, 0) : -1;
  return kind < 0 ? 0 : kinds - 1 - kind;
}

// Fastest kind first, within a kind by position.
std::vector<Core> AllowedCores(hwloc_topology_t t, hwloc_const_bitmap_t allowed, int kinds) {
  std::vector<Core> cores;
  Bitmap mine = hwloc_bitmap_alloc();
  if (mine == nullptr) return cores;
  // Some virtual machines tell of logical CPUs only.
  const auto type = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (int kind = 0; kind < kinds; ++kind) {
    for (hwloc_obj_t obj = nullptr; (obj = hwloc_get_next_obj_by_type(t, type, obj)) != nullptr;) {
      if (KindOf(t, obj->cpuset, kinds) != kind) continue;
      hwloc_bitmap_and(mine, obj->cpuset, allowed);
      Core core;
      core.kind = kind;
      core.numa_node = std::max(0, hwloc_bitmap_first(obj->nodeset));
      for (int cpu = -1; (cpu = hwloc_bitmap_next(mine, cpu)) >= 0;) core.cpus.push_back(cpu);
      if (!core.cpus.empty()) cores.push_back(std::move(core));
    }
  }
  hwloc_bitmap_free(mine);
  return cores;
}

// x86 says "model name"; ARM kernels mostly give numbers only, so the device tree's board name or
// the bare architecture stands in.
std::string CpuName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name") && !line.starts_with("Hardware")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  std::ifstream tree("/proc/device-tree/model");
  std::string board;
  if (std::getline(tree, board, '\0') && !board.empty()) return board;
  utsname name;
  return uname(&name) == 0 ? name.machine : "unknown CPU";
}

void ReadHwloc(hwloc_topology_t t, Topology& machine) {
  machine.machine_cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
  machine.machine_cpus = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
  machine.numa_nodes = std::max(1, hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE));
  machine.core_kinds = std::max(1, hwloc_cpukinds_get_nr(t, 0));
  machine.l1d_bytes = CacheBytes(t, HWLOC_OBJ_L1CACHE, false);
  machine.l2_bytes = CacheBytes(t, HWLOC_OBJ_L2CACHE, false);
  machine.l3_bytes = CacheBytes(t, HWLOC_OBJ_L3CACHE, true);
  Bitmap allowed = hwloc_bitmap_alloc();
  if (allowed == nullptr) return;
  if (hwloc_get_cpubind(t, allowed, HWLOC_CPUBIND_THREAD) != 0) {
    hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(t));
  }
  machine.cores = AllowedCores(t, allowed, machine.core_kinds);
  hwloc_bitmap_free(allowed);
}

Topology Read() {
  Topology machine;
  machine.cpu_name = CpuName();
  machine.cpu_quota = CpuQuota();
  machine.memory_limit = MemoryLimit();
  machine.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (hwloc_topology_t t = Hwloc()) ReadHwloc(t, machine);
  if (machine.cores.empty()) machine.cores.push_back({0, 0, {0}});
  machine.cpus = 0;
  for (const Core& core : machine.cores) machine.cpus += static_cast<int>(core.cpus.size());
  return machine;
}

}  // namespace

int Topology::DefaultThreads() const {
  return std::min(static_cast<int>(cores.size()), UsableCpus());
}

int Topology::UsableCpus() const {
  const double whole = std::floor(std::min(cpu_quota.value_or(cpus), 1e6));
  return std::max(1, std::min(cpus, static_cast<int>(whole)));
}

int Topology::RunningAtOnce(int threads) const { return std::max(1, std::min(threads, cpus)); }

int Topology::RunningAllTheTime(int threads) const {
  const double quota = std::ceil(std::min(cpu_quota.value_or(cpus), 1e6));
  return std::max(1, std::min(RunningAtOnce(threads), static_cast<int>(quota)));
}

uint64_t Topology::UsableMemoryBytes() const {
  return std::min(memory_bytes, memory_limit.value_or(memory_bytes));
}

const Topology& ThisMachine() {
  static const Topology machine = Read();
  return machine;
}

bool BindThisThread(const std::vector<int>& cpus) { return BindThread(0, cpus); }

bool BindThread(int tid, const std::vector<int>& cpus) {
  hwloc_topology_t t = Hwloc();
  if (t == nullptr) return false;
  Bitmap set = hwloc_bitmap_alloc();
  if (set == nullptr) return false;
  bool bound = true;
  for (int cpu : cpus) bound &= hwloc_bitmap_set(set, static_cast<unsigned>(cpu)) == 0;
  bound = bound && hwloc_linux_set_tid_cpubind(t, tid, set) == 0;
  hwloc_bitmap_free(set);
  return bound;
}

}  // namespace sluice
