#include "src/model/workspace.h"

#include <algorithm>

#include "simd/attention.h"
#include "simd/matmul.h"
#include "simd/prefetch.h"

namespace sluice {

namespace {

size_t RoundUp(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Adds up sizes on a first walk, hands out memory on a second: one list of buffers for both.
class Layout {
 public:
  explicit Layout(Arena* arena) : arena_(arena) {}
  template <class T>
  void Add(T** p, size_t n) {
    const size_t bytes = RoundUp(n * sizeof(T), 64);
    total_ += bytes;
    if (arena_) *p = reinterpret_cast<T*>(arena_->Allocate(bytes));
  }
  void Add(InputBuffer* b, size_t rows, size_t k) {
    b->max_rows = rows;
    b->max_k = k;
    Add(&b->f32, rows * RowStride(k));
    Add(&b->act, ActBytes(rows, RoundUp(k, kActBlock)));
    Add(&b->bf16, rows * RowStride(k));
  }
  size_t total() const { return total_; }

 private:
  Arena* arena_;
  size_t total_ = 0;
};

}  // namespace

Input Input::Rows(size_t first, size_t count) const {
  Input in = *this;
  in.rows = count;
  in.f32 += first * stride;
  if (act.q) in.act = ActRows(act, first, count);
  in.bf16 += first * stride;
  return in;
}

Input Input::Joined(size_t n) const {
  DCHECK(stride == k && rows % n == 0);
  Input in = *this;
  in.rows = in.act.rows = rows / n;
  in.k = in.stride = in.act.k = in.act.stride = n * k;
  in.act.tile_q = nullptr;  // which hold the rows as they were, and no room for longer ones
  in.act.tile_scale = nullptr;
  return in;
}

void Input::Fill(InputForms forms, size_t t, size_t begin, size_t end, const float* values) const {
  if (forms.int8) QuantisePart(values, act, t, begin, end);
  if (forms.bf16) RoundToBf16(values, end - begin, bf16 + t * stride + begin);
}

void Input::PrefetchToFill(InputForms forms, size_t t, size_t begin, size_t end) const {
  if (forms.int8 && act.q) {
    PrefetchToWrite(act.q + t * stride + begin, end - begin);
    const size_t at = (t * stride + begin) / kActBlock, n = (end - begin) / kActBlock;
    PrefetchToWrite(act.scale + at, n * sizeof(float));
    PrefetchToWrite(act.scaled_sum + at, n * sizeof(float));
    PrefetchToWrite(act.neg_sum + at, n * sizeof(int32_t));
    PrefetchToWrite(act.neg_pair + 2 * at, n * 2 * sizeof(int32_t));
    PrefetchToWrite(act.sum16 + 2 * at, n * 2 * sizeof(int16_t));
  }
  if (forms.bf16) {
    PrefetchToWrite(bf16 + t * stride + begin, (end - begin) * sizeof(*bf16));
  }
}

Input InputBuffer::View(size_t rows, size_t k, size_t stride) const {
  DCHECK(rows <= max_rows && k <= max_k && stride <= RowStride(k));
  Input in;
  in.f32 = f32;
  in.bf16 = bf16;
  in.rows = rows;
  in.k = k;
  in.stride = stride;
  if (k % kActBlock == 0) in.act = MakeActView(act, rows, k, stride);
  return in;
}

Result<std::unique_ptr<Workspace>> Workspace::Create(const Config& c, size_t max_rows,
                                                     size_t workers, size_t context,
                                                     RelaxedMatMul* relaxed) {
  std::unique_ptr<Workspace> ws(new Workspace);
  ws->max_rows = max_rows;
  ws->relaxed = relaxed;
  ws->own_.resize(workers);
  const size_t R = max_rows, S = R * c.moe.used;
  const LatentConfig& mla = c.latent;
  const size_t widest_mlp = std::max(c.ffn_dim, c.moe.shared_ffn_dim);
  const size_t attn_dim = c.heads * (mla.kv_rank ? mla.head_value_dim : c.value_dim);
  const size_t widest_k =
      std::max({c.dim, widest_mlp, c.moe.ffn_dim, attn_dim, mla.q_rank, mla.kv_rank, mla.nope_dim});
  const KvShape kv{c.key_dim, c.value_dim, KvType::kF32};
  const size_t units = AttentionEndUnit(static_cast<int32_t>(context));
  ws->expert_list_ = RoundUp(2 * (c.moe.experts + 1), 16);
  ws->matmul_bytes_ = RoundUp(MatMulScratchBytes(RoundUp(widest_k, kActBlock)), 4096);
  ws->attention_bytes_ = RoundUp(AttentionScratchBytes(kv), 4096);

  auto rows = [&](Layout& l, RowBuffers* b, size_t n) {
    l.Add(&b->x, n * c.dim);
    l.Add(&b->branch, n * c.dim);
    l.Add(&b->norm_in, n, c.dim);
    if (mla.q_rank) l.Add(&b->q_low_in, n, mla.q_rank);
    if (!c.moe.experts) return;
    l.Add(&b->score, n * c.moe.experts);
    l.Add(&b->choice, n * c.moe.experts);
    l.Add(&b->chosen, n * c.moe.used);
    l.Add(&b->chosen_weight, n * c.moe.used);
    l.Add(&b->expert_begin, c.moe.experts + 1);
    l.Add(&b->slot_row, n * c.moe.used);
    l.Add(&b->slot_of, n * c.moe.used);
  };
  auto place = [&](Layout& l) {
    rows(l, &ws->shared, R);
    for (RowBuffers& own : ws->own_) rows(l, &own, kPrivateRows);
    l.Add(&ws->branch, R * c.dim);
    l.Add(&ws->branch2, R * c.dim);
    l.Add(&ws->qkv, R * (c.q_dim() + c.k_dim() + c.v_dim()));
    l.Add(&ws->attn_in, R, attn_dim);
    l.Add(&ws->mlp_in, R, widest_mlp);
    for (int i = 0; i < 2; ++i) {
      l.Add(&ws->rope_cos[i], R * c.rope.dims / 2);
      l.Add(&ws->rope_sin[i], R * c.rope.dims / 2);
    }
    if (c.moe.experts) {
      l.Add(&ws->router, R * c.moe.experts);
      l.Add(&ws->slot_index, S);
      l.Add(&ws->expert_in, S, c.moe.ffn_dim);
      l.Add(&ws->expert_out, S * c.dim);
      l.Add(&ws->shared_gate, R);
      l.Add(&ws->expert_lists_, workers * ws->expert_list_);
    }
    if (mla.kv_rank) {
      l.Add(&ws->q_low, R * mla.q_rank);
      l.Add(&ws->q_full, R * c.heads * (mla.nope_dim + mla.rope_dim));
      l.Add(&ws->nope_in, R * c.heads, mla.nope_dim);
      l.Add(&ws->latent_in, R * c.heads, mla.kv_rank);
      l.Add(&ws->head_rows, R * c.heads);
    }
    l.Add(&ws->attention_states, kSplitRows * c.heads * units * AttentionStateFloats(kv));
    l.Add(&ws->units_done, kSplitRows * c.kv_heads);
    l.Add(&ws->tiles_, workers * 2 * ws->TileFloats());
    l.Add(&ws->matmul_scratch_, workers * ws->matmul_bytes_);
    l.Add(&ws->attention_scratch_, workers * ws->attention_bytes_);
  };
  Layout sizes(nullptr);
  place(sizes);
  ASSIGN_OR_RETURN(ws->arena_, Arena::Create(sizes.total()));
  Layout memory(&ws->arena_);
  place(memory);
  for (size_t i = 0; i < S; ++i) ws->slot_index[i] = static_cast<int32_t>(i);
  for (size_t h = 0; ws->head_rows && h < c.heads; ++h) {
    for (size_t t = 0; t < R; ++t) ws->head_rows[h * R + t] = static_cast<int32_t>(t * c.heads + h);
  }
  return ws;
}

}  // namespace sluice
