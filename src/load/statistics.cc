#include "src/load/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/base/check.h"
#include "src/base/random.h"

namespace sluice::load {
namespace {

constexpr uint32_t kFewestGroups = 10;
constexpr size_t kMostDraws = 2000, kFewestDraws = 300;
constexpr size_t kMostWork = 400'000'000;  // values walked over: about a second

// A sample drawn with replacement, as how often each group is in it.
class Resample {
 public:
  Resample(const GroupedValues& from, uint64_t stream) : from_(from), stream_(stream) {
    weights_.resize(from.groups);
  }
  void Draw(uint64_t draw) {
    std::fill(weights_.begin(), weights_.end(), 0);
    for (uint32_t i = 0; i < from_.groups; ++i) {
      ++weights_[RandomBits(draw, stream_, i) % from_.groups];
    }
  }
  uint64_t Total() const {
    uint64_t n = 0;
    for (const auto& v : from_.values) n += weights_[v.group];
    return n;
  }
  // The values must be sorted. Empty samples have the percentile 0.
  std::vector<double> Percentiles(std::span<const double> percentiles) const {
    std::vector<double> out(percentiles.size());
    const uint64_t n = Total();
    for (size_t i = 0; n > 0 && i < percentiles.size(); ++i) {
      const double place = percentiles[i] * static_cast<double>(n - 1);
      const auto whole = static_cast<uint64_t>(place);
      const double x = At(whole), next = At(std::min(whole + 1, n - 1));
      out[i] = x + (place - static_cast<double>(whole)) * (next - x);
    }
    return out;
  }
  double Mean() const {
    double sum = 0;
    for (const auto& v : from_.values) sum += weights_[v.group] * v.value;
    const uint64_t n = Total();
    return n > 0 ? sum / static_cast<double>(n) : 0;
  }

 private:
  double At(uint64_t place) const {
    uint64_t seen = 0;
    for (const auto& v : from_.values) {
      seen += weights_[v.group];
      if (seen > place) return v.value;
    }
    return from_.values.back().value;
  }

  const GroupedValues& from_;
  const uint64_t stream_;
  std::vector<uint32_t> weights_;
};

GroupedValues Sorted(GroupedValues g) {
  std::stable_sort(g.values.begin(), g.values.end(),
                   [](const auto& x, const auto& y) { return x.value < y.value; });
  return g;
}

std::vector<double> Plain(const GroupedValues& sorted) {
  std::vector<double> values;
  for (const auto& v : sorted.values) values.push_back(v.value);
  return values;
}

// statistic(resample) gives one number per estimate.
template <class F>
void Bootstrap(const GroupedValues& a, const GroupedValues& b, F statistic,
               std::vector<RatioEstimate>* estimates) {
  if (std::min(a.groups, b.groups) < kFewestGroups) return;
  const size_t walk = (a.values.size() + b.values.size()) * (1 + 2 * estimates->size());
  const size_t draws = std::clamp(kMostWork / walk, kFewestDraws, kMostDraws);
  std::vector<std::vector<double>> ratios(estimates->size());
  Resample from_a(a, 1), from_b(b, 2);
  for (size_t draw = 0; draw < draws; ++draw) {
    from_a.Draw(draw);
    from_b.Draw(draw);
    const std::vector<double> x = statistic(from_a), y = statistic(from_b);
    for (size_t i = 0; i < ratios.size(); ++i) {
      if (x[i] > 0) ratios[i].push_back(y[i] / x[i]);
    }
  }
  for (size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i].empty()) continue;
    std::sort(ratios[i].begin(), ratios[i].end());
    (*estimates)[i].low = Percentile(ratios[i], 0.025);
    (*estimates)[i].high = Percentile(ratios[i], 0.975);
    (*estimates)[i].sure = true;
  }
}

}  // namespace

double Percentile(std::span<const double> sorted, double p) {
  CHECK(!sorted.empty());
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto whole = static_cast<size_t>(place);
  const double next = sorted[std::min(whole + 1, sorted.size() - 1)];
  return sorted[whole] + (place - static_cast<double>(whole)) * (next - sorted[whole]);
}

Distribution Describe(std::vector<double> values) {
  Distribution d;
  d.count = values.size();
  if (values.empty()) return d;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  d.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - d.mean) * (v - d.mean);
  d.deviation = values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  d.least = values.front();
  d.p50 = Percentile(values, 0.5);
  d.p90 = Percentile(values, 0.9);
  d.p95 = Percentile(values, 0.95);
  d.p99 = Percentile(values, 0.99);
  d.p999 = Percentile(values, 0.999);
  d.most = values.back();
  return d;
}

void GroupedValues::AddGroup(std::span<const double> group) {
  for (const double value : group) values.push_back({value, groups});
  ++groups;
}

std::vector<RatioEstimate> ComparePercentiles(const GroupedValues& a, const GroupedValues& b,
                                              std::span<const double> percentiles) {
  std::vector<RatioEstimate> estimates(percentiles.size());
  if (a.values.empty() || b.values.empty()) return estimates;
  const GroupedValues sorted_a = Sorted(a), sorted_b = Sorted(b);
  const std::vector<double> plain_a = Plain(sorted_a), plain_b = Plain(sorted_b);
  for (size_t i = 0; i < percentiles.size(); ++i) {
    estimates[i].a = Percentile(plain_a, percentiles[i]);
    estimates[i].b = Percentile(plain_b, percentiles[i]);
  }
  Bootstrap(
      sorted_a, sorted_b, [&](const Resample& r) { return r.Percentiles(percentiles); },
      &estimates);
  return estimates;
}

RatioEstimate CompareMeans(const GroupedValues& a, const GroupedValues& b) {
  std::vector<RatioEstimate> estimates(1);
  if (a.values.empty() || b.values.empty()) return estimates[0];
  estimates[0].a = Describe(Plain(a)).mean;
  estimates[0].b = Describe(Plain(b)).mean;
  Bootstrap(a, b, [](const Resample& r) { return std::vector<double>{r.Mean()}; }, &estimates);
  return estimates[0];
}

}  // namespace sluice::load
