// When requests of an open loop are due. A function of the seed alone: the server's answers never
// move them, which is what keeps coordinated omission out. Used by the generator; one thread.
#ifndef SLUICE_SRC_LOAD_ARRIVALS_H_
#define SLUICE_SRC_LOAD_ARRIVALS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::load {

constexpr double kAllAtOnce = std::numeric_limits<double>::infinity();

// Gaps of mean 1/rate. shape 1: exponential, a Poisson process; another shape: gamma of that shape,
// burstier below 1, smoother above (as vLLM's --burstiness); infinity: all the same.
class Arrivals {
 public:
  // rate > 0, kAllAtOnce included; shape > 0.
  Arrivals(double rate, double shape, uint64_t seed);
  // Due times as they are, ascending; times_s.size() of them.
  explicit Arrivals(std::vector<double> times_s);

  // The next due time, in seconds from the start; the first is 0. Infinity: no more.
  double Next();

 private:
  double Gap();
  double Uniform();
  double Normal();

  double rate_ = kAllAtOnce, shape_ = 1;
  uint64_t seed_ = 0;
  bool listed_ = false;
  std::vector<double> times_;
  uint64_t draws_ = 0;
  size_t count_ = 0;
  double time_ = 0;
};

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_ARRIVALS_H_
