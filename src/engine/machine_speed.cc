#include "src/engine/machine_speed.h"

#include <algorithm>

#include "src/machine/topology.h"

namespace sluice {
namespace {

AttentionId AttentionOf(const ModelWork& model, KvType kv_type) {
  const Config& c = model.config();
  return {KvShapeOf(c, kv_type), std::max<size_t>(1, c.heads / std::max<size_t>(1, c.kv_heads))};
}

KernelId IdOf(const ModelWork::Kernel& k) {
  const bool portable = MultipliesBf16(*k.format) && !k.dots_bf16 && !k.exact;
  return {k.format, k.panels, k.exact, portable};
}

// `few`, `many`: what the rates of decode's and of prefill's threads are scaled by.
PhaseCeilings Roofs(const ModelWork& model, const MachineSpeed& speed, double few, double many) {
  PhaseCeilings c;
  for (size_t i = 0; i < model.kernels().size(); ++i) {
    const ModelWork::Kernel& k = model.kernels()[i];
    const KernelSpeed& kernel = speed.kernels[i];
    const double one = few * kernel.one_gmac_s, best = many * kernel.best_gmac_s;
    if (one == 0) return {};  // not known of all: not known
    c.first_row_s += 1e-9 * k.macs / one;
    c.row_s += 1e-9 * k.macs / best;
    c.first_logits_s += 1e-9 * k.output_macs / one;
    c.logits_s += 1e-9 * k.output_macs / best;
  }
  return c;
}

}  // namespace

PassCeilings CeilingsFrom(const ModelWork& model, const MachineSpeed& speed, int decode_threads,
                          int prefill_threads) {
  const double decode = decode_threads, prefill = prefill_threads;
  PassCeilings c = {Roofs(model, speed, prefill / decode, 1),
                    Roofs(model, speed, 1, decode / prefill)};
  c.prefill.attention_gmac_s = speed.attention_gmac_s;
  c.decode.attention_gmac_s = speed.row_attention_gmac_s;
  return c;
}

CeilingList CeilingsOf(const ModelWork& model, KvType kv_type) {
  CeilingList list;
  for (const ModelWork::Kernel& k : model.kernels()) {
    const KernelId id = IdOf(k);
    if (std::find(list.kernels.begin(), list.kernels.end(), id) == list.kernels.end()) {
      list.kernels.push_back(id);
    }
  }
  list.attention.push_back(AttentionOf(model, kv_type));
  list.reads.push_back(model.WeightBytesPerToken());
  return list;
}

MachineSpeed SpeedHere(const ModelWork& model, KvType kv_type, const Ceilings& ceilings,
                       CeilingOf of, int threads) {
  const auto rate = [&](const std::string& name) {
    return (of == CeilingOf::kNow ? ceilings.Now(name) : ceilings.Good(name)).value_or(0);
  };
  const Topology& machine = ThisMachine();
  MachineSpeed s;
  s.name = machine.cpu_name;
  s.threads = threads;
  s.memory_gb_s = rate(kReadRate);
  s.read_gb_s = rate(ReadRate(model.WeightBytesPerToken()));
  if (s.read_gb_s == 0) s.read_gb_s = s.memory_gb_s;  // at least so much
  s.read_bytes = static_cast<double>(model.WeightBytesPerToken());
  s.barrier_us = rate(kBarrierTime);
  s.row_ns = rate(kRowTime);
  s.gate_ns = rate(kGateTime);
  for (const ModelWork::Kernel& k : model.kernels()) {
    const KernelId id = IdOf(k);
    KernelSpeed speed;
    speed.stream_gb_s = rate(StreamRate(id));
    speed.one_gmac_s = rate(MultiplyRate(id, kCacheRows[0]));
    speed.best_gmac_s = std::max(speed.one_gmac_s, rate(MultiplyRate(id, kCacheRows[1])));
    for (const size_t rows : kProductRows) {
      if (const double gmac_s = rate(ProductRate(id, rows)); gmac_s > 0) {
        speed.gmac_s.emplace_back(static_cast<double>(rows), gmac_s);
      }
    }
    s.kernels.push_back(std::move(speed));
  }
  const AttentionId attention = AttentionOf(model, kv_type);
  s.attention_gmac_s = rate(AttentionRate(attention, true));
  s.row_attention_gmac_s = rate(AttentionRate(attention, false));
  return s;
}

MachineSpeed SpeedOf(const ModelWork& model, const Device& device) {
  MachineSpeed s;
  s.name = device.name;
  s.read_gb_s = s.memory_gb_s = device.bandwidth_gb_s;
  const double gmac_s = 1e3 * device.tops / 2;
  KernelSpeed kernel;
  kernel.stream_gb_s = kDeviceReadShare * device.bandwidth_gb_s;
  kernel.best_gmac_s = gmac_s;
  if (gmac_s > 0) kernel.gmac_s.emplace_back(1, gmac_s);
  s.kernels.assign(model.kernels().size(), kernel);
  s.compute_share = kDeviceComputeShare;
  s.attention_gmac_s = s.row_attention_gmac_s = gmac_s;
  return s;
}

}  // namespace sluice
