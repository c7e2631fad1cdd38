// From what was measured (src/machine/ceilings) or published (src/machine/devices)
// to the speeds that the model of time computes with, for the kernels of one model.
// Any thread.
#ifndef SLUICE_SRC_ENGINE_MACHINE_SPEED_H_
#define SLUICE_SRC_ENGINE_MACHINE_SPEED_H_

#include "src/engine/stats.h"
#include "src/engine/time_model.h"
#include "src/machine/ceilings.h"
#include "src/machine/devices.h"

namespace sluice {

enum class CeilingOf : uint8_t {
  kNow,   // the newest measurements: what to expect in the next minutes
  kGood,  // 95th percentiles: what the machine reaches when it is left alone
};

// What this model needs measured.
CeilingList CeilingsOf(const ModelWork& model, KvType kv_type);
// Rates that are missing are 0 (not known).
MachineSpeed SpeedHere(const ModelWork& model, KvType kv_type, const Ceilings& ceilings,
                       CeilingOf of, int threads);
// The roofs that passes are judged by (stats.h), from the speeds of SpeedHere; a rate that was
// measured on the threads of the other phase counts by the number of threads. Reading is not among
// them: it is measured in the same minute, of as many bytes (ModelRunner::ReadBandwidth). Threads:
// those that run at once.
PassCeilings CeilingsFrom(const ModelWork& model, const MachineSpeed& speed, int decode_threads,
                          int prefill_threads);
// The published figures as roofs, kDeviceReadShare and kDeviceComputeShare of them to expect.
MachineSpeed SpeedOf(const ModelWork& model, const Device& device);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_MACHINE_SPEED_H_
