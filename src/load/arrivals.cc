#include "src/load/arrivals.h"

#include <cmath>
#include <utility>

#include "src/base/random.h"

namespace sluice::load {
namespace {

constexpr uint64_t kStream = 0x61727269;  // of the random numbers: no one else draws from it

}  // namespace

Arrivals::Arrivals(double rate, double shape, uint64_t seed)
    : rate_(rate), shape_(shape), seed_(seed) {}

Arrivals::Arrivals(std::vector<double> times_s) : listed_(true), times_(std::move(times_s)) {}

double Arrivals::Next() {
  if (listed_) {
    return count_ < times_.size() ? times_[count_++] : std::numeric_limits<double>::infinity();
  }
  if (count_++ > 0 && std::isfinite(rate_)) time_ += Gap();
  return time_;
}

double Arrivals::Uniform() { return RandomUniform(seed_, kStream, draws_++); }

double Arrivals::Normal() {
  const double radius = std::sqrt(-2 * std::log1p(-Uniform()));
  return radius * std::cos(2 * M_PI * Uniform());
}

// Gamma by rejection (Marsaglia and Tsang, "A simple method for generating gamma variables", ACM
// TOMS 26(3), 2000); below shape 1 by their power of a uniform.
double Arrivals::Gap() {
  if (std::isinf(shape_)) return 1 / rate_;
  if (shape_ == 1) return -std::log1p(-Uniform()) / rate_;
  const double raised = shape_ < 1 ? shape_ + 1 : shape_;
  const double d = raised - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double v = 0;
  while (true) {
    const double x = Normal();
    v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = 1 - Uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) break;
  }
  double gamma = d * v;
  if (shape_ < 1) gamma *= std::pow(1 - Uniform(), 1 / shape_);
  return gamma / (shape_ * rate_);
}

}  // namespace sluice::load
