#include "src/engine/repetition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "tests/engine/logit_row.h"

namespace sluice {
namespace {

// What Apply adds to logits that are `before` everywhere.
std::vector<float> Applied(const SamplerOptions& options, const std::vector<int32_t>& history,
                           std::vector<float> logits) {
  Repetition repetition(options, logits.size());
  for (int32_t id : history) repetition.Accept(id);
  LogitRow row(std::move(logits));
  repetition.Apply(row);
  return row.values;
}

TEST(Penalties, FollowTheFormulas) {
  SamplerOptions options;
  options.repeat_penalty = 2.0f;
  EXPECT_EQ(Applied(options, {0, 0, 1}, {4, -4, 4}), std::vector<float>({2, -8, 4}));
  options = {};
  options.presence_penalty = 0.5f;
  EXPECT_EQ(Applied(options, {0, 0, 1}, {4, 4, 4}), std::vector<float>({3.5f, 3.5f, 4}));
  options = {};
  options.frequency_penalty = 0.25f;
  EXPECT_EQ(Applied(options, {0, 0, 1}, {4, 4, 4}), std::vector<float>({3.5f, 3.75f, 4}));
  options = {};
  options.repeat_penalty = 2.0f;
  options.presence_penalty = 1.0f;
  options.frequency_penalty = 0.5f;
  EXPECT_EQ(Applied(options, {2, 2, 2}, {4, 4, 4}), std::vector<float>({4, 4, -0.5f}));
}

TEST(Penalties, LookBackAsFarAsTold) {
  SamplerOptions options;
  options.presence_penalty = 1.0f;
  options.repeat_last_n = 2;
  EXPECT_EQ(Applied(options, {0, 1, 2}, {0, 0, 0, 0}), std::vector<float>({0, -1, -1, 0}));
  options.repeat_last_n = 0;
  EXPECT_EQ(Applied(options, {0, 1, 2}, {0, 0, 0, 0}), std::vector<float>(4, 0));
  options.repeat_last_n = -1;
  EXPECT_EQ(Applied(options, {0, 1, 2}, {0, 0, 0, 0}), std::vector<float>({-1, -1, -1, 0}));
}

TEST(Penalties, OffByDefaultAndAfterLongHistories) {
  EXPECT_EQ(Applied({}, {0, 0, 0, 0}, {1, 1}), std::vector<float>({1, 1}));
  SamplerOptions options;
  options.frequency_penalty = 1.0f;
  options.repeat_last_n = 3;
  Repetition repetition(options, 2);
  for (int i = 0; i < 1000; ++i) repetition.Accept(0);
  repetition.Accept(1);
  LogitRow logits({0, 0});
  repetition.Apply(logits);
  EXPECT_EQ(logits.values, std::vector<float>({-2, -1})) << "the window slides";
  logits = LogitRow({0, 0});
  repetition.Apply(logits);
  EXPECT_EQ(logits.values, std::vector<float>({-2, -1})) << "applying leaves no trace";
}

TEST(Penalties, IgnoreIdsOutsideOfTheVocabulary) {
  SamplerOptions options;
  options.presence_penalty = 1.0f;
  options.dry_multiplier = 1.0f;
  EXPECT_EQ(Applied(options, {-1, 5, 1 << 30, 0}, {0, 0}), std::vector<float>({-1, 0}));
}

TEST(ZFunction, EqualsItsDefinition) {
  std::vector<int32_t> z;
  for (size_t round = 0; round < 300; ++round) {
    std::vector<int32_t> text(round % 40);
    for (size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<int32_t>(RandomBits(1, round, i) % (1 + round % 3));
    }
    ZFunction(text, z);
    ASSERT_EQ(z.size(), text.size());
    for (size_t k = 1; k < text.size(); ++k) {
      size_t match = 0;
      while (k + match < text.size() && text[match] == text[k + match]) ++match;
      EXPECT_EQ(z[k], static_cast<int32_t>(match));
    }
  }
}

SamplerOptions Dry(float multiplier = 1.0f, float base = 2.0f, int32_t allowed = 2) {
  SamplerOptions options;
  options.dry_multiplier = multiplier;
  options.dry_base = base;
  options.dry_allowed_length = allowed;
  return options;
}

const std::vector<float> kZeros(8, 0.0f);

// "1 2 3 4 ... 1 2 3": a 4 would make the repeat longer; three tokens match, one over the allowed.
TEST(Dry, PenalisesWhatExtendsARepeat) {
  auto logits = Applied(Dry(), {1, 2, 3, 4, 5, 1, 2, 3}, kZeros);
  std::vector<float> expected = kZeros;
  expected[4] = -2;  // 1 x 2^(3 - 2)
  EXPECT_EQ(logits, expected);
  logits = Applied(Dry(0.8f, 1.75f, 2), {1, 2, 3, 4, 5, 1, 2}, kZeros);
  expected = kZeros;
  expected[3] = -0.8f;  // 0.8 x 1.75^0
  EXPECT_EQ(logits, expected);
  EXPECT_EQ(Applied(Dry(), {1, 2, 3, 4, 5, 1}, kZeros), kZeros) << "one token is allowed";
}

TEST(Dry, TakesTheLongestMatchOfEachToken) {
  // "1 2 3 7 1 2" stands before the 4; "1 2" before the first 3, "7 1 2" before the second.
  const auto logits = Applied(Dry(), {1, 2, 3, 7, 1, 2, 4, 7, 1, 2, 3, 7, 1, 2}, kZeros);
  std::vector<float> expected = kZeros;
  expected[3] = -2;
  expected[4] = -16;
  EXPECT_EQ(logits, expected);
}

TEST(Dry, OneTokenOverAndOver) {
  // 6 sixes: the newest five match the five before: 2^(5 - 2).
  EXPECT_EQ(Applied(Dry(), {6, 6, 6, 6, 6, 6}, kZeros)[6], -8);
}

TEST(Dry, BreakersStopARepeat) {
  SamplerOptions options = Dry();
  options.dry_breakers = {{2}};
  EXPECT_EQ(Applied(options, {1, 2, 3, 4, 1, 2, 3}, kZeros), kZeros) << "one token since the 2";
  options.dry_breakers = {{0}};
  EXPECT_EQ(Applied(options, {1, 2, 3, 0, 1, 2}, kZeros)[3], -1);
  EXPECT_EQ(Applied(options, {1, 2, 0, 4, 1, 2}, kZeros), kZeros) << "never punishes a breaker";
}

TEST(Dry, BreakersOfSeveralTokens) {
  SamplerOptions options = Dry();
  const std::vector<int32_t> history = {5, 6, 1, 2, 3, 4, 5, 6, 1, 2};
  EXPECT_EQ(Applied(options, history, kZeros)[3], -4);  // 5 6 1 2
  options.dry_breakers = {{5, 6}};
  EXPECT_EQ(Applied(options, history, kZeros)[3], -1);  // 1 2
  options.dry_breakers = {{6, 5}, {5, 6, 1}};
  EXPECT_EQ(Applied(options, history, kZeros), kZeros);
}

TEST(Dry, LooksBackAsFarAsTold) {
  SamplerOptions options = Dry();
  const std::vector<int32_t> history = {1, 2, 3, 4, 5, 1, 2};
  options.dry_penalty_last_n = 6;
  EXPECT_EQ(Applied(options, history, kZeros), kZeros) << "sees only the 2 of the first copy";
  options.dry_penalty_last_n = 7;
  EXPECT_EQ(Applied(options, history, kZeros)[3], -1);
  options.dry_penalty_last_n = -1;
  EXPECT_EQ(Applied(options, history, kZeros)[3], -1);
  options.dry_penalty_last_n = 0;
  EXPECT_EQ(Applied(options, history, kZeros), kZeros);
}

TEST(Dry, StaysFiniteOnEndlessRepeats) {
  SamplerOptions options = Dry(5.0f, 1e30f, 0);
  options.dry_penalty_last_n = -1;
  const auto logits = Applied(options, std::vector<int32_t>(20000, 3), kZeros);
  EXPECT_EQ(logits[3], -std::numeric_limits<float>::max());
  EXPECT_EQ(Applied(Dry(1.0f, 1.0f, 2), std::vector<int32_t>(50, 3), kZeros)[3], -1);
  EXPECT_EQ(Applied(Dry(), {}, kZeros), kZeros);
}

}  // namespace
}  // namespace sluice
