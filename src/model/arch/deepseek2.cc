// DeepSeek V2, V2 Lite, V3 (DeepSeek-AI 2024): multi-head latent attention and
// a mixture of experts with shared ones.
//
// The cache holds one latent per position for all heads: key = [c | k_rope],
// value = c, with c [kv_rank] normed and k_rope [rope] rotated. Both up
// projections are absorbed: a head's query becomes [k_b q_nope | q_rope], and
// its output is v_b times the attended latent. Scores equal the paper's form. Decode has six
// barriers here, five without a low-rank query.
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
  const Workspace& ws = pass.ws;
  const size_t q_rows = c.heads * (mla.nope_dim + mla.rope_dim);
  const Product key{w.kv_a, ws.qkv + c.q_dim(), stride};
  if (!mla.q_rank) {
    MatMul(pass, in, {key, {w.q, ws.q_full, q_rows}});
    return;
  }
  MatMul(pass, in, {key, {w.q_a, ws.q_low, mla.q_rank}});
  pass.Barrier();
  const Input low = pass.own.q_low_in.View(pass.rows(), mla.q_rank);
  NormRows(pass, ws.q_low, w.q_a_norm, low, Reads(w.q_b));
  pass.RowBarrier();
  MatMul(pass, low, {{w.q_b, ws.q_full, q_rows}});
}

// The row's latent normed, its shared key rotated, both stored.
void StoreLatent(Pass& pass, size_t layer, size_t t, float* key) {
  const LatentConfig& mla = pass.config.latent;
  NormVector(pass.config, pass.weights.layers[layer].kv_a_norm, key, mla.kv_rank, key);
  RotateHead(pass, layer, t, key + mla.kv_rank);
  StoreKeyValue(pass, layer, 0, t, key, key);
}

// Head h of every row: rope part rotated, nope part multiplied with k_b, into its query.
void AbsorbKey(Pass& pass, size_t layer, size_t h, const Input& nope, size_t stride) {
  const Config& c = pass.config;
  const LatentConfig& mla = c.latent;
  const Weight& k_b = pass.weights.layers[layer].k_b;
  float* const queries = pass.ws.qkv + h * c.key_dim;
  for (size_t t = 0; t < pass.rows(); ++t) {
    const size_t row = t * c.heads + h;
    float* const head = pass.ws.q_full + row * (mla.nope_dim + mla.rope_dim);
    std::copy_n(head, mla.nope_dim, nope.row(row));
    nope.Fill(Reads(k_b), row);
    RotateHead(pass, layer, t, head + mla.nope_dim);
    std::copy_n(head + mla.nope_dim, mla.rope_dim, queries + t * stride + mla.kv_rank);
  }
  MatMulAlone(pass, k_b.Expert(h), nope, pass.ws.head_rows + h * pass.ws.max_rows, pass.rows(),
              queries, stride);
}

void LatentAttention(Pass& pass, size_t layer, const Input& in) {
  const Config& c = pass.config;
  const LatentConfig& mla = c.latent;
  const LayerWeights& w = pass.weights.layers[layer];
  const size_t R = pass.rows(), stride = c.q_dim() + c.k_dim() + c.v_dim();
  Project(pass, w, in, stride);
  pass.Barrier();

  const Input nope = pass.ws.nope_in.View(R * c.heads, mla.nope_dim);
  const size_t parts[] = {c.heads, R};
  pass.worker.ForTiles(parts, [&](size_t part, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (part == 0) {
        AbsorbKey(pass, layer, i, nope, stride);
      } else {
        StoreLatent(pass, layer, i, pass.ws.qkv + i * stride + c.q_dim());
      }
    }
  });
  pass.Barrier();

  // Without gaps, so that attention can write all heads of a row.
  const Input latent = pass.ws.latent_in.View(R * c.heads, mla.kv_rank, mla.kv_rank);
  const Input by_row = latent.Joined(c.heads);
  const InputForms reads = Reads(w.v_b);
  const bool filled = Attend(pass, layer, pass.ws.qkv, stride, by_row, nullptr, reads);
  pass.Barrier();
  if (reads && !filled) {
    FillForms(pass, latent, reads);
    pass.Barrier();
  }

  const Input out = pass.ws.attn_in.View(R, c.heads * mla.head_value_dim);
  const bool fills = !Reads(w.o).int8 || mla.head_value_dim % kActBlock == 0;  // whole blocks
  pass.worker.ForTiles(c.heads, [&](size_t begin, size_t end) {
    for (size_t h = begin; h < end; ++h) {
      const size_t first = h * mla.head_value_dim, last = first + mla.head_value_dim;
      MatMulAlone(pass, w.v_b.Expert(h), latent, pass.ws.head_rows + h * pass.ws.max_rows, R,
                  out.f32 + first, out.stride);
      for (size_t t = 0; fills && t < R; ++t) out.Fill(Reads(w.o), t, first, last);
    }
  });
  pass.Barrier();
  if (!fills) {
    FillForms(pass, out, Reads(w.o));
    pass.Barrier();
  }
  MatMul(pass, out, {{w.o, pass.ws.branch, c.dim}});
}

void Forward(Pass& pass) { DecoderForward(pass, LatentAttention); }

}  // namespace

extern const Architecture kDeepSeek2{"deepseek2", ReadConfig, Bind, Forward};

}  // namespace sluice
