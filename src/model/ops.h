// The operations a model is written in; ops.cc and attend.cc, where they are, alone call kernels.
// Each is called by every worker of a pass and does this worker's part; those
// with a barrier inside say so. Row-wise ops work on the worker's own rows
// (pass.h); products and attention are cut into tiles that workers take. No
// bytes depend on who does what.
#ifndef SLUICE_SRC_MODEL_OPS_H_
#define SLUICE_SRC_MODEL_OPS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "src/model/logits.h"
#include "src/model/pass.h"

namespace sluice {

// The forms of an input that any of the present weights reads.
template <class... W>
InputForms Reads(const W&... w) {
  return (w.Reads() | ...);
}

// x[t] = embedding of token t, scaled; plus learned positions. Own rows.
void Embed(Pass& pass);
// Angles of every row, both kinds of layers.
void FillRope(Pass& pass);

// in = norm(x) row by row, in these forms too. norm absent: a copy. Own rows.
void NormRows(Pass& pass, const float* x, const NormWeights& norm, const Input& in,
              InputForms forms);
// The forms of rows already in in.f32, a share of all rows: Barrier() before and after.
void FillForms(Pass& pass, const Input& in, InputForms forms);
// x += residual_scale * post_norm(branch). Own rows.
void AddBranch(Pass& pass, const float* branch, const NormWeights& post_norm);

// out[t][r] = weight . in[t] + bias.
struct Product {
  const Weight& weight;
  float* out;  // [in.rows][stride]
  size_t stride;
};
// Up to kMostProducts of one input, their tiles dealt out together.
constexpr size_t kMostProducts = 4;
void MatMul(Pass& pass, const Input& in, std::initializer_list<Product> products);
// out[i][r] = weight . in[token_rows[i]] for `tokens` rows picked from `in`; all of it by the
// calling worker.
void MatMulAlone(Pass& pass, const Weight& weight, const Input& in, const int32_t* token_rows,
                 size_t tokens, float* out, size_t stride);

// The first half of an MLP: hidden = activation(gate . in) * (up . in), in the
// forms that the second half reads too. Without `gate`, `up` is [gate | up] in one matrix, or, in a
// model that is not gated, hidden = activation(up . in).
struct MlpHalf {
  const Weight& gate;
  const Weight& up;
  const Input& hidden;  // [in.rows][ffn dim]
  InputForms forms;
};
void GateUp(Pass& pass, const MlpHalf& mlp, const Input& in);

// Norms and rotates queries and keys of layer `layer` in ws.qkv, stores keys and values in the KV
// cache, and writes the attention of every row and head over the cached positions into `out`,
// in these forms too. A barrier inside where rows share keys or heads share workers.
void RotateStoreAttend(Pass& pass, size_t layer, const Input& out, const float* sinks,
                       InputForms forms);
// The attention alone; queries [R][stride], head h at h * key_dim. False: the forms are left for
// FillForms.
bool Attend(Pass& pass, size_t layer, const float* queries, size_t stride, const Input& out,
            const float* sinks, InputForms forms);

// Mixture of experts: picks and weighs each own row's experts from ws.router.
void RouteRows(Pass& pass, const LayerWeights& layer);
// Groups all rows by expert. A barrier before and after where rows are shared out.
void SortSlots(Pass& pass);
// GateUp of every chosen expert over its rows, and of the shared expert; then their down products
// into ws.expert_out and ws.branch2. Barriers are the caller's.
void ExpertsGateUp(Pass& pass, const LayerWeights& layer, const Input& in);
void ExpertsDown(Pass& pass, const LayerWeights& layer);
// branch = the weighed sum of each own row's experts, plus the shared expert's share of ws.branch2.
void CombineExperts(Pass& pass, const LayerWeights& layer, float* branch);

// Final norm of the rows whose states are wanted: out [hidden_rows][dim]. Behind a barrier where
// rows are shared out.
void WriteHiddenRows(Pass& pass, float* out);
// Final norm of the rows whose logits are wanted, behind barriers where needed. `deferred`: into
// ws.shared.norm_in in any case, for Model::Logits.
Input GatherLogitRows(Pass& pass, InputForms forms, bool deferred);
// Logits of in.rows rows, scaled and capped.
void OutputLogits(const Config& config, Worker& worker, const Workspace& ws, const Weight& output,
                  const Input& in, const LogitsOut& out);

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
