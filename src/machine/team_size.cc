#include "src/machine/team_size.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {
namespace {

// Of a team that is disturbed from some moment on, the window of that moment is half quiet; the
// next one is compared with the one after it, which is on trial. All fit in 100 ms.
constexpr double kWindow_s = 0.025;
constexpr double kShortestPause_s = 0.25;
// A trial of a full team beside a busy neighbour runs at half the speed for a window: 2 % at most.
constexpr double kLongestPause_s = 2;
// CPUs. Timer ticks, interrupts and a hypervisor always take a little.
constexpr double kNoise = 0.1, kNoisePerWorker = 0.02;
constexpr double kWorthGrowing = 1.03;

}  // namespace

void TeamSize::Passed(size_t rows, double seconds, double lost_s) {
  if (rows != rows_) {
    rows_ = rows;
    trial_ = 0;
    passes_ = seconds_ = lost_s_ = 0;
  }
  passes_ += 1;
  seconds_ += seconds;
  lost_s_ += lost_s;
  if (seconds_ < kWindow_s) return;
  EndWindow(passes_ / seconds_, lost_s_ / seconds_, seconds_);
  passes_ = seconds_ = lost_s_ = 0;
}

void TeamSize::EndWindow(double rate, double lost_cpus, double seconds) {
  if (trial_ > 0) {
    const bool better = trial_ < settled_ ? rate > rate_ : rate > rate_ * kWorthGrowing;
    pause_s_ =
        better ? kShortestPause_s : std::clamp(2 * pause_s_, kShortestPause_s, kLongestPause_s);
    if (better) {
      settled_ = trial_;
      rate_ = rate;
    }
    trial_ = 0;
    since_trial_s_ = 0;
    return;
  }
  rate_ = rate;
  const bool disturbed = lost_cpus > kNoise + kNoisePerWorker * settled_;
  const bool before = std::exchange(disturbed_, disturbed);
  since_trial_s_ += seconds;
  if (since_trial_s_ < pause_s_) return;
  if (disturbed && settled_ > 1) {
    if (!before) return;
    const int got = static_cast<int>(std::floor(settled_ - lost_cpus));
    trial_ = std::clamp(got, 1, settled_ - 1);
  } else if (settled_ < full_) {
    trial_ = full_;
  } else {
    pause_s_ = 0;  // quiet: the next disturbance is answered at once
  }
}

}  // namespace sluice
