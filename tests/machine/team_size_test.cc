#include "src/machine/team_size.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice {
namespace {

// A machine on which a pass takes `work_s` of CPU time, and each of `busy` neighbours holds half of
// one worker's CPU: such a team waits for the slow ones.
struct Simulation {
  int cpus = 4;
  int busy = 0;
  double work_s = 0.04;
  bool dynamic = false;  // tiles move to the workers that run: more workers are always better
  double now_s = 0;

  void Pass(TeamSize& size, size_t rows = 1) {
    const int n = size.threads();
    const int disturbed = std::clamp(n + busy - cpus, 0, n);
    const double seconds = dynamic         ? work_s / (n - 0.5 * disturbed)
                           : disturbed > 0 ? work_s / n * 2
                                           : work_s / n;
    now_s += seconds;
    size.Passed(rows, seconds, 0.5 * disturbed * seconds);
  }
  void Run(TeamSize& size, double seconds) {
    for (const double end = now_s + seconds; now_s < end;) Pass(size);
  }
};

TEST(TeamSize, UndisturbedStaysFull) {
  TeamSize size(4);
  Simulation machine;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(size.threads(), 4);
    machine.Pass(size);
  }
}

TEST(TeamSize, ShrinksWithin100MsAndGrowsBack) {
  TeamSize size(4);
  Simulation machine;
  for (int round = 0; round < 3; ++round) {
    machine.busy = 0;
    machine.Run(size, 5);
    EXPECT_EQ(size.threads(), 4);
    machine.busy = 1;
    machine.Run(size, 0.1);
    EXPECT_EQ(size.threads(), 3);
    machine.Run(size, 3);
  }
}

TEST(TeamSize, TrialsOfTheFullTeamAreRare) {
  TeamSize size(4);
  Simulation machine{.busy = 1};
  int small = 0;
  for (int i = 0; i < 1000; ++i) {
    small += size.threads() == 3;
    machine.Pass(size);
  }
  EXPECT_GT(small, 900);
}

TEST(TeamSize, KeepsATeamThatCopes) {
  TeamSize size(4);
  Simulation machine{.busy = 1, .dynamic = true};
  int full = 0;
  for (int i = 0; i < 1000; ++i) {
    full += size.threads() == 4;
    machine.Pass(size);
  }
  EXPECT_GT(full, 850);
}

TEST(TeamSize, TwiceAsManyWorkersAsCpus) {
  TeamSize size(8);
  for (int i = 0; i < 4; ++i) {
    const bool fits = size.threads() <= 4;
    size.Passed(1, fits ? 0.05 : 0.12, fits ? 0 : 0.12 * (size.threads() - 4));
  }
  EXPECT_EQ(size.threads(), 4);
}

// A batch that grows makes passes slower; that is no reason to change the team.
TEST(TeamSize, ComparesPassesOfAsManyRows) {
  TeamSize size(4);
  Simulation machine{.busy = 1};
  for (int i = 0; i < 50 && size.threads() == 4; ++i) machine.Pass(size);
  ASSERT_EQ(size.threads(), 3);  // on trial
  machine.Pass(size, 2);
  EXPECT_EQ(size.threads(), 4);  // no verdict on the trial
}

TEST(TeamSize, OneWorkerHasNoChoice) {
  TeamSize size(1);
  for (int i = 0; i < 100; ++i) {
    size.Passed(1, 0.05, 0.02);
    EXPECT_EQ(size.threads(), 1);
  }
}

}  // namespace
}  // namespace sluice
