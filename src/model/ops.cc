#include "src/model/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "quant/generic_matmul.h"
#include "simd/attention.h"
#include "simd/prefetch.h"
#include "simd/vector_ops.h"
#include "src/base/check.h"
#include "src/machine/relaxed_matmul.h"
#include "src/model/kv_cache.h"
#include "src/model/rope.h"

namespace sluice {

namespace {

// What one tile writes lies rows apart, which no hardware foresees: so many rows ahead it is asked
// for. 1B Q4_0, two threads of a Xeon, prefill with none, 3, 6 and 12: 571, 586, 589, 587 tok/s
// (the same lines asked for to read: a third less of the gain).
constexpr size_t kRowsAhead = 6;

// Calls fn(segment, row) for each of rows [begin, end), in order.
template <class F>
void ForRows(const Batch& batch, size_t begin, size_t end, const F& fn) {
  for (const BatchSegment& s : batch.segments) {
    const size_t last = std::min(end, s.first_row + s.rows);
    for (size_t t = std::max(begin, s.first_row); t < last; ++t) fn(s, t);
  }
}

// What of `in` a product reads.
struct PickedRows {
  const Input& in;
  const int32_t* token_rows;  // [count], or null: rows 0 .. count - 1
  size_t count;
};

// out[i][r] = weight . row i + bias for all rows of `w`.
void Multiply(Worker& worker, const Workspace& ws, const Weight& w, const PickedRows& from,
              float* out, size_t stride) {
  MatMulArgs args;
  args.weights = w.data;
  args.panels = w.panels;
  args.rows = args.row_end = w.rows;
  args.k = w.k;
  args.tokens = from.count;
  args.token_rows = from.token_rows;
  args.act = from.in.act;
  args.f32 = from.in.f32;
  args.f32_stride = from.in.stride;
  if (w.dots_bf16) args.bf16 = from.in.bf16;
  args.bf16_stride = from.in.stride;
  args.out = out;
  args.out_stride = stride;
  args.scratch = ws.MatMulScratch(static_cast<size_t>(worker.index()));
  if (w.exact) {
    MatMulDecoded(*w.format, args);
  } else if (!ws.relaxed ||
             !ws.relaxed->Multiply(static_cast<size_t>(worker.index()), *w.format, args)) {
    w.format->matmul(args);
  }
  for (size_t t = 0; w.bias && t < from.count; ++t) Add(w.bias, w.rows, out + t * stride);
}

bool TakesRelaxed(const Workspace& ws, const Weight& w, size_t rows) {
  return ws.relaxed && ws.relaxed->Takes(*w.format, w.panels, rows);
}

// Output columns of one tile of work.
size_t TileColumns(const Workspace& ws, const Weight& w, size_t rows, const Worker& worker) {
  const auto workers = static_cast<size_t>(worker.count());
  if (!TakesRelaxed(ws, w, rows)) return TileColumns(*w.format, w.rows, w.k, rows, workers);
  return ShareOfTiles(w.rows, kRelaxedTileColumns, workers);
}

size_t Tiles(size_t n, size_t tile) { return (n + tile - 1) / tile; }

// Tiles [begin, end) of a product. Many rows go through a tile of their own: the kernel adds to it
// chunk by chunk of k, which in an output of long rows would fall into few sets of the caches.
// oneDNN has buffers of its own, and prepares its inputs once for all columns.
void MultiplyTiles(Worker& worker, const Workspace& ws, const Weight& w, const PickedRows& from,
                   size_t tile, size_t begin, size_t end, float* out, size_t stride) {
  const size_t last = std::min(end * tile, w.rows);
  if (from.count <= kFewRows || TakesRelaxed(ws, w, from.count)) {
    const size_t first = begin * tile;
    return Multiply(worker, ws, w.Rows(first, last - first), from, out + first, stride);
  }
  float* const copy = ws.Tile(static_cast<size_t>(worker.index()), 0);
  for (size_t first = begin * tile; first < last; first += tile) {
    const size_t n = std::min(tile, last - first);
    Multiply(worker, ws, w.Rows(first, n), from, copy, n);
    for (size_t t = 0; t < from.count; ++t) {
      float* const to = out + t * stride + first;
      if (t + kRowsAhead < from.count) PrefetchToWrite(to + kRowsAhead * stride, n * sizeof(float));
      std::copy_n(copy + t * n, n, to);
    }
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
  pass.ForOwnRows([&](size_t t) {
    float* x = pass.own.x + t * c.dim;
    auto row = [&](const Weight& w, size_t i) { return w.data + i * w.format->RowBytes(w.k); };
    const Weight& e = pass.weights.embedding;
    e.format->decode(row(e, static_cast<size_t>(pass.batch.tokens[t])), c.dim, x);
    if (c.embedding_scale != 1) Scale(c.embedding_scale, c.dim, x);
    const Weight& p = pass.weights.position_embedding;
    if (p) {
      float* learned = pass.own.branch + t * c.dim;
      const int32_t position = PositionOf(SegmentOf(pass.batch, t), t);
      p.format->decode(row(p, static_cast<size_t>(position)), c.dim, learned);
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

void FillForms(Pass& pass, const Input& in, InputForms forms) {
  const auto [begin, end] = pass.worker.Share(in.rows);
  for (size_t t = begin; t < end; ++t) in.Fill(forms, t);
}

void NormRows(Pass& pass, const float* x, const NormWeights& norm, const Input& in,
              InputForms forms) {
  pass.ForOwnRows([&](size_t t) {
    NormVector(pass.config, norm, x + t * in.k, in.k, in.row(t));
    in.Fill(forms, t);
  });
}

void AddBranch(Pass& pass, const float* branch, const NormWeights& post_norm) {
  const Config& c = pass.config;
  pass.ForOwnRows([&](size_t t) {
    const float* b = branch + t * c.dim;
    if (post_norm) {
      float* const normed = pass.own.branch + t * c.dim;
      NormVector(c, post_norm, b, c.dim, normed);
      b = normed;
    }
    if (c.residual_scale == 1) {
      Add(b, c.dim, pass.own.x + t * c.dim);
    } else {
      AddScaled(b, c.residual_scale, c.dim, pass.own.x + t * c.dim);
    }
  });
}

void MatMul(Pass& pass, const Input& in, std::initializer_list<Product> products) {
  const PickedRows from{in, nullptr, in.rows};
  const auto tile = [&](const Product& p) {
    return TileColumns(pass.ws, p.weight, in.rows, pass.worker);
  };
  size_t tiles[kMostProducts];
  DCHECK(products.size() <= kMostProducts);
  size_t* next = tiles;
  for (const Product& p : products) *next++ = Tiles(p.weight.rows, tile(p));
  pass.worker.ForTiles({tiles, products.size()}, [&](size_t i, size_t begin, size_t end) {
    const Product& p = products.begin()[i];
    MultiplyTiles(pass.worker, pass.ws, p.weight, from, tile(p), begin, end, p.out, p.stride);
  });
}

void MatMulAlone(Pass& pass, const Weight& weight, const Input& in, const int32_t* token_rows,
                 size_t tokens, float* out, size_t stride) {
  const size_t tile = tokens > kFewRows ? kTileColumns : weight.rows;
  MultiplyTiles(pass.worker, pass.ws, weight, {in, token_rows, tokens}, tile, 0,
                Tiles(weight.rows, tile), out, stride);
}

namespace {

// Columns [first, first + n) of an MLP's first half for the picked rows; hidden row i is
// first_hidden + i.
void GateUpTile(Pass& pass, const MlpHalf& mlp, const PickedRows& from, size_t first_hidden,
                size_t first, size_t n) {
  const size_t worker = static_cast<size_t>(pass.worker.index());
  const Input& hidden = mlp.hidden;
  float* const up = pass.ws.Tile(worker, 0);
  float* const gate = pass.ws.Tile(worker, 1);
  const bool gated = pass.config.gated_mlp;
  const size_t up_at = gated && !mlp.gate ? hidden.k + first : first;
  if (gated) {
    const Weight& w = mlp.gate ? mlp.gate : mlp.up;
    Multiply(pass.worker, pass.ws, w.Rows(first, n), from, gate, n);
  }
  Multiply(pass.worker, pass.ws, mlp.up.Rows(up_at, n), from, up, n);
  // Who reads int8 reads no floats, which would go to memory for nothing.
  const bool floats = !mlp.forms.int8;
  for (size_t i = 0; i < from.count; ++i) {
    const size_t t = first_hidden + i;
    float* const act = gated ? gate + i * n : up + i * n;
    float* const out = floats ? hidden.row(t) + first : act;
    if (i + kRowsAhead < from.count) {
      hidden.PrefetchToFill(mlp.forms, t + kRowsAhead, first, first + n);
    }
    ActivationFor(pass.config.gate, act, gated ? up + i * n : nullptr, n, out);
    hidden.Fill(mlp.forms, t, first, first + n, out);
  }
}

}  // namespace

void GateUp(Pass& pass, const MlpHalf& mlp, const Input& in) {
  const size_t columns = mlp.hidden.k, tile = TileColumns(pass.ws, mlp.up, in.rows, pass.worker);
  pass.worker.ForTiles(Tiles(columns, tile), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t first = i * tile, n = std::min(tile, columns - first);
      GateUpTile(pass, mlp, {in, nullptr, in.rows}, 0, first, n);
    }
  });
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
  pass.ForOwnRows([&](size_t t) {
    float* score = pass.own.score + t * E;
    std::copy_n(pass.ws.router + t * E, E, score);
    if (moe.routing == Routing::kSoftmax) {
      SoftMax(score, E);
    } else if (moe.routing == Routing::kSigmoid) {
      for (size_t e = 0; e < E; ++e) score[e] = Sigmoid(score[e]);
    }
    float* choice = pass.own.choice + t * E;
    std::copy_n(score, E, choice);
    if (layer.router_bias) Add(layer.router_bias, E, choice);
    LimitGroups(moe, choice);

    int32_t* chosen = pass.own.chosen + t * moe.used;
    float* weight = pass.own.chosen_weight + t * moe.used;
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
  });
}

void SortSlots(Pass& pass) {
  pass.RowBarrier();
  if (pass.private_rows || pass.worker.index() == 0) {
    const MoeConfig& moe = pass.config.moe;
    const RowBuffers& own = pass.own;
    const size_t S = pass.rows() * moe.used;
    int32_t* begin = own.expert_begin;
    std::fill_n(begin, moe.experts + 1, 0);
    for (size_t i = 0; i < S; ++i) ++begin[own.chosen[i] + 1];
    for (size_t e = 0; e < moe.experts; ++e) begin[e + 1] += begin[e];
    // A stable counting sort; begin[e] runs ahead and is set back after.
    for (size_t i = 0; i < S; ++i) {
      const int32_t slot = begin[own.chosen[i]]++;
      own.slot_of[i] = slot;
      own.slot_row[slot] = static_cast<int32_t>(i / moe.used);
    }
    for (size_t e = moe.experts; e > 0; --e) begin[e] = begin[e - 1];
    begin[0] = 0;
  }
  pass.RowBarrier();
}

namespace {

// Tiles of a matrix of every chosen expert, and of the shared expert's: fn(expert, its first slot,
// its slots, tile) and shared_fn(tile). Experts differ in rows, so their tiles may differ in width.
template <class TileOf, class F, class G>
void ForExpertTiles(Pass& pass, size_t columns, const TileOf& tile_of, const F& fn,
                    size_t shared_tiles, const G& shared_fn) {
  const MoeConfig& moe = pass.config.moe;
  const int32_t* at = pass.own.expert_begin;
  const auto slots = [&](size_t e) { return static_cast<size_t>(at[e + 1] - at[e]); };
  const Workspace::ExpertLists lists = pass.ws.Lists(static_cast<size_t>(pass.worker.index()));
  size_t n = 0;
  for (size_t e = 0; e < moe.experts; ++e) {
    if (slots(e) == 0) continue;
    lists.expert[n] = e;
    lists.tiles[n++] = Tiles(columns, tile_of(slots(e)));
  }
  lists.tiles[n] = shared_tiles;
  pass.worker.ForTiles({lists.tiles, n + 1}, [&](size_t list, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (list == n) {
        shared_fn(i);
      } else {
        const size_t e = lists.expert[list];
        fn(e, static_cast<size_t>(at[e]), slots(e), i);
      }
    }
  });
}

}  // namespace

void ExpertsGateUp(Pass& pass, const LayerWeights& w, const Input& in) {
  const MoeConfig& moe = pass.config.moe;
  const size_t dim = moe.ffn_dim, shared_dim = moe.shared_ffn_dim;
  const Input hidden = pass.ws.expert_in.View(pass.rows() * moe.used, dim);
  const Input shared = pass.ws.mlp_in.View(pass.rows(), shared_dim);
  const MlpHalf shared_mlp{w.shared_gate, w.shared_up, shared, Reads(w.shared_down)};
  const auto tile_of = [&](size_t rows) {
    return TileColumns(pass.ws, w.expert_up, rows, pass.worker);
  };
  const size_t shared_tile =
      w.shared_up ? TileColumns(pass.ws, w.shared_up, in.rows, pass.worker) : 1;
  ForExpertTiles(
      pass, dim, tile_of,
      [&](size_t e, size_t slot, size_t slots, size_t i) {
        const Weight gate = w.expert_gate.Expert(e), up = w.expert_up.Expert(e);
        const size_t tile = tile_of(slots), first = i * tile;
        GateUpTile(pass, {gate, up, hidden, Reads(w.expert_down)},
                   {in, pass.own.slot_row + slot, slots}, slot, first, std::min(tile, dim - first));
      },
      w.shared_up ? Tiles(shared_dim, shared_tile) : 0,
      [&](size_t i) {
        const size_t first = i * shared_tile;
        GateUpTile(pass, shared_mlp, {in, nullptr, in.rows}, 0, first,
                   std::min(shared_tile, shared_dim - first));
      });
}

void ExpertsDown(Pass& pass, const LayerWeights& w) {
  const Config& c = pass.config;
  const Input hidden = pass.ws.expert_in.View(pass.rows() * c.moe.used, c.moe.ffn_dim);
  const Input shared = pass.ws.mlp_in.View(pass.rows(), c.moe.shared_ffn_dim);
  const auto tile_of = [&](size_t rows) {
    return TileColumns(pass.ws, w.expert_down, rows, pass.worker);
  };
  const size_t shared_tile =
      w.shared_down ? TileColumns(pass.ws, w.shared_down, shared.rows, pass.worker) : 1;
  ForExpertTiles(
      pass, c.dim, tile_of,
      [&](size_t e, size_t slot, size_t slots, size_t i) {
        MultiplyTiles(pass.worker, pass.ws, w.expert_down.Expert(e),
                      {hidden, pass.ws.slot_index + slot, slots}, tile_of(slots), i, i + 1,
                      pass.ws.expert_out + slot * c.dim, c.dim);
      },
      w.shared_down ? Tiles(c.dim, shared_tile) : 0,
      [&](size_t i) {
        MultiplyTiles(pass.worker, pass.ws, w.shared_down, {shared, nullptr, shared.rows},
                      shared_tile, i, i + 1, pass.ws.branch2, c.dim);
      });
}

void CombineExperts(Pass& pass, const LayerWeights& w, float* branch) {
  const Config& c = pass.config;
  pass.ForOwnRows([&](size_t t) {
    float* y = branch + t * c.dim;
    std::fill_n(y, c.dim, 0.0f);
    for (size_t j = t * c.moe.used; j < (t + 1) * c.moe.used; ++j) {
      AddScaled(pass.ws.expert_out + static_cast<size_t>(pass.own.slot_of[j]) * c.dim,
                pass.own.chosen_weight[j], c.dim, y);
    }
    if (!w.shared_up) return;
    const float* shared = pass.ws.branch2 + t * c.dim;
    if (w.shared_router) {
      AddScaled(shared, Sigmoid(pass.ws.shared_gate[t]), c.dim, y);
    } else {
      Add(shared, c.dim, y);
    }
  });
}

void WriteHiddenRows(Pass& pass, float* out) {
  const size_t dim = pass.config.dim;
  const std::span<const int32_t> rows = pass.batch.hidden_rows;
  pass.RowBarrier();
  const auto [first, last] = pass.worker.Share(rows.size());
  for (size_t i = first; i < last; ++i) {
    NormVector(pass.config, pass.weights.output_norm,
               pass.own.x + static_cast<size_t>(rows[i]) * dim, dim, out + i * dim);
  }
}

Input GatherLogitRows(Pass& pass, InputForms forms, bool deferred) {
  const Config& c = pass.config;
  const std::span<const int32_t> rows = pass.batch.logit_rows;
  const bool alone = pass.private_rows && !deferred;
  const Input in = (alone ? pass.own : pass.ws.shared).norm_in.View(rows.size(), c.dim);
  pass.RowBarrier();
  const auto [first, last] = pass.worker.Share(rows.size());
  for (size_t i = alone ? 0 : first; i < (alone ? rows.size() : last); ++i) {
    const float* x = pass.own.x + static_cast<size_t>(rows[i]) * c.dim;
    NormVector(c, pass.weights.output_norm, x, c.dim, in.row(i));
    in.Fill(forms, i);
  }
  if (!alone) pass.Barrier();
  return in;
}

void OutputLogits(const Config& config, Worker& worker, const Workspace& ws, const Weight& output,
                  const Input& in, const LogitsOut& out) {
  static_assert(kLeastTileColumns % kLogitBlock == 0);
  const size_t tile = TileColumns(ws, output, in.rows, worker);
  worker.ForTiles(Tiles(config.vocab, tile), [&](size_t begin, size_t end) {
    MultiplyTiles(worker, ws, output, {in, nullptr, in.rows}, tile, begin, end, out.values,
                  config.vocab);
    const size_t first = begin * tile, n = std::min(end * tile, config.vocab) - first;
    for (size_t i = 0; i < in.rows; ++i) {
      float* const l = out.values + i * config.vocab + first;
      if (config.logit_scale != 1) Scale(config.logit_scale, n, l);
      if (config.logit_soft_cap > 0) SoftCap(config.logit_soft_cap, n, l);
      if (out.largest) {
        LargestOfBlocks({l, n}, out.largest + i * LogitBlocks(config.vocab) + first / kLogitBlock);
      }
    }
  });
}

}  // namespace sluice
