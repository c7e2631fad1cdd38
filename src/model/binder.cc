#include "src/model/binder.h"

#include "src/base/printable.h"
#include "src/model/config.h"
#include "src/model/rope.h"

namespace sluice {

namespace {

std::string Shape(const GgufTensor& t) {
  std::string s = "[";
  for (uint32_t i = 0; i < t.dims; ++i) s += (i ? ", " : "") + std::to_string(t.shape[i]);
  return s + "]";
}

}  // namespace

void Binder::Fail(StatusCode code, std::string message) {
  if (status_.ok()) status_ = Status(code, std::move(message));
}

const GgufTensor* Binder::Require(const std::string& tensor) {
  const GgufTensor* t = gguf_.FindTensor(tensor);
  if (!t) Fail(StatusCode::kCorrupt, "tensor " + tensor + " is missing");
  return t;
}

bool Binder::ShapeIs(const GgufTensor& t, size_t rows, size_t k, size_t experts) {
  if (t.shape[0] == k && t.shape[1] == rows && t.shape[2] == experts && t.shape[3] == 1) {
    return true;
  }
  std::string want = "[" + std::to_string(k) + ", " + std::to_string(rows);
  if (experts > 1) want += ", " + std::to_string(experts);
  Fail(StatusCode::kCorrupt,
       "tensor " + Printable(t.name) + ": expected shape " + want + "], found " + Shape(t));
  return false;
}

Weight Binder::Matrix(const std::string& name, size_t rows, size_t k, size_t experts) {
  const GgufTensor* t = Require(name + ".weight");
  if (!t || !ShapeIs(*t, rows, k, experts)) return {};
  if (!t->format || !t->format->matmul) {
    Fail(StatusCode::kUnsupported,
         "tensor " + Printable(t->name) + ": no kernel multiplies its type (" +
             (t->format ? std::string(t->format->name) : "number " + std::to_string(t->type_id)) +
             "); convert the model to another quantisation");
    return {};
  }
  Weight w;
  w.format = t->format;
  w.rows = rows;
  w.k = k;
  w.experts = experts;
  store_.Place(*t, &w);
  w.bias = OptionalVector(name + ".bias", rows * experts);
  return w;
}

Weight Binder::OptionalMatrix(const std::string& name, size_t rows, size_t k, size_t experts) {
  return Has(name + ".weight") ? Matrix(name, rows, k, experts) : Weight{};
}

Weight Binder::Table(const std::string& name, size_t rows, size_t k) {
  const GgufTensor* t = Require(name + ".weight");
  if (!t || !ShapeIs(*t, rows, k, 1)) return {};
  if (!t->format) {
    Fail(StatusCode::kUnsupported,
         "tensor " + Printable(t->name) + ": unknown type number " + std::to_string(t->type_id));
    return {};
  }
  Weight w;
  w.format = t->format;
  w.data = t->data;
  w.rows = rows;
  w.k = k;
  w.expert_bytes = t->bytes;
  return w;
}

const float* Binder::Vector(const std::string& tensor, size_t n) {
  const GgufTensor* t = Require(tensor);
  if (!t) return nullptr;
  if (t->Elements() != n) {
    Fail(StatusCode::kCorrupt, "tensor " + Printable(t->name) + ": expected " + std::to_string(n) +
                                   " values, found shape " + Shape(*t));
    return nullptr;
  }
  if (!t->format || t->format->block_values != 1) {
    Fail(StatusCode::kUnsupported, "tensor " + Printable(t->name) +
                                       ": expected F32, F16 or BF16, found " +
                                       (t->format ? std::string(t->format->name)
                                                  : "type number " + std::to_string(t->type_id)));
    return nullptr;
  }
  return store_.Floats(*t);
}

const float* Binder::OptionalVector(const std::string& tensor, size_t n) {
  return Has(tensor) ? Vector(tensor, n) : nullptr;
}

NormWeights Binder::Norm(const std::string& name, size_t n) {
  return {Vector(name + ".weight", n), OptionalVector(name + ".bias", n)};
}

namespace {

void BindExperts(Binder& b, const Config& c, const std::string& p, LayerWeights* l) {
  const MoeConfig& moe = c.moe;
  l->router = b.Matrix(p + "ffn_gate_inp", moe.experts, c.dim);
  l->router_bias = b.OptionalVector(p + "exp_probs_b.bias", moe.experts);
  l->expert_gate = b.Matrix(p + "ffn_gate_exps", moe.ffn_dim, c.dim, moe.experts);
  l->expert_up = b.Matrix(p + "ffn_up_exps", moe.ffn_dim, c.dim, moe.experts);
  l->expert_down = b.Matrix(p + "ffn_down_exps", c.dim, moe.ffn_dim, moe.experts);
  if (moe.shared_ffn_dim == 0) return;
  l->shared_gate = b.Matrix(p + "ffn_gate_shexp", moe.shared_ffn_dim, c.dim);
  l->shared_up = b.Matrix(p + "ffn_up_shexp", moe.shared_ffn_dim, c.dim);
  l->shared_down = b.Matrix(p + "ffn_down_shexp", c.dim, moe.shared_ffn_dim);
  l->shared_router = b.OptionalMatrix(p + "ffn_gate_inp_shexp", 1, c.dim);
}

void BindMlp(Binder& b, const Config& c, const std::string& p, LayerWeights* l) {
  const bool apart = c.gated_mlp && b.Has(p + "ffn_gate.weight");
  if (c.gated_mlp && !apart && c.ffn_dim % kPanelRows != 0) {  // up would begin inside a panel
    return b.Fail(StatusCode::kUnsupported, p +
                                                "ffn_up holds gate and up in one matrix: expected "
                                                "a width that is a multiple of 16, found " +
                                                std::to_string(c.ffn_dim));
  }
  if (apart) l->gate = b.Matrix(p + "ffn_gate", c.ffn_dim, c.dim);
  l->up = b.Matrix(p + "ffn_up", c.gated_mlp && !apart ? 2 * c.ffn_dim : c.ffn_dim, c.dim);
  l->down = b.Matrix(p + "ffn_down", c.dim, c.ffn_dim);
}

void BindAttention(Binder& b, const Config& c, const std::string& p, LayerWeights* l) {
  if (b.Has(p + "attn_qkv.weight")) {
    l->qkv = b.Matrix(p + "attn_qkv", c.q_dim() + c.k_dim() + c.v_dim(), c.dim);
  } else {
    l->q = b.Matrix(p + "attn_q", c.q_dim(), c.dim);
    l->k = b.Matrix(p + "attn_k", c.k_dim(), c.dim);
    l->v = b.Matrix(p + "attn_v", c.v_dim(), c.dim);
  }
  l->o = b.Matrix(p + "attn_output", c.dim, c.heads * c.value_dim);
  if (c.qk_norm != QkNorm::kNone) {
    const bool per_head = c.qk_norm == QkNorm::kPerHead;
    l->q_norm = b.Norm(p + "attn_q_norm", per_head ? c.key_dim : c.q_dim());
    l->k_norm = b.Norm(p + "attn_k_norm", per_head ? c.key_dim : c.k_dim());
  }
  l->sinks = b.OptionalVector(p + "attn_sinks.weight", c.heads);
}

void BindRope(Binder& b, const Config& c, RopeTable* table) {
  const size_t pairs = c.rope.dims / 2;
  const float* factors = b.OptionalVector("rope_freqs.weight", pairs);
  if (const float* f = b.OptionalVector("rope_factors_short.weight", pairs)) factors = f;
  const float* far = b.OptionalVector("rope_factors_long.weight", pairs);
  table->full = RopeFrequencies(c.rope, false, factors);
  table->full_long = far ? RopeFrequencies(c.rope, false, far) : table->full;
  table->windowed = RopeFrequencies(c.rope, true, factors);
}

}  // namespace

void BindOutside(Binder& b, const Config& c, const DecoderNames& names, Weights* w) {
  w->embedding = b.Table("token_embd", c.vocab, c.dim);
  w->output_norm = b.Norm("output_norm", c.dim);
  // Tied models multiply by the embedding matrix again.
  w->output = b.Matrix(b.Has("output.weight") ? "output" : "token_embd", c.vocab, c.dim);
  if (c.rope.style != RopeStyle::kNone) BindRope(b, c, &w->rope);
  w->layers.resize(c.layers);
  for (size_t i = 0; i < c.layers && b.status().ok(); ++i) {
    LayerWeights* l = &w->layers[i];
    const std::string p = "blk." + std::to_string(i) + ".";
    if (names.attn_norm) l->attn_norm = b.Norm(p + names.attn_norm, c.dim);
    if (names.ffn_norm) l->ffn_norm = b.Norm(p + names.ffn_norm, c.dim);
    if (names.attn_post_norm) l->attn_post_norm = b.Norm(p + names.attn_post_norm, c.dim);
    if (names.ffn_post_norm) l->ffn_post_norm = b.Norm(p + names.ffn_post_norm, c.dim);
    if (c.Sparse(i)) {
      BindExperts(b, c, p, l);
    } else {
      BindMlp(b, c, p, l);
    }
  }
}

void BindDecoder(Binder& b, const Config& c, const DecoderNames& names, Weights* w) {
  BindOutside(b, c, names, w);
  for (size_t i = 0; i < c.layers && b.status().ok(); ++i) {
    BindAttention(b, c, "blk." + std::to_string(i) + ".", &w->layers[i]);
  }
}

}  // namespace sluice
