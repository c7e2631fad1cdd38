// Which rates a sweep tries, and where its knee is: the highest rate that the server keeps up with
// and within the SLO. Used by `sluice load --sweep`; any thread.
#ifndef SLUICE_SRC_LOAD_SWEEP_H_
#define SLUICE_SRC_LOAD_SWEEP_H_

#include <optional>
#include <string>

#include "src/load/summary.h"

namespace sluice::load {

constexpr double kKeepsUp = 0.9;      // answers by arrivals; see LoadSummary::kept_up
constexpr double kMostFailed = 0.01;  // of the requests

// Why a rate was too much ("answers 71 % of what arrives"), or nothing: it was not. `attainment`:
// the share of requests that must be within the SLO.
std::string TooMuch(const LoadSummary& summary, const Slo& slo, double attainment);

// Upwards by `factor` until a rate is too much (downwards if the first one is), then twice
// halfway, on a logarithmic scale, between the highest that was fine and the lowest that was not.
class Sweep {
 public:
  Sweep(double first, double factor, size_t most_steps)
      : factor_(factor), most_steps_(most_steps), next_(first) {}

  std::optional<double> Next() const { return next_; }  // nothing: it is done
  void Tell(bool fine);                                 // of the rate that Next gave

  double knee() const { return fine_; }      // 0: none was fine
  double broken() const { return broken_; }  // the lowest that was too much; 0: none was

 private:
  const double factor_;
  const size_t most_steps_;
  std::optional<double> next_;
  double fine_ = 0, broken_ = 0;
  size_t steps_ = 0, halvings_ = 0;
};

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_SWEEP_H_
