// What a handful of timed samples says, and how sure one can be of it. Used by
// `sluice bench`; any thread.
#ifndef SLUICE_SRC_ENGINE_BENCH_STATISTICS_H_
#define SLUICE_SRC_ENGINE_BENCH_STATISTICS_H_

#include <optional>
#include <span>

namespace sluice {

struct Interval {
  double low = 0, high = 0;
};

// All of a non-empty list. StandardDeviation: of the sample (n - 1), 0 for one value.
double Mean(std::span<const double> values);
double StandardDeviation(std::span<const double> values);
double Median(std::span<const double> values);
// (largest - smallest) / median.
double Spread(std::span<const double> values);

// Where the true mean lies with 95 % confidence: mean +- t * s / sqrt(n), t from Student's
// distribution with n - 1 degrees of freedom. Nothing for fewer than two values. It takes the
// samples for independent; a machine that changes in the middle of a run makes it too narrow.
std::optional<Interval> MeanInterval95(std::span<const double> values);

// Median(b) / Median(a) of samples taken in turns (a[i] beside b[i]), and where it lies with 95 %
// confidence: the pairs are drawn with replacement 4000 times, and the interval is from the 2.5th
// to the 97.5th percentile of the ratios (Efron's percentile bootstrap). Pairs, because what slows
// the machine slows both. The draws are fixed, so the same samples give the same interval. Fewer
// than two pairs: no interval.
struct Ratio {
  double value = 1;
  std::optional<Interval> interval;
};
Ratio RatioOfMedians(std::span<const double> b, std::span<const double> a);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_BENCH_STATISTICS_H_
