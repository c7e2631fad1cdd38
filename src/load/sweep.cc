#include "src/load/sweep.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sluice::load {
namespace {

constexpr size_t kHalvings = 2;
constexpr size_t kFewBehind = 3;  // a queue of so few is noise

std::string Percent(const char* format, double share) {
  char text[120];
  std::snprintf(text, sizeof(text), format, 100 * share);
  return text;
}

}  // namespace

std::string TooMuch(const LoadSummary& s, const Slo& slo, double attainment) {
  const size_t counted = s.requests - s.unfinished;
  if (counted == 0) return "";
  const auto all = static_cast<double>(counted);
  if (static_cast<double>(s.failed) > kMostFailed * all) {
    return Percent("%.0f %% of the requests failed", static_cast<double>(s.failed) / all) +
           (s.errors.empty() ? "" : " (" + s.errors.begin()->first + ")");
  }
  if (slo.any() && s.attainment() < attainment) {
    return Percent("%.0f %% of the requests kept the SLO", s.attainment()) +
           Percent(", fewer than %.0f %%", attainment);
  }
  const double behind = (1 - s.kept_up) * 0.75 * all;  // arrivals of the window without an answer
  if (s.kept_up < kKeepsUp && behind > kFewBehind) {
    return Percent("only %.0f %% of what arrived was answered meanwhile, so a queue grows",
                   s.kept_up);
  }
  return "";
}

void Sweep::Tell(bool fine) {
  const double rate = *next_;
  if (fine) {
    fine_ = std::max(fine_, rate);
  } else {
    broken_ = broken_ > 0 ? std::min(broken_, rate) : rate;
  }
  next_.reset();
  if (++steps_ >= most_steps_) return;
  if (fine_ > 0 && broken_ > 0) {
    if (halvings_++ < kHalvings && broken_ > fine_) next_ = std::sqrt(fine_ * broken_);
  } else {
    next_ = fine_ > 0 ? rate * factor_ : rate / factor_;
  }
}

}  // namespace sluice::load
