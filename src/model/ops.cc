#include "src/model/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "quant/generic_matmul.h"
#include "simd/attention.h"
#include "simd/vector_ops.h"
#include "src/model/kv_cache.h"
#include "src/model/rope.h"

namespace sluice {

namespace {

// Calls fn(segment, row) for each of rows [begin, end), in order.
template <class F>
void ForRows(const Batch& batch, size_t begin, size_t end, const F& fn) {
  for (const BatchSegment& s : batch.segments) {
    const size_t last = std::min(end, s.first_row + s.rows);
    for (size_t t = std::max(begin, s.first_row); t < last; ++t) fn(s, t);
  }
}

int32_t PositionOf(const BatchSegment& s, size_t row) {
  return s.first_position + static_cast<int32_t>(row - s.first_row);
}

const BatchSegment& SegmentOf(const Batch& batch, size_t row) {
  size_t i = 0;
  while (row >= batch.segments[i].first_row + batch.segments[i].rows) ++i;
  return batch.segments[i];
}

constexpr size_t kFewRows = 8;  // rows that a kernel takes at once from the panels themselves

// This worker's output columns of a product. Many rows go through tiles of two panels: a share
// should not end inside one.
std::pair<size_t, size_t> ColumnShare(Worker& worker, size_t columns, size_t rows) {
  return worker.Share(columns, rows > kFewRows ? 2 * kPanelRows : kPanelRows);
}

MatMulArgs ArgsFor(Worker& worker, const Workspace& ws, const Weight& w, const Input& in,
                   float* out, size_t stride) {
  MatMulArgs args;
  args.weights = w.data;
  args.panels = w.panels;
  args.rows = w.rows;
  std::tie(args.row_begin, args.row_end) = ColumnShare(worker, w.rows, in.rows);
  args.k = w.k;
  args.tokens = in.rows;
  args.act = in.act;
  args.f32 = in.f32;
  args.f32_stride = in.k;
  args.out = out;
  args.out_stride = stride;
  args.scratch = ws.MatMulScratch(static_cast<size_t>(worker.index()));
  return args;
}

void Multiply(const Weight& w, const MatMulArgs& args) {
  if (args.row_begin == args.row_end || args.tokens == 0) return;
  if (w.exact) {
    MatMulDecoded(*w.format, args);
  } else {
    w.format->matmul(args);
  }
  if (!w.bias) return;
  for (size_t t = 0; t < args.tokens; ++t) {
    Add(w.bias + args.row_begin, args.row_end - args.row_begin,
        args.out + t * args.out_stride + args.row_begin);
  }
}

void ActivationFor(Gate gate, const float* g, const float* up, size_t n, float* out) {
  // gpt-oss: alpha and limit are constants of the model, not in its metadata.
  constexpr float kAlpha = 1.702f, kLimit = 7.0f;
  switch (gate) {
    case Gate::kSilu:
      return SiluMul(g, up, n, out);
    case Gate::kGeluTanh:
      return GeluTanhMul(g, up, n, out);
    case Gate::kGeluErf:
      return GeluErfMul(g, up, n, out);
    case Gate::kRelu:
      return ReluMul(g, up, n, out);
    case Gate::kClampedSwiGlu:
      return ClampedSwiGlu(g, up, kAlpha, kLimit, n, out);
  }
}

}  // namespace

void NormVector(const Config& config, const NormWeights& norm, const float* x, size_t n,
                float* out) {
  if (!norm) {
    std::copy_n(x, n, out);
  } else if (config.norm == NormKind::kRms) {
    RmsNorm(x, norm.weight, config.norm_eps, n, out);
  } else {
    LayerNorm(x, norm.weight, norm.bias, config.norm_eps, n, out);
  }
}

void Embed(Pass& pass) {
  const Config& c = pass.config;
  const auto [begin, end] = pass.worker.Share(pass.rows());
  ForRows(pass.batch, begin, end, [&](const BatchSegment& s, size_t t) {
    float* x = pass.ws.x + t * c.dim;
    auto row = [&](const Weight& w, size_t i) { return w.data + i * w.format->RowBytes(w.k); };
    const Weight& e = pass.weights.embedding;
    e.format->decode(row(e, static_cast<size_t>(pass.batch.tokens[t])), c.dim, x);
    if (c.embedding_scale != 1) Scale(c.embedding_scale, c.dim, x);
    const Weight& p = pass.weights.position_embedding;
    if (p) {
      float* learned = pass.ws.branch + t * c.dim;
      p.format->decode(row(p, static_cast<size_t>(PositionOf(s, t))), c.dim, learned);
      Add(learned, c.dim, x);
    }
  });
}

void FillRope(Pass& pass) {
  const Config& c = pass.config;
  const size_t pairs = c.rope.dims / 2;
  if (c.rope.style == RopeStyle::kNone || pairs == 0) return;
  const auto [begin, end] = pass.worker.Share(pass.rows());
  ForRows(pass.batch, begin, end, [&](const BatchSegment& s, size_t t) {
    for (int windowed = 0; windowed < (c.window > 0 ? 2 : 1); ++windowed) {
      const RopeTable& table = pass.weights.rope;
      const auto& freq = windowed ? table.windowed : s.kv->long_rope ? table.full_long : table.full;
      RopeAngles(freq, PositionOf(s, t), c.rope.attention_factor,
                 pass.ws.rope_cos[windowed] + t * pairs, pass.ws.rope_sin[windowed] + t * pairs);
    }
  });
}

void QuantiseRows(Pass& pass, const Input& in) {
  const auto [begin, end] = pass.worker.Share(in.rows);
  for (size_t t = begin; t < end; ++t) QuantiseRow(in.row(t), in.act, t);
}

void NormRows(Pass& pass, const float* x, const NormWeights& norm, const Input& in, bool quantise) {
  const auto [begin, end] = pass.worker.Share(in.rows);
  for (size_t t = begin; t < end; ++t) {
    NormVector(pass.config, norm, x + t * in.k, in.k, in.row(t));
    if (quantise) QuantiseRow(in.row(t), in.act, t);
  }
}

void AddBranch(Pass& pass, float* branch, const NormWeights& post_norm) {
  const Config& c = pass.config;
  const auto [begin, end] = pass.worker.Share(pass.rows());
  for (size_t t = begin; t < end; ++t) {
    float* b = branch + t * c.dim;
    if (post_norm) NormVector(c, post_norm, b, c.dim, b);
    if (c.residual_scale == 1) {
      Add(b, c.dim, pass.ws.x + t * c.dim);
    } else {
      AddScaled(b, c.residual_scale, c.dim, pass.ws.x + t * c.dim);
    }
  }
}

void MultiplyShare(Worker& worker, const Workspace& ws, const Weight& weight, const Input& in,
                   float* out, size_t stride) {
  Multiply(weight, ArgsFor(worker, ws, weight, in, out, stride));
}

void MatMul(Pass& pass, const Weight& weight, const Input& in, float* out, size_t stride) {
  MultiplyShare(pass.worker, pass.ws, weight, in, out, stride);
}

void MatMulRows(Pass& pass, const Weight& weight, const Input& in, const int32_t* token_rows,
                size_t tokens, float* out, size_t stride) {
  MatMulArgs args = ArgsFor(pass.worker, pass.ws, weight, in, out, stride);
  args.token_rows = token_rows;
  args.tokens = tokens;
  Multiply(weight, args);
}

void RotateHead(Pass& pass, size_t layer, size_t t, float* head) {
  const Config& c = pass.config;
  if (c.rope.style == RopeStyle::kNone || c.no_rope[layer]) return;
  const size_t pairs = c.rope.dims / 2;
  const int kind = c.Windowed(layer) ? 1 : 0;
  const float* cos = pass.ws.rope_cos[kind] + t * pairs;
  const float* sin = pass.ws.rope_sin[kind] + t * pairs;
  if (c.rope.style == RopeStyle::kHalves) {
    RopeHalves(head, cos, sin, pairs);
  } else {
    RopeAdjacent(head, cos, sin, pairs);
  }
}

void StoreKeyValue(Pass& pass, size_t layer, size_t kv_head, size_t t, const float* key,
                   const float* value) {
  const BatchSegment& s = SegmentOf(pass.batch, t);
  const size_t position = static_cast<size_t>(PositionOf(s, t));
  KvStore(s.kv->shape(), s.kv->page_of(layer, kv_head, position), position % kSpan, key, value);
}

void RotateAndStore(Pass& pass, size_t layer) {
  const Config& c = pass.config;
  const LayerWeights& w = pass.weights.layers[layer];
  const size_t stride = c.q_dim() + c.k_dim() + c.v_dim();
  const auto [begin, end] = pass.worker.Share(pass.rows());
  for (size_t t = begin; t < end; ++t) {
    float* q = pass.ws.qkv + t * stride;
    float* k = q + c.q_dim();
    const float* v = k + c.k_dim();
    if (c.qk_norm == QkNorm::kWholeProjection) {
      NormVector(c, w.q_norm, q, c.q_dim(), q);
      NormVector(c, w.k_norm, k, c.k_dim(), k);
    }
    const bool per_head = c.qk_norm == QkNorm::kPerHead;
    for (size_t h = 0; h < c.heads; ++h) {
      float* head = q + h * c.key_dim;
      if (per_head) NormVector(c, w.q_norm, head, c.key_dim, head);
      RotateHead(pass, layer, t, head);
    }
    for (size_t h = 0; h < c.kv_heads; ++h) {
      float* head = k + h * c.key_dim;
      if (per_head) NormVector(c, w.k_norm, head, c.key_dim, head);
      RotateHead(pass, layer, t, head);
      StoreKeyValue(pass, layer, h, t, head, v + h * c.value_dim);
    }
  }
}

namespace {

constexpr size_t kTaskQueries = 64;  // most query rows of one attention task

// How attention is cut into tasks: query rows of one segment and heads of one kv head.
// Any cut gives the same bytes; this one keeps a tile full and every worker busy.
struct AttentionCut {
  size_t heads_per_task, rows_per_task, pieces;

  AttentionCut(const Config& c, const Batch& batch, size_t workers) {
    const size_t group = c.heads / c.kv_heads;
    size_t least = 0;  // tasks when a task takes the whole group
    for (const BatchSegment& s : batch.segments) {
      const size_t rows = std::max<size_t>(1, 48 / std::min(group, kTaskQueries));
      least += (s.rows + rows - 1) / rows * c.kv_heads;
    }
    const size_t split = least >= workers ? 1 : (workers + least - 1) / least;
    heads_per_task = std::min((group + split - 1) / split, kTaskQueries);
    pieces = (group + heads_per_task - 1) / heads_per_task;
    rows_per_task = std::max<size_t>(1, 48 / heads_per_task);
  }
  size_t Blocks(const BatchSegment& s) const {
    return (s.rows + rows_per_task - 1) / rows_per_task;
  }
};

}  // namespace

void Attend(Pass& pass, size_t layer, const float* queries, size_t stride, const Input& out,
            const float* sinks) {
  const Config& c = pass.config;
  const size_t group = c.heads / c.kv_heads;
  const AttentionCut cut(c, pass.batch, static_cast<size_t>(pass.worker.count()));
  const bool windowed = c.Windowed(layer);
  const float *query[kTaskQueries], *const no_sink = nullptr;
  float* result[kTaskQueries];
  float sink[kTaskQueries];
  int32_t position[kTaskQueries], first[kTaskQueries];

  AttentionArgs args;
  args.query = query;
  args.position = position;
  args.first = first;
  args.scale = c.attention_scale;
  args.soft_cap = c.attention_soft_cap;
  args.sink = sinks ? sink : no_sink;
  args.out = result;
  args.scratch = pass.ws.AttentionScratch(static_cast<size_t>(pass.worker.index()));

  size_t next = pass.worker.Next(0), done = 0;
  for (const BatchSegment& s : pass.batch.segments) {
    args.shape = s.kv->shape();
    args.ring_pages = s.kv->ring_pages(layer);
    const size_t blocks = cut.Blocks(s), tasks = blocks * c.kv_heads * cut.pieces;
    for (; next < done + tasks; next = pass.worker.Next(0)) {
      const size_t task = next - done;
      // The last rows see the most keys: they go first, so that the short ones fill the end.
      const size_t block = blocks - 1 - task / (c.kv_heads * cut.pieces);
      const size_t kv_head = task / cut.pieces % c.kv_heads;
      const size_t head = task % cut.pieces * cut.heads_per_task;
      const size_t head_end = std::min(head + cut.heads_per_task, group);
      const size_t row = s.first_row + block * cut.rows_per_task;
      const size_t row_end = std::min(row + cut.rows_per_task, s.first_row + s.rows);
      size_t n = 0;
      for (size_t t = row; t < row_end; ++t) {
        for (size_t h = kv_head * group + head; h < kv_head * group + head_end; ++h, ++n) {
          query[n] = queries + t * stride + h * c.key_dim;
          result[n] = out.row(t) + h * c.value_dim;
          position[n] = PositionOf(s, t);
          first[n] = windowed ? std::max(0, position[n] - static_cast<int32_t>(c.window) + 1) : 0;
          if (sinks) sink[n] = sinks[h];
        }
      }
      args.queries = n;
      args.pages = s.kv->pages(layer, kv_head);
      Attention(args);
    }
    done += tasks;
  }
}

void GateRows(Pass& pass, const float* gate_up, const Input& in, bool gated, bool quantise) {
  const auto [begin, end] = pass.worker.Share(in.rows);
  const size_t width = gated ? 2 * in.k : in.k;
  for (size_t t = begin; t < end; ++t) {
    const float* gate = gate_up + t * width;
    ActivationFor(pass.config.gate, gate, gated ? gate + in.k : nullptr, in.k, in.row(t));
    if (quantise) QuantiseRow(in.row(t), in.act, t);
  }
}

namespace {

// Scores with all but the best groups' entries lowered to -inf (DeepSeek: group-limited selection).
void LimitGroups(const MoeConfig& moe, float* scores) {
  if (moe.groups <= 1 || moe.groups_used >= moe.groups) return;
  const size_t per_group = moe.experts / moe.groups;
  float group_score[kMaxExpertGroups];
  for (size_t g = 0; g < moe.groups; ++g) {
    const float* s = scores + g * per_group;
    float best = -INFINITY, second = -INFINITY;
    for (size_t i = 0; i < per_group; ++i) {
      if (s[i] > best) {
        second = best;
        best = s[i];
      } else if (s[i] > second) {
        second = s[i];
      }
    }
    // V3 scores a group by its two best experts, V2 (soft-max) by its best.
    const bool two = moe.routing == Routing::kSigmoid && per_group > 1;
    group_score[g] = two ? best + second : best;
  }
  bool keep[kMaxExpertGroups] = {};
  for (size_t i = 0; i < moe.groups_used; ++i) {
    const size_t g = ArgMax(group_score, moe.groups);
    keep[g] = true;
    group_score[g] = std::numeric_limits<float>::quiet_NaN();  // ArgMax never chooses it again
  }
  for (size_t g = 0; g < moe.groups; ++g) {
    if (!keep[g]) std::fill_n(scores + g * per_group, per_group, -INFINITY);
  }
}

}  // namespace

void RouteRows(Pass& pass, const LayerWeights& layer) {
  const MoeConfig& moe = pass.config.moe;
  const size_t E = moe.experts;
  const auto [begin, end] = pass.worker.Share(pass.rows());
  for (size_t t = begin; t < end; ++t) {
    float* score = pass.ws.router + t * E;
    if (moe.routing == Routing::kSoftmax) {
      SoftMax(score, E);
    } else if (moe.routing == Routing::kSigmoid) {
      for (size_t e = 0; e < E; ++e) score[e] = Sigmoid(score[e]);
    }
    float* choice = pass.ws.router_choice + t * E;
    std::copy_n(score, E, choice);
    if (layer.router_bias) Add(layer.router_bias, E, choice);
    LimitGroups(moe, choice);

    int32_t* chosen = pass.ws.chosen + t * moe.used;
    float* weight = pass.ws.chosen_weight + t * moe.used;
    for (size_t j = 0; j < moe.used; ++j) {
      const size_t e = ArgMax(choice, E);
      chosen[j] = static_cast<int32_t>(e);
      weight[j] = score[e];
      choice[e] = std::numeric_limits<float>::quiet_NaN();  // ArgMax never chooses it again
    }
    if (moe.routing == Routing::kSoftmaxSelected) SoftMax(weight, moe.used);
    float scale = moe.weights_scale;
    if (moe.renormalise && moe.routing != Routing::kSoftmaxSelected) {
      float sum = 0;
      for (size_t j = 0; j < moe.used; ++j) sum += weight[j];
      scale /= std::max(sum, 1e-20f);
    }
    if (scale != 1) Scale(scale, moe.used, weight);
  }
}

void SortSlots(Pass& pass) {
  if (pass.worker.index() != 0) return;
  const MoeConfig& moe = pass.config.moe;
  const size_t S = pass.rows() * moe.used;
  int32_t* begin = pass.ws.expert_begin;
  std::fill_n(begin, moe.experts + 1, 0);
  for (size_t i = 0; i < S; ++i) ++begin[pass.ws.chosen[i] + 1];
  for (size_t e = 0; e < moe.experts; ++e) begin[e + 1] += begin[e];
  // A stable counting sort; begin[e] runs ahead and is set back after.
  for (size_t i = 0; i < S; ++i) {
    const int32_t slot = begin[pass.ws.chosen[i]]++;
    pass.ws.slot_of[i] = slot;
    pass.ws.slot_row[slot] = static_cast<int32_t>(i / moe.used);
  }
  for (size_t e = moe.experts; e > 0; --e) begin[e] = begin[e - 1];
  begin[0] = 0;
}

void CombineExperts(Pass& pass, float* out) {
  const Config& c = pass.config;
  const auto [begin, end] = pass.worker.Share(pass.rows());
  for (size_t t = begin; t < end; ++t) {
    float* y = out + t * c.dim;
    std::fill_n(y, c.dim, 0.0f);
    for (size_t j = t * c.moe.used; j < (t + 1) * c.moe.used; ++j) {
      AddScaled(pass.ws.expert_out + static_cast<size_t>(pass.ws.slot_of[j]) * c.dim,
                pass.ws.chosen_weight[j], c.dim, y);
    }
  }
}

void AddShared(Pass& pass, const float* shared, const float* gate, float* out) {
  const size_t dim = pass.config.dim;
  const auto [begin, end] = pass.worker.Share(pass.rows());
  for (size_t t = begin; t < end; ++t) {
    if (gate) {
      AddScaled(shared + t * dim, Sigmoid(gate[t]), dim, out + t * dim);
    } else {
      Add(shared + t * dim, dim, out + t * dim);
    }
  }
}

void GatherLogitRows(Pass& pass, bool quantise) {
  const Config& c = pass.config;
  const std::span<const int32_t> rows = pass.batch.logit_rows;
  const Input in = pass.ws.norm_in.View(rows.size(), c.dim);
  const auto [begin, end] = pass.worker.Share(rows.size());
  for (size_t i = begin; i < end; ++i) {
    const float* x = pass.ws.x + static_cast<size_t>(rows[i]) * c.dim;
    NormVector(c, pass.weights.output_norm, x, c.dim, in.row(i));
    if (quantise) QuantiseRow(in.row(i), in.act, i);
  }
}

void FinishLogits(const Config& config, Worker& worker, size_t rows, float* logits) {
  const auto [begin, end] = ColumnShare(worker, config.vocab, rows);
  for (size_t i = 0; i < rows && begin < end; ++i) {
    float* l = logits + i * config.vocab + begin;
    if (config.logit_scale != 1) Scale(config.logit_scale, end - begin, l);
    if (config.logit_soft_cap > 0) SoftCap(config.logit_soft_cap, end - begin, l);
  }
}

}  // namespace sluice
