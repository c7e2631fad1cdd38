// Attention as an operation (ops.h): how a layer's attention is cut into tasks, and what one task
// does.
#include <algorithm>

#include "simd/attention.h"
#include "simd/prefetch.h"
#include "src/model/kv_cache.h"
#include "src/model/ops.h"

namespace sluice {

namespace {

// One kv head of batch row t: its query heads and its key normed and rotated, key and value stored.
void RotateStoreHead(Pass& pass, size_t layer, size_t t, size_t kv_head) {
  const Config& c = pass.config;
  const LayerWeights& w = pass.weights.layers[layer];
  float* const q = pass.ws.qkv + t * (c.q_dim() + c.k_dim() + c.v_dim());
  float* const key = q + c.q_dim() + kv_head * c.key_dim;
  const bool per_head = c.qk_norm == QkNorm::kPerHead;
  const size_t group = c.heads / c.kv_heads;
  for (size_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    float* head = q + h * c.key_dim;
    if (per_head) NormVector(c, w.q_norm, head, c.key_dim, head);
    RotateHead(pass, layer, t, head);
  }
  if (per_head) NormVector(c, w.k_norm, key, c.key_dim, key);
  RotateHead(pass, layer, t, key);
  StoreKeyValue(pass, layer, kv_head, t, key, q + c.q_dim() + c.k_dim() + kv_head * c.value_dim);
}

void RotateAndStore(Pass& pass, size_t layer) {
  const Config& c = pass.config;
  if (c.qk_norm != QkNorm::kWholeProjection) {
    pass.worker.ForTiles(pass.rows() * c.kv_heads, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        RotateStoreHead(pass, layer, i / c.kv_heads, i % c.kv_heads);
      }
    });
    return;
  }
  const LayerWeights& w = pass.weights.layers[layer];
  pass.worker.ForTiles(pass.rows(), [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      float* const q = pass.ws.qkv + t * (c.q_dim() + c.k_dim() + c.v_dim());
      NormVector(c, w.q_norm, q, c.q_dim(), q);
      NormVector(c, w.k_norm, q + c.q_dim(), c.k_dim(), q + c.q_dim());
      for (size_t h = 0; h < c.kv_heads; ++h) RotateStoreHead(pass, layer, t, h);
    }
  });
}

constexpr size_t kTaskQueries = 64;  // most query rows of one attention task

// How attention is cut into tasks: query rows of one segment and heads of one kv head, or units
// of 512 positions of them. Any cut gives the same bytes; this one keeps a tile full and every
// worker busy.
struct AttentionCut {
  size_t heads_per_task, rows_per_task, pieces;
  size_t tasks = 0;     // of whole contexts
  bool units = false;   // tasks are units: few rows, fewer tasks than would keep all workers busy
  bool own_row = true;  // every row is a sequence of its own

  AttentionCut(const Pass& pass, size_t layer) {
    const Config& c = pass.config;
    const size_t group = c.heads / c.kv_heads, workers = static_cast<size_t>(pass.worker.count());
    size_t least = 0;  // tasks when a task takes the whole group
    bool long_context = false;
    for (const BatchSegment& s : pass.batch.segments) {
      const size_t rows = std::max<size_t>(1, 48 / std::min(group, kTaskQueries));
      least += (s.rows + rows - 1) / rows * c.kv_heads;
      own_row = own_row && s.rows == 1;
      long_context = long_context || Units(c, layer, s) > 1;
    }
    units = long_context && least % workers != 0 && least < 4 * workers && group <= kTaskQueries &&
            own_row && pass.rows() <= kSplitRows;
    const size_t split = units || least >= workers ? 1 : (workers + least - 1) / least;
    heads_per_task = std::min((group + split - 1) / split, kTaskQueries);
    pieces = (group + heads_per_task - 1) / heads_per_task;
    rows_per_task = std::max<size_t>(1, 48 / heads_per_task);
    for (const BatchSegment& s : pass.batch.segments) tasks += Blocks(s) * c.kv_heads * pieces;
  }
  size_t Blocks(const BatchSegment& s) const {
    return (s.rows + rows_per_task - 1) / rows_per_task;
  }
  static size_t FirstUnit(const Config& c, size_t layer, const BatchSegment& s) {
    if (!c.Windowed(layer)) return 0;
    return AttentionFirstUnit(std::max(0, s.first_position - static_cast<int32_t>(c.window) + 1));
  }
  // Of a segment of one row.
  static size_t Units(const Config& c, size_t layer, const BatchSegment& s) {
    return AttentionEndUnit(s.first_position) - FirstUnit(c, layer, s);
  }
};

// Heads [head, head_end) of batch rows [row, row_end) of one segment: what one call of the kernel
// takes.
struct AttentionTask {
  const BatchSegment& segment;
  size_t kv_head, head, head_end, row, row_end;
};

// Attention of one task at a time; the lists that the kernel reads.
class TaskAttention {
 public:
  TaskAttention(Pass& pass, size_t layer, const float* queries, size_t stride, const Input& out,
                const float* sinks, InputForms forms)
      : pass_(pass),
        layer_(layer),
        queries_(queries),
        stride_(stride),
        out_(out),
        sinks_(sinks),
        forms_(forms) {
    const Config& c = pass.config;
    args_.query = query_;
    args_.position = position_;
    args_.first = first_;
    args_.scale = c.attention_scale;
    args_.soft_cap = c.attention_soft_cap;
    args_.sink = sinks ? sink_ : nullptr;
    args_.out = result_;
    args_.scratch = pass.ws.AttentionScratch(static_cast<size_t>(pass.worker.index()));
    args_.portable = pass.ws.portable;
  }

  void Run(const AttentionTask& task) {
    Prepare(task);
    Attention(args_);
    FillSlices(task);
  }
  // One unit; whoever finishes the last one of its row and head merges them.
  void RunUnit(const AttentionTask& task, size_t first_unit, size_t units, size_t unit) {
    Prepare(task);
    const Config& c = pass_.config;
    const size_t floats = AttentionStateFloats(args_.shape);
    const size_t slot = task.row * c.kv_heads + task.kv_head;
    const size_t most = AttentionEndUnit(static_cast<int32_t>(task.segment.kv->context()));
    float* const states = pass_.ws.attention_states + slot * most * args_.queries * floats;
    AttentionUnit(args_, first_unit + unit, states + unit * args_.queries * floats);
    std::atomic<uint32_t>& done = pass_.ws.units_done[slot];
    if (done.fetch_add(1, std::memory_order_acq_rel) + 1 < units) return;
    done.store(0, std::memory_order_relaxed);
    AttentionMerge(args_, states, units);
    FillSlices(task);
  }

 private:
  void Prepare(const AttentionTask& task) {
    const Config& c = pass_.config;
    const bool windowed = c.Windowed(layer_);
    size_t n = 0;
    for (size_t t = task.row; t < task.row_end; ++t) {
      for (size_t h = task.head; h < task.head_end; ++h, ++n) {
        query_[n] = queries_ + t * stride_ + h * c.key_dim;
        result_[n] = out_.row(t) + h * c.value_dim;
        position_[n] = PositionOf(task.segment, t);
        first_[n] = windowed ? std::max(0, position_[n] - static_cast<int32_t>(c.window) + 1) : 0;
        if (sinks_) sink_[n] = sinks_[h];
      }
    }
    const KvSequence& kv = *task.segment.kv;
    args_.queries = n;
    args_.shape = kv.shape();
    args_.ring_pages = kv.ring_pages(layer_);
    args_.pages = kv.pages(layer_, task.kv_head);
    // Asked for beside the attention's work: 589 -> 604 tok/s there.
    const size_t begin = task.head * c.value_dim, end = task.head_end * c.value_dim;
    for (size_t t = task.row; t < task.row_end; ++t) {
      PrefetchToWrite(out_.row(t) + begin, (end - begin) * sizeof(float));
      out_.PrefetchToFill(forms_, t, begin, end);
    }
  }
  void FillSlices(const AttentionTask& task) const {
    const size_t dim = pass_.config.value_dim;
    for (size_t t = task.row; t < task.row_end; ++t) {
      out_.Fill(forms_, t, task.head * dim, task.head_end * dim);
    }
  }

  Pass& pass_;
  const size_t layer_;
  const float* const queries_;
  const size_t stride_;
  const Input& out_;
  const float* const sinks_;
  const InputForms forms_;
  AttentionArgs args_;
  const float* query_[kTaskQueries];
  float* result_[kTaskQueries];
  float sink_[kTaskQueries];
  int32_t position_[kTaskQueries], first_[kTaskQueries];
};

// Every task of a cut as (kv head, block, piece), heads outermost: a worker's share keeps to few
// heads, whose pages stay in its cache, and is as long as the others'.
template <class F>
void ForTasks(Pass& pass, const AttentionCut& cut, const F& run) {
  const Config& c = pass.config;
  const size_t group = c.heads / c.kv_heads;
  size_t blocks = 0;
  for (const BatchSegment& s : pass.batch.segments) blocks += cut.Blocks(s);
  pass.worker.ForTiles(blocks * c.kv_heads * cut.pieces, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t kv_head = i / (blocks * cut.pieces), piece = i % cut.pieces;
      size_t block = i / cut.pieces % blocks;
      const BatchSegment* s = pass.batch.segments.data();
      for (; block >= cut.Blocks(*s); ++s) block -= cut.Blocks(*s);
      const size_t head = kv_head * group + piece * cut.heads_per_task;
      const size_t row = s->first_row + block * cut.rows_per_task;
      run(AttentionTask{*s, kv_head, head,
                        std::min(head + cut.heads_per_task, (kv_head + 1) * group), row,
                        std::min(row + cut.rows_per_task, s->first_row + s->rows)});
    }
  });
}

void ForUnits(Pass& pass, size_t layer, TaskAttention& attention) {
  const Config& c = pass.config;
  const size_t group = c.heads / c.kv_heads;
  size_t all = 0;
  for (const BatchSegment& s : pass.batch.segments) all += AttentionCut::Units(c, layer, s);
  pass.worker.ForTiles(all * c.kv_heads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t kv_head = i / all;
      size_t unit = i % all;
      const BatchSegment* s = pass.batch.segments.data();
      for (; unit >= AttentionCut::Units(c, layer, *s); ++s) {
        unit -= AttentionCut::Units(c, layer, *s);
      }
      const AttentionTask task{
          *s, kv_head, kv_head * group, (kv_head + 1) * group, s->first_row, s->first_row + 1};
      attention.RunUnit(task, AttentionCut::FirstUnit(c, layer, *s),
                        AttentionCut::Units(c, layer, *s), unit);
    }
  });
}

// Whether tasks can write the forms of their slices: quantised, they are whole blocks.
bool FillsSlices(const Config& c, const AttentionCut& cut, const Input& out, InputForms forms) {
  if (!forms.int8) return true;
  return out.k % kActBlock == 0 && c.value_dim * cut.heads_per_task % kActBlock == 0 &&
         c.value_dim * (c.heads / c.kv_heads) % kActBlock == 0;
}

}  // namespace

bool Attend(Pass& pass, size_t layer, const float* queries, size_t stride, const Input& out,
            const float* sinks, InputForms forms) {
  const AttentionCut cut(pass, layer);
  const bool slices = FillsSlices(pass.config, cut, out, forms);
  TaskAttention attention(pass, layer, queries, stride, out, sinks, slices ? forms : InputForms());
  if (cut.units) {
    ForUnits(pass, layer, attention);
  } else {
    ForTasks(pass, cut, [&](const AttentionTask& task) { attention.Run(task); });
  }
  return slices;
}

void RotateStoreAttend(Pass& pass, size_t layer, const Input& out, const float* sinks,
                       InputForms forms) {
  const Config& c = pass.config;
  const AttentionCut cut(pass, layer);
  const size_t workers = static_cast<size_t>(pass.worker.count());
  const size_t stride = c.q_dim() + c.k_dim() + c.v_dim();
  bool filled = FillsSlices(c, cut, out, forms);
  // A task that has its row and kv head for itself needs nobody's keys but its own and the past's.
  if (cut.own_row && !cut.units && cut.pieces == 1 && c.qk_norm != QkNorm::kWholeProjection &&
      (cut.tasks % workers == 0 || cut.tasks >= 4 * workers)) {
    TaskAttention attention(pass, layer, pass.ws.qkv, stride, out, sinks,
                            filled ? forms : InputForms());
    ForTasks(pass, cut, [&](const AttentionTask& task) {
      RotateStoreHead(pass, layer, task.row, task.kv_head);
      attention.Run(task);
    });
  } else {
    RotateAndStore(pass, layer);
    pass.Barrier();
    filled = Attend(pass, layer, pass.ws.qkv, stride, out, sinks, forms);
  }
  if (!filled) {
    pass.Barrier();
    FillForms(pass, out, forms);
  }
}

}  // namespace sluice
