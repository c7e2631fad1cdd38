// What `sluice bench` measures, without its printing: statistics, counted work, one test timed.
#include "src/engine/bench.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/engine/bench_statistics.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

TEST(BenchStatistics, DescribesSamples) {
  const std::vector<double> v{5, 1, 2, 4, 3};
  EXPECT_DOUBLE_EQ(Mean(v), 3);
  EXPECT_DOUBLE_EQ(StandardDeviation(v), std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(Median(v), 3);
  EXPECT_DOUBLE_EQ(Spread(v), 4.0 / 3);
  EXPECT_DOUBLE_EQ(Median(std::vector<double>{4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(StandardDeviation(std::vector<double>{7}), 0);
}

TEST(BenchStatistics, StudentsInterval) {
  const auto five = MeanInterval95(std::vector<double>{1, 2, 3, 4, 5});
  ASSERT_TRUE(five.has_value());
  const double half = 2.776 * std::sqrt(2.5 / 5);  // 4 degrees of freedom
  EXPECT_NEAR(five->low, 3 - half, 1e-3);
  EXPECT_NEAR(five->high, 3 + half, 1e-3);
  // 60 values: t of 59 degrees is 2.0010 in the tables.
  std::vector<double> many;
  for (int i = 0; i < 60; ++i) many.push_back(i % 2);
  const auto sixty = MeanInterval95(many);
  EXPECT_NEAR((sixty->high - 0.5) * std::sqrt(60.0) / StandardDeviation(many), 2.0010, 1e-4);
  EXPECT_FALSE(MeanInterval95(std::vector<double>{1}).has_value());
}

TEST(BenchStatistics, RatioKeepsPairsTogether) {
  // The machine was ten times slower for some samples of both.
  const std::vector<double> a{100, 10, 100, 10, 100, 100, 10}, b{200, 20, 200, 20, 200, 200, 20};
  const Ratio ratio = RatioOfMedians(b, a);
  EXPECT_DOUBLE_EQ(ratio.value, 2);
  ASSERT_TRUE(ratio.interval.has_value());
  EXPECT_DOUBLE_EQ(ratio.interval->low, 2);
  EXPECT_DOUBLE_EQ(ratio.interval->high, 2);
  // Unrelated noise widens it, around the truth, the same way each time.
  const std::vector<double> c{1.0, 1.1, 0.9, 1.2, 0.8, 1.05}, d{1.1, 0.9, 1.0, 0.8, 1.3, 1.0};
  const Ratio wide = RatioOfMedians(d, c);
  EXPECT_LT(wide.interval->low, wide.value);
  EXPECT_GT(wide.interval->high, wide.value);
  EXPECT_EQ(wide.interval->low, RatioOfMedians(d, c).interval->low);
  EXPECT_FALSE(RatioOfMedians(std::vector<double>{2}, std::vector<double>{1}).interval.has_value());
}

TEST(CeilingRemark, ExplainsWhatIsAboveTheCeiling) {
  EXPECT_STREQ(CeilingRemark(99, 1e9, 32 << 20), "");
  EXPECT_STREQ(CeilingRemark(0, 1e6, 32 << 20), "");  // not known
  EXPECT_STREQ(CeilingRemark(90, 1e6, 32 << 20), "in cache");
  EXPECT_STREQ(CeilingRemark(150, 1e6, 32 << 20), "ceiling measured low");
  EXPECT_STREQ(CeilingRemark(104, 1e9, 32 << 20), "");
  EXPECT_STREQ(CeilingRemark(106, 1e9, 32 << 20), "ceiling measured low");
  EXPECT_STREQ(CeilingRemark(106, 0, 32 << 20), "ceiling measured low");  // of arithmetic
}

class BenchTestCase : public testing::Test {
 protected:
  std::unique_ptr<ModelRunner> Runner(const TinyShape& shape, std::span<const BenchTest> tests) {
    RunnerOptions o = TestOptions(0, KvType::kF16);
    SizeForTests(tests, 4, &o);
    return MakeRunner(TinyModel(shape).Write(folder_.path("m.gguf")), o);
  }
  const TempFolder folder_;
};

// Of TinyLlama: per row and layer q, k, v, o, gate, up, down; then the output matrix.
constexpr double kRowMacs = 2 * (64 * 128 + 2 * 64 * 64 + 128 * 64 + 3 * 64 * 96);
constexpr double kLogitMacs = 320 * 64;
constexpr double kSeenMacs = 2 * 4 * 64;  // per position seen: layers, heads, key and value

TEST_F(BenchTestCase, CountsWhatAPassDoes) {
  const BenchTest test{8, 0, 0, 1};
  const auto runner = Runner(TinyLlama(), {&test, 1});
  const Model& model = runner->model();
  const WorkCounter counter(model, KvType::kF16);
  ASSERT_EQ(counter.largest().size(), 1u);  // all Q8_0, in place
  EXPECT_EQ(counter.largest()[0].rows * counter.largest()[0].k, 320u * 64);

  const auto kv = runner->NewSequence();
  const std::vector<int32_t> tokens(3, 5), last{2};
  const BatchSegment segment{kv.get(), 0, 3, 4};  // positions 4, 5, 6
  PassWork work;
  counter.Add({tokens, {&segment, 1}, last}, &work);
  EXPECT_EQ(work.attention_macs, kSeenMacs * (5 + 6 + 7));
  EXPECT_EQ(work.macs(), 3 * kRowMacs + kLogitMacs + work.attention_macs);
  const double row_bytes = static_cast<double>(model.weights().embedding.format->RowBytes(64));
  const double weights = static_cast<double>(model.WeightBytesPerToken()) - row_bytes;
  const double keys_values = static_cast<double>(model.KvBytesPerToken(KvType::kF16, 7));
  EXPECT_EQ(work.bytes, weights + keys_values);

  PassWork silent;  // no logits: the output matrix is not read
  counter.Add({tokens, {&segment, 1}, {}}, &silent);
  EXPECT_EQ(silent.macs(), work.macs() - kLogitMacs);
  EXPECT_EQ(silent.bytes, work.bytes - static_cast<double>(model.weights().output.bytes()));
}

TEST_F(BenchTestCase, CountsTheExpertsThatRowsChoose) {
  const BenchTest test{64, 0, 0, 1};
  const auto runner = Runner(TinyMoe(), {&test, 1});
  const WorkCounter counter(runner->model(), KvType::kF16);
  const auto kv = runner->NewSequence();
  double expert_bytes = 0;
  for (const LayerWeights& layer : runner->model().weights().layers) {
    for (const Weight* w : {&layer.expert_gate, &layer.expert_up, &layer.expert_down}) {
      expert_bytes += static_cast<double>(w->bytes());
    }
  }
  const auto bytes = [&](size_t rows) {
    const std::vector<int32_t> tokens(rows, 5);
    const BatchSegment segment{kv.get(), 0, rows, static_cast<int32_t>(64 - rows)};
    PassWork work;
    counter.Add({tokens, {&segment, 1}, {}}, &work);
    return work.bytes;
  };
  // One row reads 2 of 8 experts, many read all; keys and values are of the same 64 positions.
  EXPECT_NEAR(bytes(64) - bytes(1), expert_bytes * 6 / 8, 1e-4 * expert_bytes);
}

TEST_F(BenchTestCase, TimesPromptAndGenerationAtADepth) {
  const BenchTest test{8, 3, 5, 2};
  EXPECT_EQ(test.positions(), 16u);
  EXPECT_EQ(test.tokens(), 22u);
  const auto runner = Runner(TinyLlama(), {&test, 1});
  Bench bench(*runner, 4);
  ASSERT_TRUE(bench.Start(test, true).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bench.Sample().ok());
  const BenchResult r = bench.Finish();
  ASSERT_EQ(r.samples_ns.size(), 3u);
  for (const double ns : r.samples_ns) EXPECT_GT(ns, 0);
  EXPECT_NEAR(r.samples_ts()[1], 22e9 / r.samples_ns[1], 1e-6 * r.samples_ts()[1]);

  double seen = 0;  // two sequences, positions 5 to 15; logits of 1 + 3 rows of each
  for (int p = 5; p < 16; ++p) seen += 2 * (p + 1);
  EXPECT_DOUBLE_EQ(r.work.macs(), 22 * kRowMacs + 8 * kLogitMacs + kSeenMacs * seen);
  EXPECT_GT(r.work.bytes, 0);
  EXPECT_GT(r.compute_s, 0);
  EXPECT_GT(r.compute_roof_ts(), 0);
  EXPECT_GT(r.barriers_per_token, 0);
  EXPECT_GE(r.stall_pct, 0);
  EXPECT_GT(r.clock_ghz, 0);
  EXPECT_EQ(r.threads, 1);
  EXPECT_LE(r.roof_ts(), r.compute_roof_ts());
  EXPECT_NEAR(r.ceiling_pct(), 100 * r.avg_ts() / r.roof_ts(), 1e-9 * r.ceiling_pct());
}

// A sliding window forgets the depth; it is computed again, and every sample does the same work.
TEST_F(BenchTestCase, WindowsAreFilledAgain) {
  const BenchTest test{300, 0, 40, 1};
  const auto runner = Runner(TinyGemma3(), {&test, 1});
  Bench bench(*runner, 4);
  ASSERT_TRUE(bench.Start(test, false).ok());
  ASSERT_TRUE(bench.Sample().ok());
  ASSERT_TRUE(bench.Sample().ok());
  const BenchResult r = bench.Finish();
  double seen = 0;  // layer 5 of 7 sees all, the others 16 positions; 4 heads, key and value
  for (int p = 40; p < 340; ++p) seen += (p + 1) + 6 * 16;
  EXPECT_DOUBLE_EQ(r.work.attention_macs, 4 * 64 * seen);
}

}  // namespace
}  // namespace sluice
