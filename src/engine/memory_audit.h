// Where a model's memory is: the share of its weights in RAM, and on which
// memory nodes weights and keys and values lie against the workers that read
// them. For reports and metrics, never for every token. Any thread.
#ifndef SLUICE_SRC_ENGINE_MEMORY_AUDIT_H_
#define SLUICE_SRC_ENGINE_MEMORY_AUDIT_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "src/engine/model_runner.h"
#include "src/machine/topology.h"

namespace sluice {

// The matrices that passes read, each of them once.
std::vector<std::span<const uint8_t>> WeightMemory(const Model& model);

// Asks the system again after five seconds at the earliest.
class ResidencyMeter {
 public:
  explicit ResidencyMeter(const Model& model) : memory_(WeightMemory(model)) {}
  double Share();  // 0..1, as ResidentShare

 private:
  const std::vector<std::span<const uint8_t>> memory_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point asked_;  // guarded by mutex_
  double share_ = -1;                            // guarded by mutex_; < 0: never asked
};

// Shares by memory node, each adds up to 1 (0: nothing there yet). With one node nothing is asked.
struct NodeAudit {
  std::vector<double> weights, kv, workers;
  // Share of the weights that workers read from a node that is not their own.
  double across = 0;
};

// From a sample: 64 pieces of 1 MB. The workers are the decode threads; they read equal shares of
// each matrix, worker i on core i where each core has its worker, and anywhere otherwise.
NodeAudit AuditNodes(const ModelRunner& runner, const Topology& machine);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_MEMORY_AUDIT_H_
