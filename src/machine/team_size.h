// How many workers the short passes of decode should use while other programs
// keep some CPUs busy: every barrier waits for the slowest worker, so a smaller
// team that gets its CPUs can be faster than a larger one that does not. Decided
// by trying: speed is measured, not modelled. The thread that leads the team asks
// before each pass and tells what the pass took; bytes do not depend on the answer.
#ifndef SLUICE_SRC_MACHINE_TEAM_SIZE_H_
#define SLUICE_SRC_MACHINE_TEAM_SIZE_H_

#include <cstddef>

namespace sluice {

class TeamSize {
 public:
  explicit TeamSize(int full = 1) : full_(full), settled_(full) {}

  // Workers for the next pass: 1 .. full.
  int threads() const { return trial_ > 0 ? trial_ : settled_; }
  // A pass of `rows` rows on threads() workers took `seconds`, in which they wanted a CPU for
  // `lost_s` and did not have it (ThreadTeam::lost_ns, added up over the workers). Passes are
  // compared with passes of as many rows.
  void Passed(size_t rows, double seconds, double lost_s);

 private:
  void EndWindow(double rate, double lost_cpus, double seconds);

  int full_, settled_;
  int trial_ = 0;           // a count on trial; 0: none
  bool disturbed_ = false;  // in the latest window with settled_ workers
  double rate_ = 0;         // passes per second of the latest window with settled_ workers
  // The window that is being filled.
  size_t rows_ = 0;
  double passes_ = 0, seconds_ = 0, lost_s_ = 0;
  // Between trials: doubled by each that brings nothing.
  double pause_s_ = 0, since_trial_s_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_TEAM_SIZE_H_
