#include "src/engine/memory_audit.h"

#include <algorithm>

#include "src/machine/numa.h"
#include "src/machine/residency.h"

namespace sluice {

std::vector<std::span<const uint8_t>> WeightMemory(const Model& model) {
  std::vector<std::span<const uint8_t>> memory;
  const auto add = [&](const Weight& w) { memory.push_back({w.data, w.bytes()}); };
  for (const LayerWeights& layer : model.weights().layers) ForEachMatrix(layer, add, add);
  add(model.weights().output);
  return memory;
}

double ResidencyMeter::Share() {
  constexpr std::chrono::seconds kEvery{5};
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (share_ < 0 || now - asked_ > kEvery) {
    share_ = ResidentShare(memory_);
    asked_ = now;
  }
  return share_;
}

namespace {

constexpr size_t kPiece = 1 << 20;
constexpr size_t kMostPieces = 64;

void Scale(std::vector<double>* shares) {
  double sum = 0;
  for (const double s : *shares) sum += s;
  for (double& s : *shares) s = sum > 0 ? s / sum : 0;
}

// Calls visit(index of the part, offset in it, bytes per node) for a sample of the memory.
template <class Visit>
void ForPieces(std::span<const std::span<const uint8_t>> memory, const Visit& visit) {
  size_t bytes = 0, next = 0, first = 0;
  for (const auto part : memory) bytes += part.size();
  const size_t stride = (bytes / kPiece / kMostPieces + 1) * kPiece;
  for (size_t i = 0; i < memory.size(); ++i) {
    const auto part = memory[i];
    for (; next < first + part.size(); next += stride) {
      const size_t at = next - first;
      visit(i, at, BytesPerNode(part.data() + at, std::min(kPiece, part.size() - at)));
    }
    first += part.size();
  }
}

}  // namespace

NodeAudit AuditNodes(const ModelRunner& runner, const Topology& machine) {
  NodeAudit audit;
  const auto nodes = static_cast<size_t>(std::max(machine.numa_nodes, 1));
  if (nodes == 1) {
    audit.weights = audit.kv = audit.workers = {1.0};
    return audit;
  }
  audit.weights.resize(nodes);
  audit.kv.resize(nodes);
  audit.workers.resize(nodes);
  const auto threads = static_cast<size_t>(runner.decode_threads());
  const bool placed = threads == machine.cores.size();
  for (const Core& core : machine.cores) {
    audit.workers[std::min(static_cast<size_t>(core.numa_node), nodes - 1)] += 1;
  }
  Scale(&audit.workers);

  const auto memory = WeightMemory(runner.model());
  double seen = 0, across = 0;
  ForPieces(memory, [&](size_t i, size_t at, const std::vector<uint64_t>& bytes) {
    for (size_t node = 0; node < std::min(bytes.size(), nodes); ++node) {
      const auto here = static_cast<double>(bytes[node]);
      const size_t reader = at * threads / memory[i].size();
      const double own =
          placed ? machine.cores[reader].numa_node == static_cast<int>(node) : audit.workers[node];
      audit.weights[node] += here;
      seen += here;
      across += here * (1 - own);
    }
  });
  audit.across = seen > 0 ? across / seen : 0;
  const std::span<const uint8_t> kv[] = {runner.pool().memory()};
  ForPieces(kv, [&](size_t, size_t, const std::vector<uint64_t>& bytes) {
    for (size_t node = 0; node < std::min(bytes.size(), nodes); ++node) {
      audit.kv[node] += static_cast<double>(bytes[node]);
    }
  });
  Scale(&audit.weights);
  Scale(&audit.kv);
  return audit;
}

}  // namespace sluice
