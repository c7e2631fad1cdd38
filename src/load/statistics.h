// What many measured values say: exact percentiles, and how sure a ratio of two of them is. Used by
// the summary and by --compare; any thread.
#ifndef SLUICE_SRC_LOAD_STATISTICS_H_
#define SLUICE_SRC_LOAD_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::load {

// Of all values, none dropped or put in classes. Percentile p of n sorted values x[0..n-1] is x at
// the place p * (n - 1), and between two places on the line between them (as numpy.percentile does
// by default, and with it vllm bench serve).
struct Distribution {
  size_t count = 0;
  double mean = 0, deviation = 0;  // deviation: of the sample (n - 1)
  double least = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0, most = 0;
};
Distribution Describe(std::vector<double> values);

// `sorted` is not empty and ascends; 0 <= p <= 1.
double Percentile(std::span<const double> sorted, double p);

// Values that come in groups: the gaps of one answer are one group, since what makes one of them
// long makes its neighbours long. A value alone is a group of one.
struct GroupedValues {
  struct Value {
    double value;
    uint32_t group;
  };
  std::vector<Value> values;
  uint32_t groups = 0;

  void AddGroup(std::span<const double> group);
};

// b by a, of a percentile or of the mean, and where it lies with 95 % confidence.
struct RatioEstimate {
  double a = 0, b = 0;
  double low = 0, high = 0;
  bool sure = false;  // there is an interval: both have 10 groups or more

  double ratio() const { return a > 0 ? b / a : 0; }
  // The interval leaves 1 out: the difference is more than noise within the two runs.
  bool differs() const { return sure && (low > 1 || high < 1); }
};

// The percentile bootstrap (Efron): whole groups are drawn with replacement, as many as there are,
// on each side for itself; the interval is from the 2.5th to the 97.5th percentile of the ratios.
// The draws are fixed, so the same values give the same interval. One estimate per entry of
// `percentiles`.
std::vector<RatioEstimate> ComparePercentiles(const GroupedValues& a, const GroupedValues& b,
                                              std::span<const double> percentiles);
RatioEstimate CompareMeans(const GroupedValues& a, const GroupedValues& b);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_STATISTICS_H_
