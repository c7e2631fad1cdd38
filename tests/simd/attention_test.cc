// Attention against soft-max in double, and the promise that a query's bytes depend on nothing but
// its own position and the stored keys and values.
#include "simd/attention.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <memory>

#include "tests/simd/each_target.h"
#include "tests/simd/float_check.h"

namespace sluice {
namespace {

using Floats = std::vector<float>;

struct FreeAligned {
  void operator()(uint8_t* p) const { operator delete[](p, std::align_val_t(64)); }
};
using Bytes = std::unique_ptr<uint8_t[], FreeAligned>;
Bytes Aligned(size_t n, uint8_t fill) {
  Bytes b(new (std::align_val_t(64)) uint8_t[n]);
  memset(b.get(), fill, n);
  return b;
}

struct Options {
  KvShape shape{64, 64, KvType::kF32};
  size_t positions = 300, heads = 4;
  size_t window = 1 << 20;
  float soft_cap = 0;
  bool sinks = false;
  uint64_t seed = 1;
  float range = 1;
  bool portable = true;
};

// Keys, values and queries of a whole sequence. Queries: [positions][heads][key_dim].
class Sequence {
 public:
  Floats keys, values, queries, sinks;

  explicit Sequence(const Options& o) : o_(o) {
    Random r(o.seed);
    keys = r.Floats(o.positions * o.shape.key_dim, 2 * o.range);
    values = r.Floats(o.positions * o.shape.value_dim, 1);
    queries = r.Floats(o.positions * o.heads * o.shape.key_dim, 1);
    sinks = r.Floats(o.heads, 3);
    scratch_ = Aligned(AttentionScratchBytes(o.shape), 0xff);
  }

  // Runs position by position in chunks: each chunk's keys are stored, then its queries run, as a
  // model does.
  Floats Run(size_t chunk, size_t ring_pages = 0, size_t tile = SIZE_MAX, bool units = false) {
    const size_t pages = ring_pages ? ring_pages : (o_.positions + kSpan - 1) / kSpan;
    const size_t page_bytes = KvPageBytes(o_.shape);
    const Bytes memory = Aligned(pages * page_bytes, 0);
    std::vector<uint8_t*> table;
    for (size_t i = 0; i < pages; ++i) table.push_back(memory.get() + i * page_bytes);
    Floats out(o_.positions * o_.heads * o_.shape.value_dim, -1);
    for (size_t begin = 0; begin < o_.positions; begin += chunk) {
      const size_t end = std::min(o_.positions, begin + chunk);
      for (size_t p = begin; p < end; ++p) {
        KvStore(o_.shape, table[p / kSpan % pages], p % kSpan, &keys[p * o_.shape.key_dim],
                &values[p * o_.shape.value_dim]);
      }
      const size_t last = end * o_.heads;
      for (size_t i = begin * o_.heads; i < last; i += std::min(tile, last - i)) {
        Attend(table, i, std::min(last, i + std::min(tile, last - i)), units, out);
      }
    }
    return out;
  }

  // The formula in double over what the pages hold.
  void ExpectRight(const Floats& out, double tolerance) {
    const KvShape& s = o_.shape;
    const Floats stored_keys = Stored(true), stored_values = Stored(false);
    for (size_t i = 0; i < o_.positions * o_.heads; i += i % 7 + 1) {
      const size_t p = i / o_.heads, first = p + 1 > o_.window ? p + 1 - o_.window : 0;
      double max = o_.sinks ? sinks[i % o_.heads] : -1e300, sum = 0;
      std::vector<double> score, want(s.value_dim);
      for (size_t k = first; k <= p; ++k) {
        double dot = 0;
        for (size_t d = 0; d < s.key_dim; ++d) {
          dot += static_cast<double>(queries[i * s.key_dim + d]) * stored_keys[k * s.key_dim + d];
        }
        dot *= Scale();
        if (o_.soft_cap > 0) dot = o_.soft_cap * tanh(dot / o_.soft_cap);
        score.push_back(dot);
        max = fmax(max, dot);
      }
      if (o_.sinks) sum = exp(sinks[i % o_.heads] - max);
      for (size_t k = first; k <= p; ++k) {
        const double w = exp(score[k - first] - max);
        sum += w;
        for (size_t d = 0; d < s.value_dim; ++d) want[d] += w * stored_values[k * s.value_dim + d];
      }
      for (size_t d = 0; d < s.value_dim; ++d) {
        ASSERT_NEAR(out[i * s.value_dim + d], want[d] / sum, tolerance)
            << "query " << i << " position " << p << " dim " << d;
      }
    }
  }

  // Keys or values as pages hold them.
  Floats Stored(bool want_keys) const {
    const KvShape& s = o_.shape;
    Floats result, key(s.key_dim), value(s.value_dim);
    const Bytes page = Aligned(KvPageBytes(s), 0);
    for (size_t p = 0; p < o_.positions; ++p) {
      KvStore(s, page.get(), p % kSpan, &keys[p * s.key_dim], &values[p * s.value_dim]);
      KvLoad(s, page.get(), p % kSpan, key.data(), value.data());
      const Floats& part = want_keys ? key : value;
      result.insert(result.end(), part.begin(), part.end());
    }
    return result;
  }

 private:
  float Scale() const { return 1.0f / sqrtf(static_cast<float>(o_.shape.key_dim)); }

  void Attend(const std::vector<uint8_t*>& table, size_t begin, size_t end, bool units,
              Floats& out) {
    std::vector<const float*> query;
    std::vector<float*> to;
    std::vector<int32_t> position, first;
    Floats sink;
    for (size_t i = begin; i < end; ++i) {
      const int32_t p = static_cast<int32_t>(i / o_.heads);
      query.push_back(&queries[i * o_.shape.key_dim]);
      to.push_back(&out[i * o_.shape.value_dim]);
      position.push_back(p);
      first.push_back(std::max<int32_t>(0, p + 1 - static_cast<int32_t>(o_.window)));
      sink.push_back(sinks[i % o_.heads]);
    }
    AttentionArgs a;
    a.shape = o_.shape;
    a.pages = table.data();
    a.ring_pages = table.size();
    a.queries = end - begin;
    a.query = query.data();
    a.position = position.data();
    a.first = first.data();
    a.scale = Scale();
    a.soft_cap = o_.soft_cap;
    a.sink = o_.sinks ? sink.data() : nullptr;
    a.out = to.data();
    a.scratch = scratch_.get();
    a.portable = o_.portable;
    if (!units) return Attention(a);
    const size_t from = AttentionFirstUnit(first.front()),
                 n = AttentionEndUnit(position.back()) - from;
    const size_t floats = a.queries * AttentionStateFloats(o_.shape);
    Floats states(n * floats);
    for (size_t u = n; u-- > 0;) AttentionUnit(a, from + u, &states[u * floats]);
    AttentionMerge(a, states.data(), n);
  }

  Options o_;
  Bytes scratch_;
};

const KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8};

void ExpectSame(const Floats& a, const Floats& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

TEST(Attention, IsTheFormulaForEveryTypeAndDimension) {
  for (const KvType type : kTypes) {
    for (const auto& [key_dim, value_dim] : std::vector<std::pair<size_t, size_t>>{{64, 64},
                                                                                   {128, 128},
                                                                                   {256, 256},
                                                                                   {32, 96},
                                                                                   {192, 128},
                                                                                   {576, 512},
                                                                                   {24, 40},
                                                                                   {80, 80},
                                                                                   {8, 8}}) {
      if (type == KvType::kQ8 && (key_dim % 32 || value_dim % 32)) continue;
      Options o;
      o.shape = {key_dim, value_dim, type};
      o.positions = key_dim > 200 ? 90 : 200;
      SCOPED_TRACE(std::string(KvTypeName(type)) + " " + std::to_string(key_dim));
      OnEveryTarget([&] {
        Sequence s(o);
        const Floats decode = s.Run(1);
        s.ExpectRight(decode, 3e-6);
        ExpectSame(s.Run(o.positions), decode, "decode and all");
        return decode;
      });
    }
  }
}

TEST(Attention, SameBytesForAnyChunk) {
  for (const KvType type : kTypes) {
    for (const size_t window : {1 << 20, 512, 100}) {
      if (type != KvType::kF16 && window != 512) continue;  // one type shows what windows do
      Options o;
      o.shape = {32, 32, type};
      o.positions = 1500;
      o.window = window;
      SCOPED_TRACE(std::string(KvTypeName(type)) + " window " + std::to_string(window));
      OnEveryTarget([&] {
        Sequence s(o);
        const Floats decode = s.Run(1);
        s.ExpectRight(decode, 5e-6);
        for (const size_t chunk : {3, 7, 32, 100, 512, 1500}) {
          ExpectSame(s.Run(chunk), decode, "chunk " + std::to_string(chunk));
        }
        return decode;
      });
    }
  }
}

TEST(Attention, SameBytesForAnyTileHeadsAndUnits) {
  for (const size_t heads : {1, 2, 3, 5, 8}) {
    Options o;
    o.shape = {32, 24, KvType::kF16};
    o.positions = 530;  // two units
    o.heads = heads;
    o.sinks = heads % 2;
    OnEveryTarget([&] {
      Sequence s(o);
      const Floats decode = s.Run(1);
      s.ExpectRight(decode, 5e-6);
      for (const size_t tile : {1, 11, 50}) {
        ExpectSame(s.Run(200, 0, tile), decode, "tile " + std::to_string(tile));
      }
      ExpectSame(s.Run(1, 0, SIZE_MAX, true), decode, "decode in units");
      ExpectSame(s.Run(530, 0, SIZE_MAX, true), decode, "all in units");
      return decode;
    });
  }
}

TEST(Attention, RingReusesPages) {
  for (const KvType type : kTypes) {
    Options o;
    o.shape = {32, 64, type};
    o.positions = 1300;
    o.window = 200;
    OnEveryTarget([&] {
      Sequence s(o);
      const Floats full = s.Run(1);
      // Window and chunk in whole pages, plus one because neither starts on a page.
      ExpectSame(s.Run(1, 5), full, "decode in a ring");
      ExpectSame(s.Run(50, 6), full, "chunks of 50 in a ring");
      ExpectSame(s.Run(333, 11), full, "chunks of 333 in a ring");
      return full;
    });
  }
}

TEST(Attention, SoftCapAndSinks) {
  for (const bool sinks : {false, true}) {
    for (const float cap : {0.0f, 5.0f, 50.0f}) {
      Options o;
      o.shape = {64, 64, KvType::kF32};
      o.soft_cap = cap;
      o.sinks = sinks;
      o.window = 130;
      o.range = 10;
      OnEveryTarget([&] {
        Sequence s(o);
        s.sinks[0] = 120;  // far above every score
        const Floats decode = s.Run(1);
        s.ExpectRight(decode, 1e-5);
        ExpectSame(s.Run(77), decode, "chunks of 77");
        return decode;
      });
    }
  }
}

// Weights that underflow: a zero's sign must not tell which work was skipped.
TEST(Attention, SameBytesForExtremeScores) {
  Options o;
  o.shape = {16, 16, KvType::kF32};
  o.positions = 700;
  o.range = 100;
  OnEveryTarget([&] {
    Sequence s(o);
    const Floats decode = s.Run(1);
    s.ExpectRight(decode, 1e-4);
    for (const size_t chunk : {3, 100, 700}) ExpectSame(s.Run(chunk), decode, "chunk");
    return decode;
  });
}

// Products that underflow below zero leave -0, in both units here; whether a masked value's own
// zero turned it into 0 must not show.
TEST(Attention, ZerosHaveOneSign) {
  Options o;
  o.shape = {8, 8, KvType::kF32};
  o.positions = 520;
  o.heads = 1;
  Sequence s(o);
  std::fill(s.queries.begin(), s.queries.end(), 1.0f);
  std::fill(s.keys.begin(), s.keys.end(), 0.0f);
  std::fill(s.values.begin(), s.values.end(), -0.0f);
  std::fill_n(s.keys.begin(), 513 * 8,
              -28.0f);  // scores of -79, weights of 5e-35 against the last ones
  std::fill_n(s.values.begin(), 513 * 8, -1e-30f);
  std::fill_n(s.values.end() - 6 * 8, 6 * 8, 1.0f);  // query 513 does not see these
  OnEveryTarget([&] {
    const Floats decode = s.Run(1);
    ExpectSame(s.Run(520), decode, "all");
    return decode;
  });
}

// One target at a time: with the CPU's bfloat16 products the targets differ.
TEST(AttentionInPairs, IsTheFormulaAndSameBytesForAnyCut) {
  struct Case {
    size_t key_dim, value_dim, heads, window;
  };
  for (const Case& c : std::vector<Case>{{64, 64, 4, 1 << 20},
                                         {256, 256, 4, 300},
                                         {128, 128, 8, 77},
                                         {32, 96, 1, 512},
                                         {576, 512, 3, 100},
                                         {72, 80, 4, 1 << 20},
                                         {40, 48, 2, 90},
                                         {24, 40, 5, 33},
                                         {8, 8, 2, 1}}) {
    Options o;
    o.shape = {c.key_dim, c.value_dim, KvType::kBF16};
    o.positions = c.key_dim > 500 ? 130 : 620;
    o.heads = c.heads;
    o.window = c.window;
    o.sinks = c.heads % 2 != 0;
    o.portable = false;
    SCOPED_TRACE("key_dim " + std::to_string(c.key_dim));
    ForEachTarget([&] {
      Sequence s(o);
      const Floats decode = s.Run(1);
      // Queries and weights are rounded to 8 bits where the CPU has the products.
      s.ExpectRight(decode, DotsBf16(o.shape) ? 1.5e-2 : 5e-6);
      for (const size_t chunk : {3, 7, 32, 100, 512}) {
        ExpectSame(s.Run(chunk), decode, "chunk " + std::to_string(chunk));
      }
      for (const size_t tile : {1, 11, 50}) {
        ExpectSame(s.Run(200, 0, tile), decode, "tile " + std::to_string(tile));
      }
      ExpectSame(s.Run(1, 0, SIZE_MAX, true), decode, "decode in units");
      ExpectSame(s.Run(620, 0, SIZE_MAX, true), decode, "all in units");
      if (c.window < 200) ExpectSame(s.Run(50, 6), decode, "chunks of 50 in a ring");
    });
  }
}

// A query that points at one key and away from all others gets that key's value, to the bit: every
// slot and dimension is where it should be. 23 heads: groups of 16 and of fewer.
TEST(AttentionInPairs, OneKeyAloneGivesItsValue) {
  for (const auto& [key_dim, value_dim] :
       std::vector<std::pair<size_t, size_t>>{{64, 64}, {128, 96}, {88, 48}}) {
    Options o;
    o.shape = {key_dim, value_dim, KvType::kBF16};
    o.positions = 130;
    o.heads = 23;
    o.portable = false;
    SCOPED_TRACE("key_dim " + std::to_string(key_dim));
    Sequence s(o);
    for (float& k : s.keys) k = k < 0 ? -1 : 1;
    const auto target = [&](size_t i) { return i * 31 % (i / o.heads + 1); };
    for (size_t i = 0; i < o.positions * o.heads; ++i) {
      for (size_t d = 0; d < key_dim; ++d) {
        s.queries[i * key_dim + d] = 64 * s.keys[target(i) * key_dim + d];
      }
    }
    const Floats values = s.Stored(false);
    ForEachTarget([&] {
      for (const size_t chunk : {1, 130}) {
        const Floats out = s.Run(chunk);
        for (size_t i = 0; i < out.size(); ++i) {
          const size_t at = target(i / value_dim) * value_dim + i % value_dim;
          ASSERT_NEAR(out[i], values[at], DotsBf16(o.shape) ? 0 : 1e-6)
              << "query " << i / value_dim << " dim " << i % value_dim;
        }
      }
    });
  }
}

// Sums that fall below the smallest normal float: the products flush them, at whatever slot the
// first product of a span stands.
TEST(AttentionInPairs, SameBytesForTinyValues) {
  Options o;
  o.shape = {16, 16, KvType::kBF16};
  o.positions = 700;
  o.range = 60;
  o.portable = false;
  ForEachTarget([&] {
    Sequence s(o);
    for (float& v : s.values) v *= 1e-36f;
    const Floats decode = s.Run(1);
    for (const size_t chunk : {3, 64, 100, 700}) ExpectSame(s.Run(chunk), decode, "chunk");
  });
}

TEST(AttentionInPairs, OnlyOnRequestAndOnlyForBf16) {
  for (const KvType type : kTypes) {
    Options o;
    o.shape.type = type;
    o.positions = 70;
    Options other = o;
    other.portable = false;
    ForEachTarget([&] {
      const Floats floats = Sequence(o).Run(70), fast = Sequence(other).Run(70);
      EXPECT_EQ(floats != fast, DotsBf16(o.shape)) << KvTypeName(type);
      EXPECT_TRUE(type == KvType::kBF16 || !DotsBf16(o.shape));
    });
  }
}

TEST(Attention, QueryThatSeesNothingIsZero) {
  const KvShape shape{16, 16, KvType::kF16};
  const Bytes page = Aligned(KvPageBytes(shape), 0);
  const Bytes scratch = Aligned(AttentionScratchBytes(shape), 0xff);
  const uint8_t* pages[] = {page.get()};
  const Floats q(16, 1.0f);
  Floats out(16, 5.0f);
  const float* query = q.data();
  float* to = out.data();
  const int32_t position = 3, first = 4;
  AttentionArgs a;
  a.shape = shape;
  a.pages = pages;
  a.ring_pages = a.queries = 1;
  a.query = &query;
  a.position = &position;
  a.first = &first;
  a.out = &to;
  a.scratch = scratch.get();
  Attention(a);
  EXPECT_EQ(out, Floats(16, 0.0f));
}

// Constants, so that x86 and ARM64 are compared too. Who changes the arithmetic on purpose changes
// them.
TEST(Attention, SameBytesOnEveryMachine) {
  const uint64_t kExpected[] = {0x81186cd0d0a4a5feu, 0x8c93a84595de8c3eu, 0x2ea2df3b3fefb544u,
                                0xc3a591349f619c46u};
  for (size_t i = 0; i < 4; ++i) {
    Options o;
    o.shape = {64, 96, kTypes[i]};
    o.positions = 550;
    o.heads = 1;
    o.soft_cap = 20;
    o.sinks = true;
    EXPECT_EQ(OnEveryTarget([&] { return Sequence(o).Run(550); }), kExpected[i])
        << KvTypeName(kTypes[i]);
  }
}

TEST(KvPage, RoundsToNearestEvenAndStaysFinite) {
  const float kInf = HUGE_VALF;
  OnEveryTarget([&] {
    const KvShape f16{8, 8, KvType::kF16}, bf16{8, 8, KvType::kBF16}, f32{8, 8, KvType::kF32};
    const Floats x = {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 0x1p-25f, 0x1.8p-24f,
                      kInf,         -1e30f,           NAN,      -0.0f};
    const Bytes page = Aligned(KvPageBytes(f32), 0xff);
    Floats key(8), value(8);
    KvStore(f16, page.get(), 5, x.data(), x.data());
    KvLoad(f16, page.get(), 5, key.data(), value.data());
    EXPECT_EQ(key, (Floats{1, 1 + 0x1p-9f, 0, 0x1p-23f, 65504, -65504, 0, 0}));
    EXPECT_EQ(value, key);
    const Floats y = {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 0x1.01p-130f, -0x1p-149f,
                      kInf,        -3.4e38f,        NAN,          2};
    KvStore(bf16, page.get(), 63, y.data(), y.data());
    KvLoad(bf16, page.get(), 63, key.data(), value.data());
    EXPECT_EQ(key, (Floats{1, 1 + 0x1p-6f, 0x1p-130f, -0.0f, 0x1.fep127f, -0x1.fep127f, 0, 2}));
    EXPECT_EQ(value, key);
    KvStore(f32, page.get(), 0, y.data(), y.data());
    KvLoad(f32, page.get(), 0, key.data(), value.data());
    EXPECT_EQ(key[4], 3.40282347e38f);
    EXPECT_EQ(key[6], 0.0f);
    EXPECT_EQ(key[0], y[0]);
    return key;
  });
}

TEST(KvPage, Q8IsWithinHalfAStep) {
  OnEveryTarget([] {
    const KvShape shape{96, 64, KvType::kQ8};
    const Bytes page = Aligned(KvPageBytes(shape), 0xff);
    Random r(9);
    Floats x = r.Floats(96, 3), key(96), value(64);
    for (size_t i = 32; i < 64; ++i) x[i] *= 1e-3f;
    for (size_t i = 64; i < 96; ++i) x[i] = 0;
    KvStore(shape, page.get(), 7, x.data(), x.data());
    KvLoad(shape, page.get(), 7, key.data(), value.data());
    for (size_t i = 0; i < 96; ++i) {
      float amax = 0;
      for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) amax = fmaxf(amax, fabsf(x[j]));
      EXPECT_NEAR(key[i], x[i], amax * (0.5 / 127 + 0x1p-11));
      if (i < 64) {
        EXPECT_EQ(key[i], value[i]);
      }
    }
    return key;
  });
}

TEST(KvPage, BytesAreWhatThePartsTake) {
  EXPECT_EQ(KvPageBytes({256, 256, KvType::kF16}), 64u * 512 * 2);
  EXPECT_EQ(KvPageBytes({64, 128, KvType::kF32}), 64u * 192 * 4);
  EXPECT_EQ(KvPageBytes({64, 64, KvType::kQ8}), 64u * 128 + 64 * 4 * 2);
  EXPECT_STREQ(KvTypeName(KvType::kQ8), "q8");
}

}  // namespace
}  // namespace sluice
