// Attention over KV pages: divides queries into blocks and groups, walks units and spans in order.
#include "simd/attention.h"

#include <optional>

#include "simd/attention_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "simd/attention-inl.h"
#include "simd/attention_amx-inl.h"
#include "simd/kv_page-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {
namespace {

// Widest group of queries: against float keys, and for the output sums.
constexpr size_t kWideScores = kLanes == 16 ? 12 : 6;
constexpr size_t kWideSums = 6;
// Pages are turned into floats once for more queries than this, on the fly for fewer.
constexpr size_t kFewQueries = 8;

// Whether matrix registers multiply bfloat16 pages of this shape: then they do so for any number of
// queries.
bool CanTile([[maybe_unused]] const KvShape& shape) {
#if SLUICE_AMX_TILES
  return FitsTiles(shape) && HasAmx();
#else
  return false;
#endif
}
bool CanDotBf16(const KvShape& shape) {
  return shape.type == KvType::kBF16 && (SLUICE_FAST_DOT_BF16 || CanTile(shape));
}

// Queries [begin, begin + count) of a call, packed, with the scratch they use.
struct Block {
  const AttentionArgs& a;
  size_t begin, count;
  ScratchPlan plan;
  size_t width, state_floats;
  bool tiles;  // multiply in matrix registers
  bool pairs;  // or as pairs of bfloat16

  Block(const AttentionArgs& args, size_t from)
      : a(args),
        begin(from),
        count(HWY_MIN(args.queries - from, BlockQueries(args.shape))),
        plan(args.shape),
        width(RoundUp16(args.shape.value_dim)),
        state_floats(AttentionStateFloats(args.shape)),
        tiles(Direct(args) && CanTile(args.shape)),
        pairs(Direct(args) && SLUICE_FAST_DOT_BF16 && !tiles) {}

  static bool Direct(const AttentionArgs& args) {
    return args.shape.type == KvType::kBF16 && !args.portable;
  }

  float* Scratch(size_t offset) const { return reinterpret_cast<float*>(a.scratch) + offset; }
  bool Wide() const { return count > kFewQueries; }
  // Groups go by position in the block only, so packing and every span agree.
  size_t GroupSize(size_t at) const {
    const size_t left = count - at;
    return Wide() && left >= kWideScores ? kWideScores : HWY_MIN(left, 4);
  }
  Slots Seen(size_t q, size_t span) const {
    const int64_t base = static_cast<int64_t>(span * kSpan);
    return {HWY_MAX(a.first[begin + q] - base, 0),
            HWY_MIN(a.position[begin + q] + 1 - base, static_cast<int64_t>(kSpan))};
  }
};

// A query as pairs of bfloat16, each in the place of a float.
void PackPairs(const float* q, size_t key_dim, float* to, size_t stride) {
  const hn::CappedTag<float, 4> d;
  const hn::Repartition<hwy::bfloat16_t, decltype(d)> d16;
  HWY_ALIGN float pairs[4];
  for (size_t i = 0; i < key_dim; i += 8) {
    const auto half = hn::OrderedDemote2To(d16, hn::LoadU(d, q + i), hn::LoadU(d, q + i + 4));
    hn::Store(hn::BitCast(d, half), d, pairs);
    for (size_t j = 0; j < 4; ++j, to += stride) hwy::CopyBytes<sizeof(float)>(pairs + j, to);
  }
}

#if SLUICE_AMX_TILES
void PackTiles(const Block& b) {
  const size_t key_dim = b.a.shape.key_dim;
  uint8_t* const to = reinterpret_cast<uint8_t*>(b.Scratch(b.plan.queries));
  for (size_t q = 0; q < b.count; ++q) {
    PackTileQuery(b.a.query[b.begin + q], key_dim,
                  to + q / kTileQueries * KeySteps(key_dim) * kTileBytes, q % kTileQueries);
  }
}
#endif

// Groups of queries with the query innermost: [key_dim][group], or [key_dim / 2][group] pairs.
void PackQueries(const Block& b) {
#if SLUICE_AMX_TILES
  if (b.tiles) return PackTiles(b);
#endif
  float* to = b.Scratch(b.plan.queries);
  const size_t key_dim = b.a.shape.key_dim, steps = b.pairs ? key_dim / 2 : key_dim;
  for (size_t at = 0, n; at < b.count; at += n, to += n * steps) {
    n = b.GroupSize(at);
    for (size_t t = 0; t < n; ++t) {
      const float* q = b.a.query[b.begin + at + t];
      if (b.pairs) {
        PackPairs(q, key_dim, to + t, n);
      } else {
        for (size_t i = 0; i < key_dim; ++i) to[i * n + t] = q[i];
      }
    }
  }
}

template <class Math>
struct SoftMaxOf {
  using Type = FloatSoftMax;
};
// Sources that wide groups read: what needs no conversion.
template <class Source>
constexpr bool kWide = false;
template <>
constexpr bool kWide<PlainSource<float>> = true;
#if SLUICE_FAST_DOT_BF16
template <>
struct SoftMaxOf<PairMath> {
  using Type = PairSoftMax;
};
template <>
constexpr bool kWide<PairSource<false>> = true;
#endif

// Which slots of a span `n` queries see, and the range that holds them all.
template <size_t N>
struct SeenSlots {
  Slots seen[N];
  size_t begin = kSpan, end = 0;

  SeenSlots() = default;
  SeenSlots(const Block& b, size_t span, size_t at, size_t n) {
    for (size_t t = 0; t < n; ++t) {
      seen[t] = b.Seen(at + t, span);
      if (seen[t].Empty()) continue;
      begin = HWY_MIN(begin, static_cast<size_t>(seen[t].begin));
      end = HWY_MAX(end, static_cast<size_t>(seen[t].end));
    }
  }
};

// One span for the N queries from `at` on.
template <size_t N, class Source>
HWY_NOINLINE void RunGroup(const Block& b, const Source& source, size_t span, size_t at,
                           float* states) {
  using Math = typename Source::Math;
  constexpr size_t kPer = Math::kPerStep;
  const SeenSlots<N> slots(b, span, at, N);
  const size_t begin = slots.begin, end = slots.end;
  if (begin >= end) return;
  float* scores = b.Scratch(b.plan.scores);
  const size_t steps = b.a.shape.key_dim / kPer;
  Scores<N>(source, steps, b.Scratch(b.plan.queries) + at * steps, begin, end, scores);
  HWY_ALIGN float factor[RoundUp16(N)];
  float* o = states + at * b.state_floats;
  SoftMaxSpan<typename SoftMaxOf<Math>::Type, N>(b.a, slots.seen, scores, o, b.state_floats,
                                                 b.width, factor);
  const size_t first = begin / kPer, last = (end + kPer - 1) / kPer;
  constexpr size_t kSums = HWY_MIN(N, kWideSums), kVecs = VectorsBeside(kSums, kSpan / kLanes);
  for (size_t t = 0; t < N; t += kSums) {
    AccumulateRow<kSums, kVecs>(source, 0, b.a.shape.value_dim, scores + t * kSpan, first, last,
                                factor + t, o + t * b.state_floats, b.state_floats);
  }
}

// Not done: one column of keys, later of values, through all groups before the next, to keep it in
// the L1 cache: 2-5 % slower on Zen 4, where L2 feeds these loops.
template <class Source>
void RunSpan(const Block& b, const Source& source, size_t span, float* states) {
  for (size_t at = 0, n; at < b.count; at += n) {
    n = b.GroupSize(at);
    switch (n) {
      case 1:
        RunGroup<1>(b, source, span, at, states);
        break;
      case 2:
        RunGroup<2>(b, source, span, at, states);
        break;
      case 3:
        RunGroup<3>(b, source, span, at, states);
        break;
      case 4:
        RunGroup<4>(b, source, span, at, states);
        break;
      default:
        if constexpr (kWide<Source>) {
          RunGroup<kWideScores>(b, source, span, at, states);
        }
    }
  }
}

// A whole page as floats in scratch.
template <class Source>
PlainSource<float> Expand(const Block& b, const Source& source) {
  const FloatTag d;
  const KvShape& shape = b.a.shape;
  float* keys = b.Scratch(b.plan.keys);
  float* values = b.Scratch(b.plan.values);
  for (size_t i = 0; i < shape.key_dim; ++i) {
    for (size_t slot = 0; slot < kSpan; slot += kLanes) {
      hn::Store(source.Key(d, i, slot), d, keys + i * kSpan + slot);
    }
  }
  const hn::CappedTag<float, 8> d8;
  for (size_t slot = 0; slot < kSpan; ++slot) {
    float* to = values + slot * b.plan.value_stride;
    size_t i = 0;
    for (; i + kLanes <= shape.value_dim; i += kLanes)
      hn::Store(source.Value(d, slot, i), d, to + i);
    if (i < shape.value_dim) hn::Store(source.Value(d8, slot, i), d8, to + i);
  }
  return PlainSource<float>(keys, values, b.plan.value_stride);
}

// Starts the states of the n queries from `at` on afresh and calls run(page, the page they read
// after it, span) for the spans of one unit.
template <class F>
HWY_INLINE void ForSpans(const Block& b, size_t unit, size_t at, size_t n, float* states,
                         const F& run) {
  for (size_t q = at; q < at + n; ++q) ClearState(states + q * b.state_floats, b.width);
  const auto seen = [&](size_t span) {
    for (size_t q = at; q < at + n; ++q) {
      if (!b.Seen(q, span).Empty()) return true;
    }
    return false;
  };
  for (size_t span = unit * kUnitSpans; span < (unit + 1) * kUnitSpans; ++span) {
    if (!seen(span)) continue;
    const uint8_t* page = b.a.pages[span % b.a.ring_pages];
    const uint8_t* next = seen(span + 1) ? b.a.pages[(span + 1) % b.a.ring_pages] : page;
    run(page, next, span);
  }
}

#if SLUICE_AMX_TILES
// One unit for up to 16 queries in matrix registers. The next span's scores are multiplied before
// this one's soft-max, so that neither waits for what the other stored.
class TileGroup {
 public:
  TileGroup(const Block& b, size_t at, size_t n, float* states)
      : b_(b),
        at_(at),
        states_(states + at * b.state_floats),
        query_(reinterpret_cast<const uint8_t*>(b.Scratch(b.plan.queries)) +
               at / kTileQueries * KeySteps(b.a.shape.key_dim) * kTileBytes),
        softmax_(n),
        sums_(states_, b.state_floats, b.Scratch(b.plan.keys)) {
    for (size_t q = b.begin + at; q < b.begin + at + n; ++q) {
      first_ = HWY_MAX(first_, b.a.first[q]);
      position_ = HWY_MIN(position_, b.a.position[q]);
    }
  }

  HWY_INLINE void Span(const TilePage& page, size_t span) {
    Part& next = parts_[turn_];
    next.page = page;
    const int64_t base = static_cast<int64_t>(span * kSpan);
    next.all = first_ <= base && position_ >= base + static_cast<int64_t>(kSpan) - 1;
    if (!next.all) next.slots = SeenSlots<kTileQueries>(b_, span, at_, softmax_.n);
    TileScores(page, query_, next.all ? kSpan : next.slots.end, Scores(turn_));
    Finish();
    turn_ = 1 - turn_;
    started_ = true;
  }

  void End() {
    Finish();
    sums_.AddLast(softmax_);
    for (size_t t = 0; t < softmax_.n; ++t) {
      StoreSoftmax({softmax_.max[t], softmax_.sum[t]}, states_ + t * b_.state_floats, b_.width);
    }
  }

 private:
  struct Part {
    TilePage page;
    bool all;  // every query sees every slot: then `slots` are not used
    SeenSlots<kTileQueries> slots;
  };
  // The span before.
  HWY_INLINE void Finish() {
    if (!started_) return;
    const Part& part = parts_[1 - turn_];
    float* const scores = Scores(1 - turn_);
    sums_.AddLast(softmax_);
    if (part.all) {
      TileSoftMax<true>(b_.a, part.slots.seen, scores, softmax_);
      sums_.Multiply<0, 2>(part.page, scores, softmax_);
    } else {
      TileSoftMax<false>(b_.a, part.slots.seen, scores, softmax_);
      sums_.Multiply(part.page, part.slots.begin, part.slots.end, scores, softmax_);
    }
  }
  float* Scores(size_t turn) const {
    return b_.Scratch(b_.plan.scores) + turn * kTileQueries * kSpan;
  }

  const Block& b_;
  const size_t at_;
  float* const states_;
  const uint8_t* const query_;
  int32_t first_ = 0, position_ = INT32_MAX;  // what all of them see begins and ends here
  Part parts_[2];
  size_t turn_ = 0;
  bool started_ = false;
  TileSoftMaxes softmax_;
  TileSums sums_;
};

// Groups outermost: a group's states stay in L1, and the unit's pages, which do not, in L2.
void RunTileUnit(const Block& b, size_t unit, float* states) {
  for (size_t at = 0; at < b.count; at += kTileQueries) {
    const size_t n = HWY_MIN(b.count - at, kTileQueries);
    const AmxTiles registers(AttentionShape(n));
    TileGroup group(b, at, n, states);
    ForSpans(b, unit, at, n, states,
             [&](const uint8_t* page, const uint8_t* next, size_t span)
                 HWY_ATTR { group.Span(TilePage(b.a.shape, page, next, at == 0), span); });
    group.End();
  }
}
#endif

// One span for all queries; `next`: the page they read after it.
void RunPage(const Block& b, const uint8_t* page, [[maybe_unused]] const uint8_t* next, size_t span,
             float* states) {
#if SLUICE_FAST_DOT_BF16
  if (b.pairs && b.Wide()) {
    return RunSpan(b, PairSource<false>(b.a.shape, page, next), span, states);
  }
  if (b.pairs) return RunSpan(b, PairSource<true>(b.a.shape, page, next), span, states);
#endif
  const auto run = [&](const auto& source) HWY_ATTR {
    if constexpr (hwy::IsSame<hwy::RemoveCvRef<decltype(source)>, PlainSource<float>>()) {
      RunSpan(b, source, span, states);
    } else if (b.Wide()) {
      RunSpan(b, Expand(b, source), span, states);
    } else {
      RunSpan(b, source, span, states);
    }
  };
  WithSource(b.a.shape, page, b.Scratch(b.plan.scale_table), run);
}

// Takes the block's states through one unit.
void RunUnit(const Block& b, size_t unit, float* states) {
#if SLUICE_AMX_TILES
  if (b.tiles) return RunTileUnit(b, unit, states);
#endif
  ForSpans(b, unit, 0, b.count, states,
           [&](const uint8_t* page, const uint8_t* next, size_t span)
               HWY_ATTR { RunPage(b, page, next, span, states); });
}

void RunBlock(const Block& b) {
  PackQueries(b);
  float* states = b.Scratch(b.plan.states);
  float* unit_states = b.Scratch(b.plan.unit_states);
  size_t unit_begin = SIZE_MAX, unit_end = 0;
  for (size_t q = 0; q < b.count; ++q) {
    ClearState(states + q * b.state_floats, b.width);
    unit_begin = HWY_MIN(unit_begin, AttentionFirstUnit(b.a.first[b.begin + q]));
    unit_end = HWY_MAX(unit_end, AttentionEndUnit(b.a.position[b.begin + q]));
  }
  for (size_t unit = unit_begin; unit < unit_end; ++unit) {
    RunUnit(b, unit, unit_states);
    for (size_t q = 0; q < b.count; ++q) {
      MergeState(unit_states + q * b.state_floats, b.width, states + q * b.state_floats);
    }
  }
  for (size_t q = 0; q < b.count; ++q) {
    const size_t i = b.begin + q;
    FinishState(states + q * b.state_floats, b.width, b.a.sink ? b.a.sink + i : nullptr,
                b.a.shape.value_dim, b.a.out[i]);
  }
}

void Attention(const AttentionArgs& a) {
  for (size_t at = 0; at < a.queries; at += BlockQueries(a.shape)) RunBlock(Block(a, at));
}

void AttentionUnit(const AttentionArgs& a, size_t unit, float* states) {
  for (size_t at = 0; at < a.queries; at += BlockQueries(a.shape)) {
    const Block b(a, at);
    PackQueries(b);
    RunUnit(b, unit, states + at * b.state_floats);
  }
}

void AttentionMerge(const AttentionArgs& a, const float* states, size_t units) {
  const size_t width = RoundUp16(a.shape.value_dim), floats = AttentionStateFloats(a.shape);
  float* sum = reinterpret_cast<float*>(a.scratch);
  for (size_t q = 0; q < a.queries; ++q) {
    ClearState(sum, width);
    for (size_t u = 0; u < units; ++u)
      MergeState(states + (u * a.queries + q) * floats, width, sum);
    FinishState(sum, width, a.sink ? a.sink + q : nullptr, a.shape.value_dim, a.out[q]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(Attention);
HWY_EXPORT(CanDotBf16);
HWY_EXPORT(AttentionUnit);
HWY_EXPORT(AttentionMerge);

bool DotsBf16(const KvShape& shape) { return HWY_DYNAMIC_DISPATCH(CanDotBf16)(shape); }

size_t AttentionScratchBytes(const KvShape& shape) {
  return (ScratchPlan(shape).floats * sizeof(float) + 63) / 64 * 64;
}

void Attention(const AttentionArgs& args) { HWY_DYNAMIC_DISPATCH(Attention)(args); }
void AttentionUnit(const AttentionArgs& args, size_t unit, float* states) {
  HWY_DYNAMIC_DISPATCH(AttentionUnit)(args, unit, states);
}
void AttentionMerge(const AttentionArgs& args, const float* states, size_t units) {
  HWY_DYNAMIC_DISPATCH(AttentionMerge)(args, states, units);
}

}  // namespace sluice
#endif  // HWY_ONCE
