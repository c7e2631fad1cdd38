#include "src/machine/numa.h"

#include <hwloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace sluice {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

bool InterleavePages(void* data, size_t bytes) {
  hwloc_topology_t topology = nullptr;
  if (bytes == 0 || hwloc_topology_init(&topology) != 0) return false;
  const bool done =
      hwloc_topology_load(topology) == 0 &&
      hwloc_set_area_membind(topology, data, bytes, hwloc_topology_get_allowed_nodeset(topology),
                             HWLOC_MEMBIND_INTERLEAVE, HWLOC_MEMBIND_BYNODESET) == 0;
  hwloc_topology_destroy(topology);
  return done;
}

int NodeOfThisThread() {
  unsigned cpu = 0, node = 0;
  return syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? static_cast<int>(node) : 0;
}

// move_pages without target nodes moves nothing and tells where each page is.
std::vector<uint64_t> BytesPerNode(const void* data, size_t bytes) {
  constexpr size_t kStep = 4096;
  std::vector<uint64_t> nodes;
  const auto begin = reinterpret_cast<uintptr_t>(data) / kPage * kPage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(data) + bytes;
  for (uintptr_t at = begin; at < end; at += kStep * kPage) {
    void* pages[kStep];
    int status[kStep];
    const size_t n = std::min<size_t>(kStep, (end - at + kPage - 1) / kPage);
    for (size_t i = 0; i < n; ++i) pages[i] = reinterpret_cast<void*>(at + i * kPage);
    if (syscall(SYS_move_pages, 0, n, pages, nullptr, status, 0) != 0) return {};
    for (size_t i = 0; i < n; ++i) {
      if (status[i] < 0) continue;
      if (nodes.size() <= static_cast<size_t>(status[i])) nodes.resize(status[i] + 1);
      nodes[status[i]] += kPage;
    }
  }
  return nodes;
}

}  // namespace sluice
