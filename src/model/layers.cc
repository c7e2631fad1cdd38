#include "src/model/layers.h"

#include "src/model/ops.h"

namespace sluice {

InputForms AttentionReads(const LayerWeights& w) {
  return Reads(w.qkv, w.q, w.k, w.v, w.q_a, w.kv_a);
}

InputForms FeedForwardReads(const LayerWeights& w) {
  return Reads(w.gate, w.up, w.router, w.expert_gate, w.expert_up, w.shared_gate, w.shared_up,
               w.shared_router);
}

void SelfAttention(Pass& pass, size_t layer, const Input& in) {
  const Config& c = pass.config;
  const LayerWeights& w = pass.weights.layers[layer];
  const size_t stride = c.q_dim() + c.k_dim() + c.v_dim();
  float* const qkv = pass.ws.qkv;
  if (w.qkv) {
    MatMul(pass, in, {{w.qkv, qkv, stride}});
  } else {
    float* const key = qkv + c.q_dim();
    MatMul(pass, in, {{w.q, qkv, stride}, {w.k, key, stride}, {w.v, key + c.k_dim(), stride}});
  }
  pass.Barrier();
  const Input attended = pass.ws.attn_in.View(pass.rows(), c.heads * c.value_dim);
  RotateStoreAttend(pass, layer, attended, w.sinks, Reads(w.o));
  pass.Barrier();
  MatMul(pass, attended, {{w.o, pass.ws.branch, c.dim}});
}

void GatedMlp(Pass& pass, const LayerWeights& w, const Input& in, float* out) {
  const Input hidden = pass.ws.mlp_in.View(pass.rows(), pass.config.ffn_dim);
  GateUp(pass, {w.gate, w.up, hidden, Reads(w.down)}, in);
  pass.Barrier();
  MatMul(pass, hidden, {{w.down, out, pass.config.dim}});
}

void MixtureOfExperts(Pass& pass, const LayerWeights& w, const Input& in, float* branch) {
  MatMul(pass, in, {{w.router, pass.ws.router, pass.config.moe.experts}});
  if (w.shared_router) MatMul(pass, in, {{w.shared_router, pass.ws.shared_gate, 1}});
  pass.Barrier();
  RouteRows(pass, w);
  SortSlots(pass);
  ExpertsGateUp(pass, w, in);
  pass.Barrier();
  ExpertsDown(pass, w);
  pass.Barrier();
  CombineExperts(pass, w, branch);
}

const float* FeedForward(Pass& pass, size_t layer, const Input& in, float* out) {
  const LayerWeights& w = pass.weights.layers[layer];
  if (pass.config.Sparse(layer)) {
    MixtureOfExperts(pass, w, in, pass.own.branch);
    return pass.own.branch;
  }
  GatedMlp(pass, w, in, out);
  pass.Barrier();
  return out;
}

}  // namespace sluice
