// Attention in the tile registers of CPUs with AMX: up to 16 queries against one page of bf16 keys
// and values, whose pairs already lie as the instruction wants its second operand.
// Only simd/attention.cc includes this.
//
// Every number of queries is multiplied here, so that these CPUs have one set of bytes: per 32
// dimensions, or slots, the instruction adds the products of even and of odd ones each in ascending
// order, then both to the sum, and what other queries are in the tile does not matter
// (float_amx-inl.h). Slots and dimensions that are left out, or multiplied by zero, add nothing.
#if defined(SLUICE_SIMD_ATTENTION_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_ATTENTION_AMX_INL_H_
#undef SLUICE_SIMD_ATTENTION_AMX_INL_H_
#else
#define SLUICE_SIMD_ATTENTION_AMX_INL_H_
#endif

#include <stddef.h>
#include <stdint.h>

#include "simd/amx_tiles-inl.h"
#include "simd/attention-inl.h"

#if SLUICE_AMX_TILES
HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

constexpr size_t kTileQueries = 16;
constexpr size_t kTileDims = 32;                 // of a query in one tile, or slots of weights
constexpr size_t kTileSlots = 16;                // of keys in one tile, or dimensions of values
constexpr size_t kTileColumns = 4 * kTileSlots;  // of values, multiplied together
constexpr size_t kTileBytes = 1024;

// Other heads are multiplied as floats.
constexpr bool FitsTiles(const KvShape& s) {
  return s.key_dim >= kTileDims && s.value_dim % kTileSlots == 0;
}

// Steps of 32 dimensions. The last one ends with the key: where it begins inside the one before,
// the query has zeros.
constexpr size_t KeySteps(size_t key_dim) { return (key_dim + kTileDims - 1) / kTileDims; }

// Sums in 0 to 3, queries or weights in 4 and 5, keys or values in 6 and 7. Few queries take less
// time.
inline AmxShape AttentionShape(size_t queries) {
  AmxShape shape;
  for (size_t t = 0; t < 8; ++t) {
    shape.row_bytes[t] = 64;
    shape.rows[t] = static_cast<uint8_t>(t > 5 ? 16 : queries);
  }
  return shape;
}

// One query of a group: [steps][16 queries][32] bfloat16.
HWY_INLINE void PackTileQuery(const float* q, size_t key_dim, uint8_t* group, size_t t) {
  const hn::CappedTag<float, 4> d;
  const hn::Repartition<hwy::bfloat16_t, decltype(d)> d16;
  const size_t steps = KeySteps(key_dim);
  for (size_t s = 0; s < steps; ++s) {
    hwy::bfloat16_t* to =
        reinterpret_cast<hwy::bfloat16_t*>(group + s * kTileBytes + t * kTileDims * 2);
    const size_t begin = HWY_MIN(s * kTileDims, key_dim - kTileDims), done = s * kTileDims;
    for (size_t i = begin; i < begin + kTileDims; i += 8, to += 8) {
      const auto pairs = hn::OrderedDemote2To(d16, hn::LoadU(d, q + i), hn::LoadU(d, q + i + 4));
      hn::StoreU(i < done ? hn::Zero(d16) : pairs, d16, to);
    }
  }
}

// A page, and the next one to read: each tile that the first group loads asks for as many bytes of
// that one, in the order of their addresses, which the hardware goes on from. Asking for the same
// lines that the tile has, in its order: 6 to 11 % slower from memory (heads of 64, 128), 3 to 5 %
// from caches; into L1, or for every second or fourth line: no better than that.
struct TilePage {
  const uint8_t *keys, *values, *next_keys, *next_values;
  size_t key_dim, value_dim;
  bool ahead;

  TilePage() = default;
  TilePage(const KvShape& shape, const uint8_t* page, const uint8_t* next_page, bool prefetch)
      : keys(page),
        values(page + KvLayout(shape).values),
        next_keys(next_page),
        next_values(next_page + KvLayout(shape).values),
        key_dim(shape.key_dim),
        value_dim(shape.value_dim),
        ahead(prefetch) {}

  template <int kTile>
  HWY_INLINE void Load(const uint8_t* p, size_t stride, const uint8_t* next) const {
    if (ahead) {
      for (size_t at = 0; at < kTileBytes; at += 64) __builtin_prefetch(next + at, 0, 2);
    }
    LoadTile<kTile>(p, stride);
  }
};

// One tile of 16 slots for one step of dimensions.
template <int kTile>
HWY_INLINE void TileScore(const TilePage& page, const uint8_t* keys, size_t step) {
  constexpr int kKey = 6 + kTile % 2;
  page.Load<kKey>(keys + kTile * 64, kSpan * sizeof(uint32_t),
                  page.next_keys + (4 * step + kTile) * kTileBytes);
  MultiplyBf16<kTile, 4, kKey>();
}

// scores[16][slot] = q[t] . key[slot] for the first kTiles x 16 slots. q: [steps][16][32].
template <int kTiles>
HWY_INLINE void TileScores(const TilePage& page, const uint8_t* q, float* scores) {
  constexpr size_t kStride = kSpan * sizeof(float);
  ZeroTile<0>();
  if constexpr (kTiles > 1) ZeroTile<1>();
  if constexpr (kTiles > 2) ZeroTile<2>();
  if constexpr (kTiles > 3) ZeroTile<3>();
  const size_t steps = KeySteps(page.key_dim);
  for (size_t s = 0; s < steps; ++s, q += kTileBytes) {
    const size_t dim = HWY_MIN(s * kTileDims, page.key_dim - kTileDims);
    const uint8_t* keys = page.keys + dim / 2 * kSpan * sizeof(uint32_t);
    LoadTile<4>(q, 64);
    TileScore<0>(page, keys, s);
    if constexpr (kTiles > 1) TileScore<1>(page, keys, s);
    if constexpr (kTiles > 2) TileScore<2>(page, keys, s);
    if constexpr (kTiles > 3) TileScore<3>(page, keys, s);
  }
  StoreTile<0>(scores, kStride);
  if constexpr (kTiles > 1) StoreTile<1>(scores + 16, kStride);
  if constexpr (kTiles > 2) StoreTile<2>(scores + 32, kStride);
  if constexpr (kTiles > 3) StoreTile<3>(scores + 48, kStride);
}
// The tiles that hold slots before `end`.
HWY_INLINE void TileScores(const TilePage& page, const uint8_t* q, size_t end, float* scores) {
  if (end > 48) return TileScores<4>(page, q, scores);
  if (end > 32) return TileScores<3>(page, q, scores);
  if (end > 16) return TileScores<2>(page, q, scores);
  TileScores<1>(page, q, scores);
}

// Largest scores and sums of weights of n queries, and of the last span the factors for what had
// been summed before.
struct TileSoftMaxes {
  HWY_ALIGN float max[kTileQueries], sum[kTileQueries] = {}, factor[kTileQueries];
  size_t n;
  explicit TileSoftMaxes(size_t queries) : n(queries) {
    for (float& m : max) m = kLowest;
  }
};

// The soft-max of one span: raw scores to pairs of weights, maxima moved on. A query that sees
// nothing has weights of 0 and a factor of 1.
template <bool kAll>
HWY_INLINE void TileSoftMax(const AttentionArgs& a, const Slots* seen, float* HWY_RESTRICT scores,
                            TileSoftMaxes& m) {
  const FloatTag d;
  HWY_ALIGN float top[kTileQueries];
  for (size_t i = 0; i < kTileQueries; i += kLanes) {
    hn::Store(hn::Set(d, kLowest), d, top + i);
  }
  for (size_t t = 0; t < m.n; ++t) {
    if (!kAll && seen[t].Empty()) continue;
    const Slots slots = kAll ? Slots{0, kSpan} : seen[t];
    top[t] = PairSoftMax::Finish(a, slots, scores + t * kSpan);
  }
  for (size_t i = 0; i < kTileQueries; i += kLanes) {
    const FloatVec old = hn::Load(d, m.max + i), max = hn::Max(old, hn::Load(d, top + i));
    hn::Store(ExpNonPositive(d, hn::Sub(old, max)), d, m.factor + i);
    hn::Store(max, d, m.max + i);
  }
  for (size_t t = 0; t < m.n; ++t) {
    float* const weights = scores + t * kSpan;
    if (!kAll && seen[t].Empty()) {
      hwy::ZeroBytes(weights, kSpan * sizeof(uint16_t));
    } else {
      PairSoftMax::Weigh(a, m.max[t], kAll ? Slots{0, kSpan} : seen[t], weights);
    }
  }
}

// Values of 1: their products are the sums of the weights as they were rounded.
struct alignas(64) Ones {
  uint32_t pairs[256];
  constexpr Ones() : pairs() {
    for (uint32_t& p : pairs) p = 0x3f803f80;
  }
};
constexpr Ones kOnes;

// products[16][64]: weights of slots [32 kBegin, 32 kEnd) . values, for the 16 dimensions from
// `dim` on.
template <int kTile, size_t kBegin, size_t kEnd>
HWY_INLINE void TileValue(const TilePage& page, size_t dim, float* products) {
  const size_t row = page.value_dim * sizeof(uint32_t);
  const uint8_t* values = page.values + (dim + kTile * kTileSlots) * sizeof(uint32_t);
  const uint8_t* next = page.next_values + 2 * (dim / kTileSlots + kTile) * kTileBytes;
  ZeroTile<kTile>();
  if constexpr (kBegin == 0) {
    page.Load<6>(values, row, next);
    MultiplyBf16<kTile, 4, 6>();
  }
  if constexpr (kEnd == 2) {
    page.Load<7>(values + 16 * row, row, next + kTileBytes);
    MultiplyBf16<kTile, 5, 7>();
  }
  StoreTile<kTile>(products + kTile * kTileSlots, kTileColumns * sizeof(float));
}

// The output sums of a group: o = o * factor + weights . values. Products come back through memory,
// so each 64 columns of them are added after the next were issued, the last of a span in the next
// span.
class TileSums {
 public:
  // o: [n][stride] floats; buffers: [3][16][64].
  TileSums(float* o, size_t stride, float* buffers) : o_(o), stride_(stride), buffers_(buffers) {}

  // Slots [32 kBegin, 32 kEnd).
  template <size_t kBegin, size_t kEnd>
  HWY_INLINE void Multiply(const TilePage& page, const float* weights, const TileSoftMaxes& m) {
    constexpr size_t kStride = kSpan * sizeof(float);
    if constexpr (kBegin == 0) LoadTile<4>(weights, kStride);
    if constexpr (kEnd == 2) LoadTile<5>(weights + kTileDims / 2, kStride);
    ZeroTile<3>();
    LoadTile<6>(kOnes.pairs, 64);
    if constexpr (kBegin == 0) MultiplyBf16<3, 4, 6>();
    if constexpr (kEnd == 2) MultiplyBf16<3, 5, 6>();
    StoreTile<3>(Buffer(2), kTileColumns * sizeof(float));
    const size_t n = page.value_dim;
    for (size_t dim = 0; dim < n; dim += kTileColumns) {
      float* const to = Buffer(dim / kTileColumns % 2);
      TileValue<0, kBegin, kEnd>(page, dim, to);
      if (dim + 16 < n) TileValue<1, kBegin, kEnd>(page, dim, to);
      if (dim + 32 < n) TileValue<2, kBegin, kEnd>(page, dim, to);
      if (dim + 48 < n) TileValue<3, kBegin, kEnd>(page, dim, to);
      if (dim > 0) AddColumns(m, dim - kTileColumns, kTileColumns);
    }
    rest_ = n - (n - 1) / kTileColumns * kTileColumns;
    last_ = n - rest_;
  }
  HWY_INLINE void Multiply(const TilePage& page, size_t begin, size_t end, const float* weights,
                           const TileSoftMaxes& m) {
    if (end <= kTileDims) return Multiply<0, 1>(page, weights, m);
    if (begin >= kTileDims) return Multiply<1, 2>(page, weights, m);
    Multiply<0, 2>(page, weights, m);
  }

  // What is left of the last span, before its factors are overwritten.
  HWY_INLINE void AddLast(TileSoftMaxes& m) {
    if (rest_ == 0) return;
    AddColumns(m, last_, rest_);
    rest_ = 0;
    for (size_t t = 0; t < m.n; ++t) {
      m.sum[t] = Fma1(m.sum[t], m.factor[t], Buffer(2)[t * kTileColumns]);
    }
  }

 private:
  float* Buffer(size_t i) const { return buffers_ + i * kTileQueries * kTileColumns; }
  HWY_INLINE void AddColumns(const TileSoftMaxes& m, size_t dim, size_t count) const {
    const FloatTag d;
    const float* products = Buffer(dim / kTileColumns % 2);
    float* o = o_ + dim;
    for (size_t t = 0; t < m.n; ++t, o += stride_, products += kTileColumns) {
      const FloatVec factor = hn::Set(d, m.factor[t]);
      for (size_t i = 0; i < count; i += kLanes) {
        const FloatVec old = hn::LoadU(d, o + i);
        hn::StoreU(hn::MulAdd(old, factor, hn::Load(d, products + i)), d, o + i);
      }
    }
  }

  float* const o_;
  const size_t stride_;
  float* const buffers_;
  size_t last_ = 0, rest_ = 0;  // columns that are not added yet
};

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_AMX_TILES
#endif
