// Views of a bound model's weights: matrices with their format and the memory
// that holds them, and small float vectors. The WeightStore owns the memory and
// must outlive every view. Shapes were checked when they were bound.
#ifndef SLUICE_SRC_MODEL_WEIGHTS_H_
#define SLUICE_SRC_MODEL_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "quant/format.h"

namespace sluice {

// The forms of an input that products read beside its floats (Input in workspace.h).
struct InputForms {
  bool int8 = false;
  bool bf16 = false;
  explicit operator bool() const { return int8 || bf16; }
  friend InputForms operator|(InputForms a, InputForms b) {
    return {a.int8 || b.int8, a.bf16 || b.bf16};
  }
};

// One matrix [rows][k], or `experts` of them behind each other.
struct Weight {
  const Format* format = nullptr;  // null: this model has no such matrix
  const uint8_t* data = nullptr;
  bool panels = false;  // data is in panel form (quant/panels.h); otherwise GGUF rows
  size_t rows = 0, k = 0;
  size_t experts = 1;
  size_t expert_bytes = 0;      // bytes of one of the matrices
  const float* bias = nullptr;  // [experts][rows], or null
  bool exact = false;           // multiplied as decoded floats, whatever the format

  bool dots_bf16 = false;  // multiplies inputs rounded to bfloat16

  InputForms Reads() const {
    return {format && !exact && format->arithmetic == Arithmetic::kInt8, dots_bf16};
  }

  explicit operator bool() const { return format != nullptr; }
  size_t bytes() const { return experts * expert_bytes; }
  // Output rows [begin, begin + count) as a matrix of their own; begin is a multiple of 16.
  Weight Rows(size_t begin, size_t count) const {
    Weight w = *this;
    w.data += panels ? begin / kPanelRows * (k / format->block_values * format->panel_block_bytes)
                     : begin * format->RowBytes(k);
    w.rows = count;
    if (w.bias) w.bias += begin;
    return w;
  }
  Weight Expert(size_t e) const {
    Weight w = *this;
    w.data += e * expert_bytes;
    w.experts = 1;
    if (w.bias) w.bias += e * rows;
    return w;
  }
};

// A norm's vectors [n]; weight null: there is no such norm.
struct NormWeights {
  const float* weight = nullptr;
  const float* bias = nullptr;
  explicit operator bool() const { return weight != nullptr; }
};

struct LayerWeights {
  NormWeights attn_norm;       // before attention
  NormWeights attn_post_norm;  // of the attention's output, before it is added
  NormWeights ffn_norm;        // before the MLP
  NormWeights ffn_post_norm;
  NormWeights q_norm, k_norm;  // per head or whole projection (Config::qk_norm)

  Weight qkv;  // [q | k | v] in one matrix, or the three apart
  Weight q, k, v;
  Weight o;
  const float* sinks = nullptr;  // [heads] extra logit of each head's soft-max

  Weight gate, up,
      down;  // MLP; up is [gate | up] in one matrix when gate is absent and the MLP is gated

  Weight router;                       // [experts][dim]
  const float* router_bias = nullptr;  // [experts] added for the selection only
  Weight expert_gate, expert_up, expert_down;
  Weight shared_gate, shared_up, shared_down;
  Weight shared_router;  // [1][dim] sigmoid gate of the shared expert

  // Latent attention
  NormWeights q_a_norm, kv_a_norm;
  Weight q_a, q_b;  // through the q rank; q alone otherwise
  Weight kv_a;      // [kv_rank + rope][dim]
  Weight k_b;       // per head [kv_rank][nope]
  Weight v_b;       // per head [head_value_dim][kv_rank]
};

// Calls dense(weight) for the layer's matrices that every row goes through and sparse(weight) for
// those of experts; absent ones are left out.
template <class Dense, class Sparse>
void ForEachMatrix(const LayerWeights& l, const Dense& dense, const Sparse& sparse) {
  for (const Weight* w :
       {&l.qkv, &l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down, &l.router, &l.shared_gate,
        &l.shared_up, &l.shared_down, &l.shared_router, &l.q_a, &l.q_b, &l.kv_a, &l.k_b, &l.v_b}) {
    if (*w) dense(*w);
  }
  for (const Weight* w : {&l.expert_gate, &l.expert_up, &l.expert_down}) {
    if (*w) sparse(*w);
  }
}

// Rotary frequencies [rope dims / 2] of each kind of layer; full_long: LongRoPE past the original
// context.
struct RopeTable {
  std::vector<float> full, full_long, windowed;
};

struct Weights {
  Weight embedding;           // [vocab][dim], always GGUF rows: single rows are read
  Weight position_embedding;  // [context][dim] learned positions, or absent
  NormWeights output_norm;
  Weight output;  // [vocab][dim]; tied models: the embedding matrix again
  RopeTable rope;
  std::vector<LayerWeights> layers;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_WEIGHTS_H_
