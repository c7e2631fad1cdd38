// Perplexity against its definition, computed here from the logits in double
// precision.
#include "src/engine/perplexity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

constexpr size_t kWindow = 32;

double MinusLogP(std::span<const float> logits, int32_t id) {
  double most = -INFINITY, sum = 0;
  for (float l : logits) most = std::max(most, static_cast<double>(l));
  for (float l : logits) sum += std::exp(static_cast<double>(l) - most);
  return most + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(id)]);
}

class PerplexityTest : public testing::Test {
 protected:
  PerplexityTest()
      : tiny_(TinyGemma3()),
        tokens_(tiny_.Tokens(3 * kWindow + 5)),
        runner_(MakeRunner(tiny_.Write(folder_.path("m.gguf")), TestOptions(kWindow))) {}

  // -ln p of the scored tokens of all windows, in order.
  std::vector<double> Scores(std::optional<int32_t> bos) {
    std::vector<double> scores;
    for (size_t begin = 0; begin + kWindow <= tokens_.size(); begin += kWindow) {
      std::vector<int32_t> window(tokens_.begin() + static_cast<ptrdiff_t>(begin),
                                  tokens_.begin() + static_cast<ptrdiff_t>(begin + kWindow));
      if (bos) window[0] = *bos;
      Evaluator evaluator(*runner_);
      const Status s = evaluator.Append(window, 0, [&](size_t i, std::span<const float> logits) {
        // The second half: tokens kWindow / 2 + 1 to the last.
        if (i >= kWindow / 2 && i + 1 < kWindow) scores.push_back(MinusLogP(logits, window[i + 1]));
      });
      EXPECT_TRUE(s.ok()) << s.message();
    }
    return scores;
  }
  void Check(std::optional<int32_t> bos) {
    const Result<Perplexity> found = MeasurePerplexity(
        *runner_, tokens_, bos, kWindow, [](const Perplexity&, size_t) { return true; });
    ASSERT_TRUE(found.ok()) << found.status().message();
    const std::vector<double> scores = Scores(bos);
    const double n = static_cast<double>(scores.size());
    double sum = 0, variance = 0;
    for (double s : scores) sum += s;
    for (double s : scores) variance += (s - sum / n) * (s - sum / n) / (n - 1);
    EXPECT_EQ(found->windows, 3u);
    EXPECT_EQ(found->scored, 3 * (kWindow / 2 - 1));
    EXPECT_NEAR(found->value(), std::exp(sum / n), 1e-9 * found->value());
    // First-order error of exp(mean): value times the standard error of the mean.
    EXPECT_NEAR(found->error(), found->value() * std::sqrt(variance / n), 1e-6 * found->error());
  }

  const TempFolder folder_;
  const TinyModel tiny_;
  const std::vector<int32_t> tokens_;
  const std::unique_ptr<ModelRunner> runner_;
};

TEST_F(PerplexityTest, IsTheDefinition) { Check(std::nullopt); }

TEST_F(PerplexityTest, BosReplacesTheFirstTokenOfEachWindow) {
  Check(TinyModel::kBos);
  EXPECT_NE(Scores(TinyModel::kBos), Scores(std::nullopt));
}

TEST_F(PerplexityTest, ReportsEachWindowAndEndsEarly) {
  std::vector<size_t> seen;
  const Result<Perplexity> found = MeasurePerplexity(*runner_, tokens_, std::nullopt, kWindow,
                                                     [&](const Perplexity& p, size_t windows) {
                                                       EXPECT_EQ(windows, 3u);
                                                       seen.push_back(p.windows);
                                                       return p.windows < 2;
                                                     });
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(seen, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(found->windows, 2u);
}

TEST_F(PerplexityTest, TooShortATextIsAnError) {
  const Result<Perplexity> found =
      MeasurePerplexity(*runner_, std::span(tokens_).first(kWindow - 1), std::nullopt, kWindow,
                        [](const Perplexity&, size_t) { return true; });
  EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(found.status().message().find("31 tokens"), std::string::npos);
}

// The file that llama-perplexity takes as its base: head, tokens, and each scored position's ln p.
TEST_F(PerplexityTest, SavesLogProbabilities) {
  const size_t vocab = runner_->config().vocab;
  const std::vector<int32_t> windows = WindowTokens(tokens_, TinyModel::kBos, kWindow);
  ASSERT_EQ(windows.size(), 3 * kWindow);
  const std::string path = folder_.path("base.kld");
  auto saved = SavedLogits::Create(path, vocab, kWindow, windows);
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  ASSERT_TRUE(MeasurePerplexity(
                  *runner_, tokens_, TinyModel::kBos, kWindow,
                  [](const Perplexity&, size_t) { return true; }, saved->get())
                  .ok());
  ASSERT_TRUE((*saved)->Commit().ok());

  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const char* at = bytes.data();
  const auto take = [&](auto* value) {
    std::memcpy(value, at, sizeof(*value));
    at += sizeof(*value);
  };
  const size_t row_bytes = 2 * ((vocab + 1) / 2 * 2 + 4), scored = kWindow / 2 - 1;
  ASSERT_EQ(bytes.size(), 8 + 12 + 4 * windows.size() + 3 * scored * row_bytes);
  EXPECT_EQ(bytes.substr(0, 8), "_logits_");
  at += 8;
  int32_t sizes[3], token;
  take(&sizes);
  EXPECT_EQ(sizes[0], static_cast<int32_t>(kWindow));
  EXPECT_EQ(sizes[1], static_cast<int32_t>(vocab));
  EXPECT_EQ(sizes[2], 3);
  for (const int32_t id : windows) {
    take(&token);
    EXPECT_EQ(token, id);
  }
  const std::vector<double> scores = Scores(TinyModel::kBos);
  for (size_t i = 0; i < scores.size(); ++i) {
    const char* const row = at;
    float step, lowest;
    take(&step);
    take(&lowest);
    const size_t window = i / scored, position = kWindow / 2 + i % scored;
    const auto next = static_cast<size_t>(windows[window * kWindow + position + 1]);
    uint16_t u;
    std::memcpy(&u, at + 2 * next, sizeof(u));
    const double expected = std::min(scores[i], -static_cast<double>(lowest));
    EXPECT_NEAR(-(lowest + step * u), expected, 0.51 * step + 1e-5) << i;
    at = row + row_bytes;
  }
}

TEST(SavedLogits, KeepsSixteenNats) {
  const TempFolder folder;
  const std::vector<int32_t> tokens(4, 1);
  auto saved = SavedLogits::Create(folder.path("s"), 5, 4, tokens);
  ASSERT_TRUE(saved.ok());
  const std::vector<float> logits = {1, 3, -40, 2.5f, 0};
  ASSERT_TRUE((*saved)->Add(logits).ok());
  ASSERT_TRUE((*saved)->Commit().ok());
  std::ifstream in(folder.path("s"), std::ios::binary);
  in.seekg(8 + 12 + 16);
  float head[2];
  uint16_t u[6];
  ASSERT_TRUE(in.read(reinterpret_cast<char*>(head), sizeof(head)));
  ASSERT_TRUE(in.read(reinterpret_cast<char*>(u), sizeof(u)));
  EXPECT_EQ(u[1], 65535);
  EXPECT_EQ(u[2], 0);
  for (const size_t i : {0u, 1u, 3u, 4u}) {
    EXPECT_NEAR(-(head[1] + head[0] * u[i]), MinusLogP(logits, static_cast<int32_t>(i)), 2e-4) << i;
  }
}

class DivergenceTest : public PerplexityTest {
 protected:
  std::unique_ptr<ModelRunner> Exact(size_t chunk) {
    RunnerOptions o = TestOptions(kWindow);
    o.activations = Activations::kF32;
    o.chunk = chunk;
    return MakeRunner(folder_.path("m.gguf"), o);
  }
  static Divergence Measure(ModelRunner& judged, ModelRunner& exact,
                            std::span<const int32_t> tokens) {
    const Result<Divergence> d = MeasureDivergence(judged, exact, tokens, TinyModel::kBos, kWindow,
                                                   [](const Divergence&, size_t) { return true; });
    EXPECT_TRUE(d.ok()) << d.status().message();
    return d.ok() ? *d : Divergence();
  }
};

TEST_F(DivergenceTest, ExactFromItselfIsZero) {
  const Divergence d = Measure(*Exact(5), *Exact(512), tokens_);
  EXPECT_EQ(d.windows, 3u);
  EXPECT_EQ(d.scored, 3 * (kWindow / 2 - 1));
  EXPECT_EQ(d.sum, 0);
  EXPECT_EQ(d.error(), 0);
  EXPECT_EQ(d.top_share(), 1);
}

TEST_F(DivergenceTest, RoundedInputsAreTheDefinition) {
  const std::unique_ptr<ModelRunner> exact = Exact(512);
  const Divergence d = Measure(*runner_, *exact, tokens_);
  EXPECT_GT(d.mean(), 0);
  EXPECT_LT(d.mean(), 0.1);
  EXPECT_GT(d.top_share(), 0.5);
  // KL(p || q) = sum p (ln p - ln q), here from probabilities themselves.
  std::vector<double> kl;
  for (size_t begin = 0; begin + kWindow <= tokens_.size(); begin += kWindow) {
    std::vector<int32_t> window(tokens_.begin() + static_cast<ptrdiff_t>(begin),
                                tokens_.begin() + static_cast<ptrdiff_t>(begin + kWindow));
    window[0] = TinyModel::kBos;
    const auto minus_log = [&](ModelRunner& runner) {
      std::vector<std::vector<double>> rows;
      Evaluator evaluator(runner);
      const Status s =
          evaluator.Append(window, kWindow / 2, [&](size_t, std::span<const float> logits) {
            std::vector<double> row;
            for (size_t i = 0; i < logits.size(); ++i)
              row.push_back(MinusLogP(logits, static_cast<int32_t>(i)));
            rows.push_back(row);
          });
      EXPECT_TRUE(s.ok()) << s.message();
      return rows;
    };
    const auto p = minus_log(*exact), q = minus_log(*runner_);
    for (size_t r = 0; r + 1 < p.size(); ++r) {
      double sum = 0;
      for (size_t i = 0; i < p[r].size(); ++i) sum += std::exp(-p[r][i]) * (q[r][i] - p[r][i]);
      kl.push_back(sum);
    }
  }
  const double n = static_cast<double>(kl.size());
  double sum = 0, variance = 0;
  for (double x : kl) sum += x;
  for (double x : kl) variance += (x - sum / n) * (x - sum / n) / (n - 1);
  EXPECT_EQ(d.scored, kl.size());
  EXPECT_NEAR(d.mean(), sum / n, 1e-6 * d.mean());
  EXPECT_NEAR(d.error(), std::sqrt(variance / n), 1e-6 * d.error());
}

}  // namespace
}  // namespace sluice
