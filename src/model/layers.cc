#include "src/model/layers.h"

#include "src/model/ops.h"

namespace sluice {

bool AttentionReadsInt8(const LayerWeights& w) {
  return ReadsInt8(w.qkv, w.q, w.k, w.v, w.q_a, w.kv_a);
}

bool FeedForwardReadsInt8(const LayerWeights& w) {
  return ReadsInt8(w.gate, w.up, w.router, w.expert_gate, w.expert_up, w.shared_gate, w.shared_up,
                   w.shared_router);
}

void SelfAttention(Pass& pass, size_t layer, const Input& in) {
  const Config& c = pass.config;
  const LayerWeights& w = pass.weights.layers[layer];
  const size_t stride = c.q_dim() + c.k_dim() + c.v_dim();
  if (w.qkv) {
    MatMul(pass, w.qkv, in, pass.ws.qkv, stride);
  } else {
    MatMul(pass, w.q, in, pass.ws.qkv, stride);
    MatMul(pass, w.k, in, pass.ws.qkv + c.q_dim(), stride);
    MatMul(pass, w.v, in, pass.ws.qkv + c.q_dim() + c.k_dim(), stride);
  }
  if (pass.worker.index() == 0) pass.worker.ResetCounter(0);
  pass.Barrier();

  RotateAndStore(pass, layer);
  pass.Barrier();

  const Input attended = pass.ws.attn_in.View(pass.rows(), c.heads * c.value_dim);
  Attend(pass, layer, pass.ws.qkv, stride, attended, w.sinks);
  pass.Barrier();
  if (ReadsInt8(w.o)) {
    QuantiseRows(pass, attended);
    pass.Barrier();
  }
  MatMul(pass, w.o, attended, pass.ws.branch, c.dim);
}

void GatedMlp(Pass& pass, const Weight& gate, const Weight& up, const Weight& down, size_t ffn_dim,
              const Input& in, float* out) {
  const bool gated = pass.config.gated_mlp;
  const size_t width = gated ? 2 * ffn_dim : ffn_dim;
  if (gate) MatMul(pass, gate, in, pass.ws.gate_up, width);
  MatMul(pass, up, in, pass.ws.gate_up + (gate ? ffn_dim : 0), width);
  pass.Barrier();

  const Input hidden = pass.ws.mlp_in.View(pass.rows(), ffn_dim);
  GateRows(pass, pass.ws.gate_up, hidden, gated, ReadsInt8(down));
  pass.Barrier();

  MatMul(pass, down, hidden, out, pass.config.dim);
}

void MixtureOfExperts(Pass& pass, const LayerWeights& w, const Input& in, float* out) {
  const Config& c = pass.config;
  const MoeConfig& moe = c.moe;
  Workspace& ws = pass.ws;
  MatMul(pass, w.router, in, ws.router, moe.experts);
  if (w.shared_router) MatMul(pass, w.shared_router, in, ws.shared_gate, 1);
  pass.Barrier();
  RouteRows(pass, w);
  pass.Barrier();
  SortSlots(pass);
  pass.Barrier();

  const Input hidden = ws.expert_in.View(pass.rows() * moe.used, moe.ffn_dim);
  const size_t width = 2 * moe.ffn_dim;
  auto for_experts = [&](auto&& fn) {
    for (size_t e = 0; e < moe.experts; ++e) {
      const size_t begin = static_cast<size_t>(ws.expert_begin[e]);
      const size_t n = static_cast<size_t>(ws.expert_begin[e + 1]) - begin;
      if (n) fn(e, begin, n);
    }
  };
  for_experts([&](size_t e, size_t begin, size_t n) {
    float* y = ws.expert_gate_up + begin * width;
    MatMulRows(pass, w.expert_gate.Expert(e), in, ws.slot_row + begin, n, y, width);
    MatMulRows(pass, w.expert_up.Expert(e), in, ws.slot_row + begin, n, y + moe.ffn_dim, width);
  });
  pass.Barrier();
  GateRows(pass, ws.expert_gate_up, hidden, true, ReadsInt8(w.expert_down));
  pass.Barrier();
  for_experts([&](size_t e, size_t begin, size_t n) {
    MatMulRows(pass, w.expert_down.Expert(e), hidden, ws.slot_index + begin, n,
               ws.expert_out + begin * c.dim, c.dim);
  });
  pass.Barrier();
  CombineExperts(pass, out);

  if (w.shared_up) {
    GatedMlp(pass, w.shared_gate, w.shared_up, w.shared_down, moe.shared_ffn_dim, in, ws.branch2);
    pass.Barrier();
    AddShared(pass, ws.branch2, w.shared_router ? ws.shared_gate : nullptr, out);
  }
}

void FeedForward(Pass& pass, size_t layer, const Input& in, float* out) {
  const LayerWeights& w = pass.weights.layers[layer];
  if (pass.config.Sparse(layer)) {
    MixtureOfExperts(pass, w, in, out);
  } else {
    GatedMlp(pass, w.gate, w.up, w.down, pass.config.ffn_dim, in, out);
  }
}

}  // namespace sluice
