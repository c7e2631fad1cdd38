#include "src/engine/bench_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "src/base/check.h"
#include "src/base/random.h"

namespace sluice {
namespace {

// 97.5th percentile of Student's t with `freedom` degrees of freedom. Up to 30 from the table that
// every textbook has; beyond, the first terms of the expansion around the normal distribution
// (Abramowitz and Stegun 26.7.5), right to four digits there.
double StudentT(size_t freedom) {
  static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                      2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                      2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                      2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (freedom <= std::size(kTable)) return kTable[freedom - 1];
  constexpr double z = 1.959964;
  const auto f = static_cast<double>(freedom);
  return z + (z * z * z + z) / (4 * f) +
         (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * f * f);
}

}  // namespace

double Mean(std::span<const double> values) {
  CHECK(!values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double StandardDeviation(std::span<const double> values) {
  const double mean = Mean(values);
  if (values.size() < 2) return 0;
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double Median(std::span<const double> values) {
  CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double Spread(std::span<const double> values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return (*most - *least) / Median(values);
}

std::optional<Interval> MeanInterval95(std::span<const double> values) {
  const size_t n = values.size();
  if (n < 2) return std::nullopt;
  const double mean = Mean(values);
  const double half =
      StudentT(n - 1) * StandardDeviation(values) / std::sqrt(static_cast<double>(n));
  return Interval{mean - half, mean + half};
}

Ratio RatioOfMedians(std::span<const double> b, std::span<const double> a) {
  CHECK(a.size() == b.size());
  const size_t n = a.size();
  Ratio ratio{Median(b) / Median(a), std::nullopt};
  if (n < 2) return ratio;
  constexpr size_t kDraws = 4000;
  std::vector<double> ratios, drawn_a(n), drawn_b(n);
  for (size_t draw = 0; draw < kDraws; ++draw) {
    for (size_t i = 0; i < n; ++i) {
      const size_t pick = RandomBits(1, draw, i) % n;
      drawn_a[i] = a[pick];
      drawn_b[i] = b[pick];
    }
    ratios.push_back(Median(drawn_b) / Median(drawn_a));
  }
  std::sort(ratios.begin(), ratios.end());
  ratio.interval = Interval{ratios[kDraws / 40], ratios[kDraws - 1 - kDraws / 40]};
  return ratio;
}

}  // namespace sluice
