// Every format's kernel on every target of this CPU against ReferenceDot, bit for bit.
#include "simd/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "hwy/aligned_allocator.h"
#include "quant/format.h"
#include "quant/half.h"
#include "simd/activations.h"
#include "tests/simd/each_target.h"

namespace sluice {
namespace {

using Random = std::mt19937;

constexpr float kCanary = -77.25f;

bool Sane(const Format& format, const uint8_t* block) {
  std::vector<float> w(format.block_values);
  format.decode(block, w.size(), w.data());
  return std::all_of(w.begin(), w.end(), [](float v) { return std::fabs(v) < 1e6f; });
}

// Any bytes are a valid block, except for scales that are not finite.
void RandomBlock(const Format& format, Random& random, uint8_t* block) {
  do {
    for (uint32_t i = 0; i < format.block_bytes; ++i) block[i] = static_cast<uint8_t>(random());
  } while (!Sane(format, block));
}

// `byte` wherever it leaves the block finite: the largest and smallest codes and sub-scales.
void ExtremeBlock(const Format& format, Random& random, uint8_t byte, uint8_t* block) {
  RandomBlock(format, random, block);
  for (uint32_t i = 0; i < format.block_bytes; ++i) {
    const uint8_t before = block[i];
    block[i] = byte;
    if (!Sane(format, block)) block[i] = before;
  }
}

// A matrix, inputs, and the answer of the scalar definition.
struct Problem {
  const Format& format;
  size_t rows, k, tokens;
  size_t row_bytes;
  std::vector<uint8_t> weights;  // [rows][row_bytes]
  hwy::AlignedFreeUniquePtr<uint8_t[]> panels;
  std::vector<float> x;  // [tokens][k]
  std::vector<uint8_t> act_storage;
  ActView act;
  bool dots_bf16;
  std::vector<uint16_t> bf16;   // [tokens][k, even], for `dots_bf16`: x is then what it holds
  std::vector<float> expected;  // [tokens][rows]

  Problem(const Format& f, size_t rows, size_t k, size_t tokens, bool extreme, bool dots = false)
      : format(f),
        rows(rows),
        k(k),
        tokens(tokens),
        row_bytes(f.RowBytes(k)),
        weights(rows * row_bytes),
        x(tokens * k),
        act_storage(ActBytes(tokens, k) + 64),
        dots_bf16(dots) {
    Random random(static_cast<uint32_t>(k * 1000 + rows + f.gguf_type));
    FillWeights(random, extreme);
    FillInputs(random, extreme);
    if (dots_bf16) RoundInputs();
    if (format.panel_block_bytes != 0) FillPanels();
    for (size_t t = 0; t < tokens; ++t) {
      for (size_t r = 0; r < rows; ++r) {
        expected.push_back(ReferenceDot(format, &weights[r * row_bytes], k, act, t, x.data()));
      }
    }
  }

  void FillWeights(Random& random, bool extreme) {
    constexpr uint8_t kBytes[] = {0xff, 0x00, 0x80, 0x7f};
    for (size_t at = 0, i = 0; at < weights.size(); at += format.block_bytes, ++i) {
      if (extreme) {
        ExtremeBlock(format, random, kBytes[i % 4], &weights[at]);
      } else {
        RandomBlock(format, random, &weights[at]);
      }
    }
  }

  // Token 1 is all zeros; extreme tokens have |a| = 127 everywhere, of one sign or both.
  void FillInputs(Random& random, bool extreme) {
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = normal(random) * (random() % 64 == 0 ? 20.0f : 1.0f);
      if (i / k == 1) x[i] = 0;
      if (extreme && i / k % 3 == 0) x[i] = i / k % 2 == 0 ? -1.5f : 1.5f;
      if (extreme && i / k % 3 == 2) x[i] = random() % 2 == 0 ? -1.5f : 1.5f;
    }
    if (format.arithmetic != Arithmetic::kInt8) return;
    act = MakeActView(
        reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(act_storage.data()) + 63) / 64 * 64),
        tokens, k);
    for (size_t t = 0; t < tokens; ++t) QuantiseRow(&x[t * k], act, t);
  }

  void RoundInputs() {
    const size_t stride = (k + 1) / 2 * 2;
    bf16.assign(tokens * stride, 0x7fff);  // what lies between rows is not read: a NaN
    for (size_t i = 0; i < x.size(); ++i) {
      const uint16_t rounded = BF16FromF32(x[i]);
      bf16[i / k * stride + i % k] = rounded;
      x[i] = F32FromBF16(rounded);
    }
  }

  void FillPanels() {
    const size_t blocks = k / format.block_values;
    const size_t panel_bytes = blocks * format.panel_block_bytes;
    const size_t panel_count = (rows + kPanelRows - 1) / kPanelRows;
    panels = hwy::AllocateAligned<uint8_t>(panel_count * panel_bytes);
    const std::vector<uint8_t> zeros(row_bytes);
    for (size_t p = 0; p < panel_count; ++p) {
      const uint8_t* sources[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) {
        const size_t row = p * kPanelRows + r;
        sources[r] = row < rows ? &weights[row * row_bytes] : zeros.data();
      }
      format.to_panel(sources, blocks, panels.get() + p * panel_bytes);
    }
  }

  // Sum of the magnitudes of the products of one output.
  float Size(size_t t, size_t r) const {
    std::vector<float> w(k);
    format.decode(&weights[r * row_bytes], k, w.data());
    float size = 0;
    for (size_t i = 0; i < k; ++i) size += std::fabs(w[i] * x[t * k + i]);
    return size;
  }

  size_t out_stride() const { return rows + 5; }

  // [input][out_stride()]: rows [begin, end) of the product for the tokens that `input` names,
  // canaries elsewhere.
  std::vector<float> Run(bool use_panels, size_t begin, size_t end,
                         const std::vector<int32_t>& input, bool indirect) const {
    const size_t stride = out_stride();
    std::vector<float> out(input.size() * stride + kPanelRows, kCanary);
    auto scratch = hwy::AllocateAligned<uint8_t>(MatMulScratchBytes(k));
    MatMulArgs args;
    args.weights = use_panels ? panels.get() : weights.data();
    args.panels = use_panels;
    args.rows = rows;
    args.row_begin = begin;
    args.row_end = end;
    args.k = k;
    args.tokens = input.size();
    args.token_rows = indirect ? input.data() : nullptr;
    args.act = act;
    args.f32 = x.data();
    args.f32_stride = k;
    args.bf16 = dots_bf16 ? bf16.data() : nullptr;
    args.bf16_stride = (k + 1) / 2 * 2;
    args.out = out.data();
    args.out_stride = stride;
    args.scratch = scratch.get();
    format.matmul(args);
    return out;
  }

  // The same, compared; looks for stray writes.
  void Check(bool use_panels, size_t begin, size_t end, const std::vector<int32_t>& input,
             bool indirect) const {
    const size_t stride = out_stride();
    const std::vector<float> out = Run(use_panels, begin, end, input, indirect);
    size_t wrong = 0;
    for (size_t t = 0; t < input.size(); ++t) {
      for (size_t r = 0; r < stride; ++r) {
        const bool written = r >= begin && r < end;
        const float want = written ? expected[input[t] * rows + r] : kCanary;
        if (memcmp(&want, &out[t * stride + r], sizeof want) == 0) continue;
        if (++wrong > 3) return;
        ADD_FAILURE() << format.name << (use_panels ? " panels" : " rows") << " k " << k
                      << " tokens " << input.size() << " rows " << begin << ".." << end
                      << ": token " << t << " row " << r << " is " << out[t * stride + r]
                      << ", expected " << want;
      }
    }
  }

  void CheckBoth(size_t begin, size_t end, const std::vector<int32_t>& input, bool indirect) const {
    Check(false, begin, end, input, indirect);
    if (panels != nullptr) Check(true, begin, end, input, indirect);
  }
};

std::vector<int32_t> FirstTokens(size_t n) {
  std::vector<int32_t> tokens(n);
  for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>(i);
  return tokens;
}

class MatMulTest : public testing::TestWithParam<const Format*> {};

// Lengths of k: one block, Gemma's 640 and 2304, just past a chunk of the expansion, and odd ones.
std::vector<size_t> Lengths(const Format& format) {
  std::vector<size_t> lengths;
  for (const size_t k : {32, 64, 256, 640, 1056, 1280, 2304}) {
    if (k % format.block_values == 0) lengths.push_back(k);
  }
  if (format.block_values == 1) lengths.insert(lengths.end(), {1, 7, 1031});
  return lengths;
}

TEST_P(MatMulTest, EqualsTheDefinition) {
  for (const size_t k : Lengths(*GetParam())) {
    const Problem problem(*GetParam(), 37, k, 9, false);
    ForEachTarget([&] {
      for (size_t tokens = 1; tokens <= 9; ++tokens) {
        problem.CheckBoth(0, 37, FirstTokens(tokens), false);
      }
    });
  }
}

TEST_P(MatMulTest, EqualsTheDefinitionForManyTokens) {
  const Problem problem(*GetParam(), 69, 1280, 50, false);
  ForEachTarget([&] {
    for (const size_t tokens : {16, 17, 33, 48, 49, 50})
      problem.CheckBoth(0, 69, FirstTokens(tokens), false);
  });
}

// As many as a chunk of prefill has: where a CPU has matrix registers, they do it.
TEST_P(MatMulTest, EqualsTheDefinitionForAChunk) {
  const Problem problem(*GetParam(), 53, 1280, 119, false);
  const Problem extreme(*GetParam(), 32, 256, 119, true);
  const Problem long_chunk(*GetParam(), 16, 256, 530, false);
  const Problem long_rows(*GetParam(), 37, 4864, 97, false);
  ForEachTarget([&] {
    for (const size_t tokens : {64, 70, 96, 102, 112, 119}) {
      problem.CheckBoth(0, 53, FirstTokens(tokens), false);
    }
    problem.CheckBoth(16, 41, FirstTokens(119), false);
    extreme.CheckBoth(0, 32, FirstTokens(119), false);
    long_chunk.CheckBoth(0, 16, FirstTokens(530), false);
    long_rows.CheckBoth(0, 37, FirstTokens(97), false);
  });
}

TEST_P(MatMulTest, EqualsTheDefinitionAtExtremes) {
  const Problem problem(*GetParam(), 16, 512, 12, true);
  ForEachTarget([&] {
    for (const size_t tokens : {1, 4, 12}) problem.CheckBoth(0, 16, FirstTokens(tokens), false);
  });
}

TEST_P(MatMulTest, WritesOnlyItsRows) {
  const Problem problem(*GetParam(), 53, 256, 50, false);
  ForEachTarget([&] {
    for (const size_t tokens : {1, 3, 12, 50}) {
      problem.CheckBoth(16, 32, FirstTokens(tokens), false);
      problem.CheckBoth(16, 53, FirstTokens(tokens), false);
      problem.CheckBoth(32, 41, FirstTokens(tokens), false);
      problem.CheckBoth(48, 53, FirstTokens(tokens), false);
      problem.CheckBoth(32, 32, FirstTokens(tokens), false);
    }
  });
}

TEST_P(MatMulTest, GathersInputRows) {
  const Problem problem(*GetParam(), 32, 512, 12, false);
  ForEachTarget([&] {
    problem.CheckBoth(0, 32, {7}, true);
    problem.CheckBoth(0, 32, {3, 11, 0, 3}, true);
    problem.CheckBoth(0, 32, {11, 9, 7, 5, 3, 1, 0, 2, 4, 6, 8, 10}, true);
    std::vector<int32_t> many;
    for (int32_t t = 0; t < 57; ++t) many.push_back(t * 7 % 12);
    problem.CheckBoth(0, 32, many, true);
  });
}

INSTANTIATE_TEST_SUITE_P(AllFormats, MatMulTest,
                         testing::ValuesIn(Formats().begin(), Formats().end()),
                         [](const auto& info) { return std::string(info.param->name); });

// Products of bfloat16: one set of bytes on a CPU, which are those of FMAs where it has no
// instruction for it, and near them where it has.
class Bf16DotTest : public testing::TestWithParam<const char*> {
 protected:
  const Format& format() const { return *FindFormat(GetParam()); }

  // The bytes of panels and one token become what is expected of everything else.
  void Check(size_t rows, size_t k, size_t tokens, const std::vector<size_t>& counts) const {
    Problem problem(format(), rows, k, tokens, false, true);
    const std::vector<float> fmas = problem.expected;
    ForEachTarget([&] {
      problem.expected = fmas;
      for (size_t t = 0; t < tokens; ++t) {
        for (size_t r = 0; r < rows; r += kPanelRows) {
          const std::vector<float> one =
              problem.Run(true, r, std::min(rows, r + kPanelRows), {static_cast<int32_t>(t)}, true);
          for (size_t i = r; i < std::min(rows, r + kPanelRows); ++i) {
            const size_t at = t * rows + i;
            if (MultipliesBf16(format())) {
              // The instruction takes subnormal numbers for zeros.
              const float flushed = static_cast<float>(k) * std::numeric_limits<float>::min();
              EXPECT_NEAR(one[i], fmas[at], 1e-5f * problem.Size(t, i) + flushed) << k;
            } else {
              EXPECT_EQ(one[i], fmas[at]) << k;
            }
            problem.expected[at] = one[i];
          }
        }
      }
      for (const size_t n : counts) {
        problem.CheckBoth(0, rows, FirstTokens(n), false);
        problem.CheckBoth(0, rows, FirstTokens(n), true);
      }
    });
  }
};

TEST_P(Bf16DotTest, HasOneSetOfBytes) {
  for (const size_t k : {1, 2, 7, 64, 640, 1031, 2305}) {
    Check(37, k, 9, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
  Check(69, 1280, 64, {12, 13, 16, 25, 33, 64});
}

// Rounding inputs keeps 8 bits.
TEST_P(Bf16DotTest, IsNearTheFloats) {
  const Problem floats(format(), 16, 1024, 2, false);
  const Problem dots(format(), 16, 1024, 2, false, true);
  const std::vector<float> out = dots.Run(true, 0, 16, {0}, true);
  double error = 0, size = 0;
  for (size_t r = 0; r < 16; ++r) {
    error += std::fabs(out[r] - floats.expected[r]);
    size += floats.Size(0, r);
  }
  EXPECT_LT(error, 0x1p-9 * size);
  EXPECT_GT(error, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, Bf16DotTest, testing::Values("BF16", "F16"),
                         [](const auto& info) { return std::string(info.param); });

TEST(MatMulTest, EveryFormatMultiplies) {
  for (const Format* format : Formats()) EXPECT_NE(format->matmul, nullptr) << format->name;
}

}  // namespace
}  // namespace sluice
