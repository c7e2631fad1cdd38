// DeepSeek V2, V2 Lite, V3 (DeepSeek-AI 2024): multi-head latent attention and
// a mixture of experts with shared ones.
//
// The cache holds one latent per position for all heads: key = [c | k_rope],
// value = c, with c [kv_rank] normed and k_rope [rope] rotated. Both up
// projections are absorbed: a head's query becomes [k_b q_nope | q_rope], and
// its output is v_b times the attended latent. Scores equal the paper's form.
#include <algorithm>
#include <cmath>

#include "src/model/architecture.h"
#include "src/model/decoder.h"
#include "src/model/layers.h"
#include "src/model/ops.h"

namespace sluice {
namespace {

void ReadRouting(ConfigReader& r, Config* c) {
  ReadExperts(r, c);
  const size_t gating = r.CountOr("expert_gating_func", 0, 0, 100);
  if (gating > 2) {
    r.Fail(
        StatusCode::kUnsupported,
        "metadata key deepseek2.expert_gating_func: expected 1 (soft-max) or 2 (sigmoid), found " +
            std::to_string(gating));
  }
  c->moe.routing = gating == 2 ? Routing::kSigmoid : Routing::kSoftmax;  // absent: V2, soft-max
  c->moe.renormalise = r.BoolOr("expert_weights_norm", false);
}

void ReadConfig(ConfigReader& r, Config* c) {
  c->rope.style = RopeStyle::kAdjacent;
  ReadDecoderConfig(r, c);
  ReadRouting(r, c);
  if (!r.Has("attention.key_length_mla")) {
    r.Fail(StatusCode::kUnsupported,
           "metadata key deepseek2.attention.key_length_mla is missing: the file was converted "
           "before latent attention was split; convert the model again");
    return;
  }
  LatentConfig& mla = c->latent;
  mla.q_rank = r.CountOr("attention.q_lora_rank", 0, 0, 1 << 20);
  mla.kv_rank = r.Count("attention.kv_lora_rank", 8, 1 << 20);
  mla.rope_dim = c->rope.dims;
  const size_t head = r.Count("attention.key_length_mla", 1, 4096);
  mla.head_value_dim = r.Count("attention.value_length_mla", 1, 4096);
  if (head <= mla.rope_dim || c->kv_heads != 1 || c->key_dim != mla.kv_rank + mla.rope_dim ||
      c->value_dim != mla.kv_rank) {
    r.Fail(StatusCode::kCorrupt,
           "the latent attention's sizes contradict each other (key_length " +
               std::to_string(c->key_dim) + ", value_length " + std::to_string(c->value_dim) +
               ", kv_lora_rank " + std::to_string(mla.kv_rank) + ", rope " +
               std::to_string(mla.rope_dim) + ", key_length_mla " + std::to_string(head) + ")");
    return;
  }
  mla.nope_dim = head - mla.rope_dim;
  c->attention_scale = 1 / std::sqrt(static_cast<float>(head));
  // The file's multiplier is 0.1 mscale_all_dim. With mscale = mscale_all_dim, which all released
  // models have, cos and sin stay unscaled and the scores take the square of the correction.
  if (c->rope.scaling == RopeScaling::kYarn && r.Has("rope.scaling.yarn_log_multiplier")) {
    const float m = 1 + r.FloatOr("rope.scaling.yarn_log_multiplier", 0) * std::log(c->rope.factor);
    c->attention_scale *= m * m;
    c->rope.attention_factor = 1;
  }
}

void Bind(Binder& b, const Config& c, Weights* w) {
  BindOutside(b, c, {}, w);
  const LatentConfig& mla = c.latent;
  const size_t q_rows = c.heads * (mla.nope_dim + mla.rope_dim);
  for (size_t i = 0; i < c.layers && b.status().ok(); ++i) {
    LayerWeights& l = w->layers[i];
    const std::string p = "blk." + std::to_string(i) + ".";
    if (mla.q_rank) {
      l.q_a = b.Matrix(p + "attn_q_a", mla.q_rank, c.dim);
      l.q_a_norm = b.Norm(p + "attn_q_a_norm", mla.q_rank);
      l.q_b = b.Matrix(p + "attn_q_b", q_rows, mla.q_rank);
    } else {
      l.q = b.Matrix(p + "attn_q", q_rows, c.dim);
    }
    l.kv_a = b.Matrix(p + "attn_kv_a_mqa", mla.kv_rank + mla.rope_dim, c.dim);
    l.kv_a_norm = b.Norm(p + "attn_kv_a_norm", mla.kv_rank);
    l.k_b = b.Matrix(p + "attn_k_b", mla.kv_rank, mla.nope_dim, c.heads);
    l.v_b = b.Matrix(p + "attn_v_b", mla.head_value_dim, mla.kv_rank, c.heads);
    l.o = b.Matrix(p + "attn_output", c.dim, c.heads * mla.head_value_dim);
  }
}

// q_full [R][heads][nope + rope], and the joint latent and key rope, from the normed input.
void Project(Pass& pass, const LayerWeights& w, const Input& in, size_t stride) {
  const Config& c = pass.config;
  const LatentConfig& mla = c.latent;
  const size_t q_rows = c.heads * (mla.nope_dim + mla.rope_dim);
  MatMul(pass, in, stride, {{w.kv_a, pass.ws.qkv + c.q_dim()}});
  if (!mla.q_rank) {
    MatMul(pass, in, q_rows, {{w.q, pass.ws.q_full}});
    return;
  }
  MatMul(pass, in, mla.q_rank, {{w.q_a, pass.ws.q_low}});
  pass.Barrier();
  const Input low = pass.ws.q_low_in.View(pass.rows(), mla.q_rank);
  NormShare(pass, pass.ws.q_low, w.q_a_norm, low, ReadsInt8(w.q_b));
  pass.Barrier();
  MatMul(pass, low, q_rows, {{w.q_b, pass.ws.q_full}});
}

// Per row: norm the latent, rotate the shared key and every head's rope part, store key and value,
// lay the heads' nope parts out as inputs of k_b.
void RotateAndStoreLatent(Pass& pass, size_t layer, const Input& nope, size_t stride) {
  const Config& c = pass.config;
  const LatentConfig& mla = c.latent;
  const LayerWeights& w = pass.weights.layers[layer];
  const size_t head_dim = mla.nope_dim + mla.rope_dim;
  const auto [begin, end] = pass.worker.Share(pass.rows());
  for (size_t t = begin; t < end; ++t) {
    float* q = pass.ws.qkv + t * stride;
    float* key = q + c.q_dim();
    NormVector(c, w.kv_a_norm, key, mla.kv_rank, key);
    RotateHead(pass, layer, t, key + mla.kv_rank);
    StoreKeyValue(pass, layer, 0, t, key, key);
    for (size_t h = 0; h < c.heads; ++h) {
      float* head = pass.ws.q_full + (t * c.heads + h) * head_dim;
      std::copy_n(head, mla.nope_dim, nope.row(t * c.heads + h));
      RotateHead(pass, layer, t, head + mla.nope_dim);
      std::copy_n(head + mla.nope_dim, mla.rope_dim, q + h * c.key_dim + mla.kv_rank);
    }
  }
}

// out column block of each head = weight.Expert(head) times that head's row of `in` [R * heads][k].
void PerHead(Pass& pass, const Weight& weight, const Input& in, float* out, size_t head_stride,
             size_t stride) {
  if (ReadsInt8(weight)) {
    QuantiseRows(pass, in);
    pass.Barrier();
  }
  for (size_t h = 0; h < pass.config.heads; ++h) {
    MatMulRows(pass, weight.Expert(h), in, pass.ws.head_rows + h * pass.ws.max_rows, pass.rows(),
               out + h * head_stride, stride);
  }
}

void LatentAttention(Pass& pass, size_t layer, const Input& in) {
  const Config& c = pass.config;
  const LatentConfig& mla = c.latent;
  const LayerWeights& w = pass.weights.layers[layer];
  const size_t R = pass.rows(), stride = c.q_dim() + c.k_dim() + c.v_dim();
  Project(pass, w, in, stride);
  pass.Barrier();

  const Input nope = pass.ws.nope_in.View(R * c.heads, mla.nope_dim);
  RotateAndStoreLatent(pass, layer, nope, stride);
  pass.Barrier();
  PerHead(pass, w.k_b, nope, pass.ws.qkv, c.key_dim, stride);
  pass.Barrier();

  const Input latent = pass.ws.latent_in.View(R * c.heads, mla.kv_rank);
  Input by_row = latent;  // the same memory as [R][heads * kv_rank]
  by_row.rows = R;
  by_row.k = c.heads * mla.kv_rank;
  Attend(pass, layer, pass.ws.qkv, stride, by_row, nullptr, false);
  pass.Barrier();
  const Input out = pass.ws.attn_in.View(R, c.heads * mla.head_value_dim);
  PerHead(pass, w.v_b, latent, out.f32, mla.head_value_dim, out.k);
  pass.Barrier();
  if (ReadsInt8(w.o)) {
    QuantiseRows(pass, out);
    pass.Barrier();
  }
  MatMul(pass, out, c.dim, {{w.o, pass.ws.branch}});
}

void Forward(Pass& pass) { DecoderForward(pass, LatentAttention); }

}  // namespace

extern const Architecture kDeepSeek2{"deepseek2", ReadConfig, Bind, Forward};

}  // namespace sluice
