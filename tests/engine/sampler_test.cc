#include "src/engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/base/random.h"
#include "tests/engine/logit_row.h"

namespace sluice {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Everything off: draws from the soft-max of the logits.
SamplerOptions Plain(uint64_t seed = 1) {
  SamplerOptions options;
  options.seed = seed;
  options.temp = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  return options;
}

std::vector<int> Histogram(const SamplerOptions& options, const std::vector<float>& logits,
                           int draws) {
  Sampler sampler(options, logits.size());
  std::vector<int> counts(logits.size());
  for (int step = 0; step < draws; ++step) {
    LogitRow copy(logits);
    ++counts[sampler.Sample(copy, static_cast<uint64_t>(step))];
  }
  return counts;
}

// Counts within 4.5 standard deviations of n p: with a fixed seed this fails for ever or never.
void ExpectFrequencies(const std::vector<int>& counts, const std::vector<double>& p) {
  double n = 0;
  for (int count : counts) n += count;
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_NEAR(counts[i], n * p[i], 4.5 * std::sqrt(n * p[i] * (1 - p[i])) + 1e-9) << i;
  }
}

TEST(Sampler, DrawsFromTheDistribution) {
  const std::vector<double> p = {0.4, 0.25, 0.2, 0.1, 0.045, 0.005};
  std::vector<float> logits;
  for (double x : p) logits.push_back(static_cast<float>(std::log(x) + 3));
  for (uint64_t seed : {0ull, 42ull, ~0ull}) {
    ExpectFrequencies(Histogram(Plain(seed), logits, 40000), p);
  }
  SamplerOptions hot = Plain();
  hot.temp = 2;
  std::vector<double> roots;
  double total = 0;
  for (double x : p) total += std::sqrt(x);
  for (double x : p) roots.push_back(std::sqrt(x) / total);
  ExpectFrequencies(Histogram(hot, logits, 40000), roots);
}

TEST(Sampler, DefaultChain) {
  // top-k 40 and top-p 0.95 keep all four, min-p 0.05 drops the last; temperature 0.8 comes last.
  const std::vector<double> p = {0.6, 0.25, 0.13, 0.02};
  std::vector<float> logits;
  double total = 0;
  std::vector<double> expected = {0, 0, 0, 0};
  for (size_t i = 0; i < p.size(); ++i) {
    logits.push_back(static_cast<float>(std::log(p[i])));
    if (i < 3) total += std::pow(p[i], 1 / 0.8);
  }
  for (size_t i = 0; i < 3; ++i) expected[i] = std::pow(p[i], 1 / 0.8) / total;
  ExpectFrequencies(Histogram({}, logits, 40000), expected);
}

TEST(Sampler, SameSeedSameTokensOtherSeedOthers) {
  std::vector<float> logits(100);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 7);
  const auto text = [&](uint64_t seed) {
    Sampler sampler(Plain(seed), logits.size());
    std::vector<int32_t> ids;
    for (uint64_t step = 0; step < 50; ++step) {
      LogitRow copy(logits);
      ids.push_back(sampler.Sample(copy, step));
    }
    return ids;
  };
  EXPECT_EQ(text(5), text(5));
  EXPECT_NE(text(5), text(6));
}

// A step's draw depends on its number, not on the draws before it.
TEST(Sampler, StepsMayRunInAnyOrder) {
  const std::vector<float> logits(50, 0.0f);
  Sampler forward(Plain(), 50), backward(Plain(), 50);
  std::vector<int32_t> a(20), b(20);
  for (size_t i = 0; i < 20; ++i) {
    LogitRow copy(logits);
    a[i] = forward.Sample(copy, i);
    copy = LogitRow(logits);
    b[19 - i] = backward.Sample(copy, 19 - i);
  }
  EXPECT_EQ(a, b);
}

TEST(Sampler, GreedyTakesTheLargestLowestIdOnTies) {
  SamplerOptions options = Plain();
  for (float temp : {0.0f, -1.0f}) {
    options.temp = temp;
    Sampler sampler(options, 5);
    LogitRow logits({1, 9, 3, 9, std::nanf("")});
    EXPECT_EQ(sampler.Sample(logits, 0), 1);
  }
}

TEST(Sampler, GreedyComesAfterBiasPenaltiesAndDry) {
  SamplerOptions options = Plain();
  options.temp = 0;
  options.top_p = 0.1f;
  options.logit_bias = {{0, -5.0f}, {2, 0.5f}};
  options.presence_penalty = 1.0f;
  Sampler sampler(options, 3);
  LogitRow logits({5, 2, 2});
  EXPECT_EQ(sampler.Sample(logits, 0), 2);
  sampler.Accept(2);
  logits = LogitRow({5, 2, 2});
  EXPECT_EQ(sampler.Sample(logits, 1), 1);
}

TEST(Sampler, NothingToDrawIsNoToken) {
  SamplerOptions options = Plain();
  options.logit_bias = {{0, -kInf}, {1, -kInf}};
  for (float temp : {0.0f, 1.0f}) {
    options.temp = temp;
    LogitRow logits({5, 5});
    EXPECT_EQ(Sampler(options, 2).Sample(logits, 0), -1);
  }
}

TEST(Sampler, BiasBansAndForces) {
  SamplerOptions options = Plain();
  options.logit_bias = {{0, -kInf}, {1, -kInf}};
  const auto banned = Histogram(options, {5, 5, 1, 0}, 500);
  EXPECT_EQ(banned[0] + banned[1], 0);
  options.logit_bias = {{3, 100.0f}};
  EXPECT_EQ(Histogram(options, {5, 5, 1, 0}, 100)[3], 100);
}

TEST(Sampler, XtcThrowsItsOwnDice) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  SamplerOptions options = Plain();
  options.xtc_probability = 0.5f;
  options.xtc_threshold = 0.25f;
  // Half the time token 0 is out: then 0.3 and 0.2 of 0.5.
  ExpectFrequencies(Histogram(options, logits, 40000),
                    {0.25, 0.5 * 0.3 + 0.5 * 0.6, 0.5 * 0.2 + 0.5 * 0.4});
  options.xtc_probability = 1.0f;
  EXPECT_EQ(Histogram(options, logits, 1000)[0], 0);
}

TEST(Sampler, StagesRunInTheOrderGiven) {
  const std::vector<float> logits = {std::log(0.665f), std::log(0.245f), std::log(0.09f)};
  SamplerOptions options = Plain();
  options.top_p = 0.8f;
  options.temp = 0.5f;
  EXPECT_GT(Histogram(options, logits, 2000)[1], 0);
  options.stages = {SamplerStage::kTemperature, SamplerStage::kTopP};
  EXPECT_EQ(Histogram(options, logits, 2000)[1], 0);
}

TEST(Sampler, NeverFailsOnStrangeLogits) {
  const float nan = std::nanf("");
  const std::vector<std::vector<float>> cases = {{-kInf, -kInf, -kInf}, {nan, nan, nan},
                                                 {kInf, kInf, -kInf},   {nan, kInf, 0},
                                                 {-3e38f, 3e38f, 0},    {-0.0f, 0.0f, -1e-45f}};
  SamplerOptions all;
  all.top_n_sigma = 1;
  all.typical_p = 0.9f;
  all.xtc_probability = 1;
  all.dynatemp_range = 0.5f;
  all.repeat_penalty = 1.5f;
  all.dry_multiplier = 1;
  for (const SamplerOptions& options : {Plain(), SamplerOptions(), all}) {
    for (const auto& logits : cases) {
      Sampler sampler(options, logits.size());
      for (int32_t id : {0, 1, 0, 1, 2}) sampler.Accept(id);
      for (uint64_t step = 0; step < 20; ++step) {
        LogitRow copy(logits);
        const int32_t id = sampler.Sample(copy, step);
        const bool any =
            std::any_of(logits.begin(), logits.end(), [](float x) { return x > -kInf; });
        ASSERT_GE(id, any ? 0 : -1);
        ASSERT_LT(id, any ? 3 : 0);
        if (any) {
          EXPECT_GT(logits[static_cast<size_t>(id)], -kInf) << id;
        }
      }
    }
  }
}

TEST(Sampler, ProbabilitiesAddUpByAscendingId) {
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(10 * RandomUniform(3, 0, i));
  }
  Sampler sampler(SamplerOptions{}, logits.size());
  LogitRow row(logits);
  const auto kept = sampler.Distribution(row, 0);
  ASSERT_FALSE(kept.empty());
  EXPECT_LE(kept.size(), 40u);
  for (size_t i = 1; i < kept.size(); ++i) EXPECT_LT(kept[i - 1].id, kept[i].id);
  for (const Candidate& c : kept) EXPECT_GT(c.weight, 0);
}

struct BadOption {
  const char* name;
  void (*set)(SamplerOptions&);
};

TEST(SamplerOptions, OutOfRangeNamesTheOption) {
  const BadOption bad[] = {
      {"temp", [](SamplerOptions& o) { o.temp = std::nanf(""); }},
      {"temp", [](SamplerOptions& o) { o.temp = kInf; }},
      {"top_p", [](SamplerOptions& o) { o.top_p = 1.5f; }},
      {"min_p", [](SamplerOptions& o) { o.min_p = -0.1f; }},
      {"typical_p", [](SamplerOptions& o) { o.typical_p = 2; }},
      {"repeat_penalty", [](SamplerOptions& o) { o.repeat_penalty = 0; }},
      {"repeat_last_n", [](SamplerOptions& o) { o.repeat_last_n = -2; }},
      {"dry_allowed_length", [](SamplerOptions& o) { o.dry_allowed_length = -1; }},
      {"dry_multiplier", [](SamplerOptions& o) { o.dry_multiplier = -1; }},
      {"xtc_probability", [](SamplerOptions& o) { o.xtc_probability = std::nanf(""); }},
      {"logit_bias", [](SamplerOptions& o) { o.logit_bias = {{100, 1.0f}}; }},
      {"logit_bias", [](SamplerOptions& o) { o.logit_bias = {{-1, 1.0f}}; }},
      {"logit_bias", [](SamplerOptions& o) { o.logit_bias = {{1, kInf}}; }},
  };
  EXPECT_TRUE(CheckSamplerOptions({}, 100).ok());
  for (const BadOption& option : bad) {
    SamplerOptions options;
    option.set(options);
    const Status status = CheckSamplerOptions(options, 100);
    ASSERT_FALSE(status.ok()) << option.name;
    EXPECT_EQ(status.message().find(option.name), 0u) << status.message();
    EXPECT_NE(status.message().find("expected"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("found"), std::string::npos) << status.message();
  }
}

TEST(SamplerOptions, StagesFromText) {
  const auto stages = ParseSamplerStages("penalties;dry;top_k;typ_p;temperature");
  ASSERT_TRUE(stages.ok()) << stages.status().message();
  EXPECT_EQ(*stages, (std::vector<SamplerStage>{SamplerStage::kTopK, SamplerStage::kTypicalP,
                                                SamplerStage::kTemperature}));
  EXPECT_TRUE(ParseSamplerStages("").ok());
  for (const char* text : {"top_k;;top_p", "topk", "top_k;penalties", ";"}) {
    EXPECT_FALSE(ParseSamplerStages(text).ok()) << text;
  }
}

}  // namespace
}  // namespace sluice
