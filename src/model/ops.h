// The operations a model is written in, and the only file that calls kernels.
// Each is called by every worker of a pass and does this worker's share; none
// has a barrier inside. Rows are split when an op works row by row, output
// columns when it multiplies. No bytes depend on the split.
#ifndef SLUICE_SRC_MODEL_OPS_H_
#define SLUICE_SRC_MODEL_OPS_H_

#include <cstddef>
#include <cstdint>

#include "src/model/pass.h"

namespace sluice {

// Whether any of the present weights reads the quantised form of its input.
template <class... W>
bool ReadsInt8(const W&... w) {
  return (w.ReadsInt8() || ...);
}

// x[t] = embedding of token t, scaled; plus learned positions.
void Embed(Pass& pass);
// Angles of every row, both kinds of layers.
void FillRope(Pass& pass);

// in = norm(x) row by row, quantised too when `quantise`. norm absent: a copy.
void NormRows(Pass& pass, const float* x, const NormWeights& norm, const Input& in, bool quantise);
// Quantises rows already in in.f32.
void QuantiseRows(Pass& pass, const Input& in);
// x += residual_scale * post_norm(branch), row by row.
void AddBranch(Pass& pass, float* branch, const NormWeights& post_norm);

// out[t][r] = weight . in[t] + bias; out is [in.rows][stride].
void MultiplyShare(Worker& worker, const Workspace& ws, const Weight& weight, const Input& in,
                   float* out, size_t stride);
void MatMul(Pass& pass, const Weight& weight, const Input& in, float* out, size_t stride);
// The same for `tokens` rows picked from `in`: out[i] from in row token_rows[i].
void MatMulRows(Pass& pass, const Weight& weight, const Input& in, const int32_t* token_rows,
                size_t tokens, float* out, size_t stride);

// Queries and keys of layer `layer` in ws.qkv: norm, rotate; keys and values go to the KV cache.
void RotateAndStore(Pass& pass, size_t layer);
// in = attention of every row and head over the cached positions; queries [R][stride], head h at h
// * key_dim. Work is taken from counter 0, which some worker has reset before the last barrier.
void Attend(Pass& pass, size_t layer, const float* queries, size_t stride, const Input& out,
            const float* sinks);

// in = activation(gate) * up, row by row; rows are [gate | up] or, ungated, [up]. Quantises when
// asked.
void GateRows(Pass& pass, const float* gate_up, const Input& in, bool gated, bool quantise);

// Mixture of experts: pick and weigh (this worker's rows), sort into slots (worker 0), sum up
// (rows).
void RouteRows(Pass& pass, const LayerWeights& layer);
void SortSlots(Pass& pass);
void CombineExperts(Pass& pass, float* out);
// out[t] += sigmoid(gate[t]) * shared[t]; gate null: plain sum.
void AddShared(Pass& pass, const float* shared, const float* gate, float* out);

// Final norm of the rows whose logits are wanted, into ws.norm_in.
void GatherLogitRows(Pass& pass, bool quantise);
// Scale and cap of logits [rows][vocab]: the columns that this worker's share of the product wrote.
void FinishLogits(const Config& config, Worker& worker, size_t rows, float* logits);

// Rotates `pairs` pairs of one head at batch row t (latent attention lays heads out itself).
void RotateHead(Pass& pass, size_t layer, size_t t, float* head);
// Applies the model's norm to one vector.
void NormVector(const Config& config, const NormWeights& norm, const float* x, size_t n,
                float* out);
// Stores the key and value of batch row t for one kv head.
void StoreKeyValue(Pass& pass, size_t layer, size_t kv_head, size_t t, const float* key,
                   const float* value);

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_OPS_H_
