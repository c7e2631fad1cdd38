#include "src/engine/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "src/base/random.h"
#include "tests/engine/logit_row.h"

namespace sluice {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

std::vector<float> Logs(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

// A model's blocks: what they say has nothing above is not looked at.
TEST(Candidates, ReadOnlyBlocksThatMayHoldABest) {
  std::vector<float> logits(3 * kLogitBlock + 5, 0.0f);
  logits[40] = 2;
  logits[70] = 3;
  LogitRow row(logits);
  const auto best = [&](size_t k) {
    Candidates candidates;
    candidates.Start(row);
    candidates.TopK(k);
    std::vector<int32_t> ids;
    for (const Candidate& c : candidates.Finish()) ids.push_back(c.id);
    return ids;
  };
  EXPECT_EQ(best(2), std::vector<int32_t>({40, 70}));
  row.largest[2] = -kInf;  // a lie about 70
  EXPECT_EQ(best(2), std::vector<int32_t>({0, 40}));
  static_cast<Logits>(row).Set(100, 9);  // raised by a bias
  EXPECT_EQ(best(2), std::vector<int32_t>({40, 100}));
}

// The ids left after `filters`.
template <class Filters>
std::vector<int32_t> Kept(const std::vector<float>& logits, const Filters& filters) {
  Candidates candidates;
  LogitRow row(logits);
  candidates.Start(row);
  filters(candidates);
  std::vector<int32_t> ids;
  for (const Candidate& c : candidates.Finish()) ids.push_back(c.id);
  return ids;
}

template <class Filters>
std::vector<double> Probabilities(const std::vector<float>& logits, const Filters& filters) {
  Candidates candidates;
  LogitRow row(logits);
  candidates.Start(row);
  filters(candidates);
  std::vector<double> p;
  for (const Candidate& c : candidates.Finish()) p.push_back(c.weight);
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  return p;
}

using Ids = std::vector<int32_t>;

TEST(Exp, MatchesTheLibrary) {
  EXPECT_EQ(ExpOfNegative(0), 1);
  for (double x = -1e-9; x > -700; x = x * 1.001 - 1e-5) {
    EXPECT_NEAR(ExpOfNegative(x) / std::exp(x), 1, 1e-14) << x;
  }
  EXPECT_EQ(ExpOfNegative(-1e300), 0);
  EXPECT_EQ(ExpOfNegative(-std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(ExpOfNegative(std::nan("")), 0);
}

TEST(Candidates, SoftMaxWithoutFilters) {
  const auto p = Probabilities(Logs({0.5, 0.3, 0.2}), [](Candidates&) {});
  ASSERT_EQ(p.size(), 3u);
  EXPECT_NEAR(p[0], 0.5, 1e-6);
  EXPECT_NEAR(p[1], 0.3, 1e-6);
  EXPECT_NEAR(p[2], 0.2, 1e-6);
}

TEST(TopK, KeepsTheLargest) {
  const std::vector<float> logits = {1, 5, 3, 4, 2};
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopK(1); }), Ids({1}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopK(3); }), Ids({1, 2, 3}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopK(5); }).size(), 5u);
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopK(99); }).size(), 5u);
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopK(0); }).size(), 5u) << "0 is off";
}

TEST(TopK, TiesGoToTheLowerId) {
  EXPECT_EQ(Kept({2, 7, 7, 7, 2}, [](Candidates& c) { c.TopK(2); }), Ids({1, 2}));
  EXPECT_EQ(Kept(std::vector<float>(1000, 1.0f), [](Candidates& c) { c.TopK(3); }), Ids({0, 1, 2}));
}

// Ascending, descending, random and few-valued logits of every size around the block length.
TEST(TopK, EqualsFullSort) {
  for (size_t n : {1, 63, 64, 65, 700, 5000}) {
    for (int shape = 0; shape < 4; ++shape) {
      std::vector<float> logits(n);
      for (size_t i = 0; i < n; ++i) {
        const float at = static_cast<float>(i);
        const auto random = static_cast<float>(RandomUniform(7, n, i));
        const float values[] = {at, -at, random * 100 - 50, std::floor(random * 5)};
        logits[i] = values[shape];
      }
      Ids all(n);
      std::iota(all.begin(), all.end(), 0);
      std::sort(all.begin(), all.end(), [&](int32_t a, int32_t b) {
        return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
      });
      for (size_t k : {1, 40, 300}) {
        Ids expected(all.begin(), all.begin() + static_cast<ptrdiff_t>(std::min(k, n)));
        std::sort(expected.begin(), expected.end());
        EXPECT_EQ(Kept(logits, [&](Candidates& c) { c.TopK(k); }), expected) << n << " " << shape;
        // The same through the list that another filter has filled.
        EXPECT_EQ(Kept(logits,
                       [&](Candidates& c) {
                         c.TopNSigma(1e6f);
                         c.TopK(k);
                       }),
                  expected);
      }
    }
  }
}

// What is looked for without a list of the whole vocabulary is what such a list would give.
TEST(Candidates, TheShortWayIsTheLongWay) {
  constexpr size_t kVocab = 5000;
  for (const float spread : {0.01f, 1.0f, 6.0f, 40.0f}) {
    std::vector<float> logits(kVocab);
    for (size_t i = 0; i < kVocab; ++i) {
      logits[i] = spread * static_cast<float>(RandomUniform(3, i, 0) + RandomUniform(3, i, 1));
    }
    logits[7] = kNan;
    logits[9] = -kInf;
    for (const float temp : {1.0f, 0.7f, 1.9f, 1e-4f}) {
      for (const float p : {0.01f, 0.3f, 0.9f, 0.9999f, 0.9999999f}) {
        const auto kept = [&](bool list_first, const auto& filter) {
          return Kept(logits, [&](Candidates& c) {
            if (list_first) c.TopNSigma(1e6f);
            c.Temperature(temp);
            filter(c);
          });
        };
        for (const bool top : {false, true}) {
          const auto filter = [&](Candidates& c) { top ? c.TopP(p) : c.MinP(p); };
          const Ids shorter = kept(false, filter), longer = kept(true, filter);
          EXPECT_EQ(shorter, longer) << spread << " " << temp << " " << p;
          EXPECT_FALSE(shorter.empty());
        }
      }
      for (int i = 0; i < 200; ++i) {
        const double share = (i + 0.5) / 200;
        const auto draw = [&](bool list_first) {
          Candidates candidates;
          LogitRow row(logits);
          candidates.Start(row);
          if (list_first) candidates.TopNSigma(1e6f);
          candidates.Temperature(temp);
          return candidates.Draw(share);
        };
        EXPECT_EQ(draw(false), draw(true)) << spread << " " << temp << " " << share;
      }
    }
  }
}

TEST(Candidates, DrawsNothingFromNothing) {
  for (const std::vector<float>& logits :
       {std::vector<float>{kNan, -kInf, kNan}, std::vector<float>(100, -kInf)}) {
    LogitRow row(logits);
    Candidates candidates;
    candidates.Start(row);
    EXPECT_EQ(candidates.Draw(0.5), -1);
    candidates.Start(row);
    candidates.TopP(0.5f);
    EXPECT_EQ(candidates.Draw(0.5), -1);
    candidates.Start(row);
    candidates.MinP(0.5f);
    EXPECT_EQ(candidates.Draw(0.5), -1);
  }
  LogitRow row(std::vector<float>{-kInf, kInf, 3, kNan});
  Candidates candidates;
  candidates.Start(row);
  EXPECT_EQ(candidates.Draw(0.999), 1);
}

TEST(TopP, KeepsTheSmallestSetThatReachesP) {
  const auto logits = Logs({0.1, 0.4, 0.2, 0.3});
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopP(0.39f); }), Ids({1}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopP(0.5f); }), Ids({1, 3}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopP(0.75f); }), Ids({1, 2, 3}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopP(1.0f); }).size(), 4u);
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopP(0.0f); }), Ids({1})) << "never empty";
}

TEST(TopP, OfManyEqualTokensTakesTheFirstIds) {
  const auto kept = Kept(std::vector<float>(10000, -3.0f), [](Candidates& c) { c.TopP(0.50005f); });
  ASSERT_EQ(kept.size(), 5001u);
  EXPECT_EQ(kept.back(), 5000);
}

TEST(TopP, CountsWithinWhatIsLeft) {
  // After top-k 2 the shares are 4/7 and 3/7.
  EXPECT_EQ(Kept(Logs({0.1, 0.4, 0.2, 0.3}),
                 [](Candidates& c) {
                   c.TopK(2);
                   c.TopP(0.55f);
                 }),
            Ids({1}));
}

TEST(MinP, IsRelativeToTheMostLikely) {
  const auto logits = Logs({0.6, 0.25, 0.11, 0.04});
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.MinP(0.4f); }), Ids({0, 1}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.MinP(0.1f); }), Ids({0, 1, 2}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.MinP(0.0f); }).size(), 4u);
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.MinP(1.0f); }), Ids({0}));
  EXPECT_EQ(Kept({3, 3, 2}, [](Candidates& c) { c.MinP(1.0f); }), Ids({0, 1}));
}

// Entropy of (.7, .1, .1, .1) is 0.9404; -ln p is 0.357 and 2.303: distances 0.584 and 1.362.
// Entropy of (.5, .3, .2) is 1.0297; distances 0.3365 (.5), 0.1743 (.3), 0.5798 (.2).
TEST(TypicalP, OrdersByDistanceFromTheEntropy) {
  EXPECT_EQ(Kept(Logs({0.7, 0.1, 0.1, 0.1}), [](Candidates& c) { c.TypicalP(0.6f); }), Ids({0}));
  EXPECT_EQ(Kept(Logs({0.7, 0.1, 0.1, 0.1}), [](Candidates& c) { c.TypicalP(0.75f); }),
            Ids({0, 1}));
  const auto logits = Logs({0.5, 0.3, 0.2});
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TypicalP(0.25f); }), Ids({1}))
      << "the most likely token is not the most typical";
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TypicalP(0.5f); }), Ids({0, 1}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TypicalP(1.0f); }).size(), 3u);
}

// Mean 2, variance 2: sigma 1.4142.
TEST(TopNSigma, KeepsWithinSigmasOfTheLargest) {
  const std::vector<float> logits = {0, 1, 2, 3, 4};
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopNSigma(1); }), Ids({3, 4}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopNSigma(1.5f); }), Ids({2, 3, 4}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.TopNSigma(-1); }).size(), 5u);
  EXPECT_EQ(Kept({0, -kInf, 1, 2, kNan, 3, 4}, [](Candidates& c) { c.TopNSigma(1); }), Ids({5, 6}))
      << "-infinity and NaN do not count";
}

TEST(Xtc, KeepsTheLeastLikelyOfTheTopChoices) {
  const auto logits = Logs({0.35, 0.3, 0.2, 0.1, 0.05});
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.ExcludeTopChoices(0.15f); }), Ids({2, 3, 4}));
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.ExcludeTopChoices(0.32f); }).size(), 5u)
      << "one top choice stays";
  EXPECT_EQ(Kept(logits, [](Candidates& c) { c.ExcludeTopChoices(0.45f); }).size(), 5u);
  EXPECT_EQ(Kept({1, 1, 1}, [](Candidates& c) { c.ExcludeTopChoices(0.3f); }), Ids({2}));
}

TEST(Temperature, ScalesLogits) {
  // p^2 normalised: .25, .09, .04 over .38.
  const auto p = Probabilities(Logs({0.5, 0.3, 0.2}), [](Candidates& c) { c.Temperature(0.5f); });
  EXPECT_NEAR(p[0], 0.25 / 0.38, 1e-6);
  EXPECT_NEAR(p[1], 0.09 / 0.38, 1e-6);
  EXPECT_NEAR(p[2], 0.04 / 0.38, 1e-6);
  EXPECT_EQ(Kept({1, 3, 3}, [](Candidates& c) { c.Temperature(0); }), Ids({1}));
}

// Applied before a cut-off it changes what is kept, after it it does not.
TEST(Temperature, BeforeACutOffChangesTheSet) {
  const auto logits = Logs({0.665, 0.245, 0.09});
  EXPECT_EQ(Kept(logits,
                 [](Candidates& c) {
                   c.TopP(0.8f);
                   c.Temperature(0.5f);
                 }),
            Ids({0, 1}));
  EXPECT_EQ(Kept(logits,
                 [](Candidates& c) {
                   c.Temperature(0.5f);
                   c.TopP(0.8f);
                 }),
            Ids({0}));
}

TEST(DynamicTemperature, FollowsTheEntropy) {
  // Equal tokens: full entropy, so the upper end; equal stays equal.
  const auto even =
      Probabilities({1, 1, 1, 1}, [](Candidates& c) { c.DynamicTemperature(1, 0.5f, 1); });
  for (double p : even) EXPECT_NEAR(p, 0.25, 1e-12);
  // (.8, .2): entropy 0.50040, share of ln 2 0.72193; temperature 0.5 + 0.72193 = 1.22193.
  const auto p =
      Probabilities(Logs({0.8, 0.2}), [](Candidates& c) { c.DynamicTemperature(1, 0.5f, 1); });
  const double a = std::pow(0.8, 1 / 1.22193), b = std::pow(0.2, 1 / 1.22193);
  EXPECT_NEAR(p[0], a / (a + b), 1e-5);
}

// Ids with the smallest distance(p of the token) whose probabilities reach `mass`, by sorting.
template <class Distance>
Ids SmallestSet(const std::vector<float>& logits, double mass, const Distance& distance) {
  const auto p = Probabilities(logits, [](Candidates&) {});
  Ids order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const double x = distance(p[a]), y = distance(p[b]);
    return x != y ? x < y : a < b;
  });
  double sum = 0;
  size_t count = 0;
  while (count < order.size() && sum < mass) sum += p[order[count++]];
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

TEST(Candidates, MassFiltersEqualPlainSorting) {
  for (uint64_t round = 0; round < 40; ++round) {
    std::vector<float> logits(1 + 50 * round);
    for (size_t i = 0; i < logits.size(); ++i) {
      logits[i] = static_cast<float>(12 * RandomUniform(9, round, i));
    }
    const auto p = Probabilities(logits, [](Candidates&) {});
    double entropy = 0;
    for (double x : p) entropy -= x * std::log(x);
    for (float mass : {0.013f, 0.5f, 0.92f, 0.9999f}) {
      EXPECT_EQ(Kept(logits, [&](Candidates& c) { c.TopP(mass); }),
                SmallestSet(logits, mass, [](double x) { return -x; }));
      EXPECT_EQ(
          Kept(logits, [&](Candidates& c) { c.TypicalP(mass); }),
          SmallestSet(logits, mass, [&](double x) { return std::abs(-std::log(x) - entropy); }));
    }
  }
}

TEST(Candidates, SurvivesStrangeLogits) {
  const auto all = [](Candidates& c) {
    c.TopNSigma(2);
    c.TopK(3);
    c.TypicalP(0.9f);
    c.TopP(0.9f);
    c.MinP(0.1f);
    c.ExcludeTopChoices(0.1f);
    c.Temperature(0.01f);
    c.DynamicTemperature(0.7f, 0.6f, 2);
  };
  EXPECT_EQ(Kept({-kInf, -kInf, -kInf}, all), Ids());
  EXPECT_EQ(Kept({kNan, kNan}, all), Ids());
  EXPECT_EQ(Kept({kNan, -kInf, 3}, all), Ids({2}));
  EXPECT_EQ(Kept({0, kInf, 3}, all), Ids({1}));
  EXPECT_EQ(Kept({-3e38f, 3e38f, 3e38f, 1}, [](Candidates& c) { c.Temperature(1e-30f); }).size(),
            4u);
  const auto p = Probabilities({kInf, 0, kInf}, [](Candidates& c) { c.Temperature(0.5f); });
  EXPECT_EQ(p[0], 0.5);
  EXPECT_EQ(p[1], 0);
  Candidates none;
  none.Start({});
  all(none);
  EXPECT_TRUE(none.Finish().empty());
}

}  // namespace
}  // namespace sluice
