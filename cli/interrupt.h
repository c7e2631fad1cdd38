// Ctrl-C (or a polite kill) ends a generation, not the program: the first one asks, and the run
// closes with its line; a second one while it still runs ends the process.
#ifndef SLUICE_CLI_INTERRUPT_H_
#define SLUICE_CLI_INTERRUPT_H_

#include <mutex>
#include <optional>

#include "cli/progress.h"
#include "src/model/weight_store.h"

namespace sluice {

class InterruptGuard {
 public:
  InterruptGuard();           // from here SIGINT and SIGTERM only set a flag; one guard at a time
  ~InterruptGuard();          // as before
  static bool interrupted();  // since the guard was made; any thread
};

// Shows how far a load is. While it makes panels Ctrl-C ends it with kCancelled, so that no half
// file stays; before and after that a load has nothing to lose, and the signal ends the process.
class LoadWatch {
 public:
  LoadProgress progress();
  bool interrupted() const { return interrupt_ && InterruptGuard::interrupted(); }

 private:
  Progress bar_{"preparing weights"};
  std::once_flag began_;
  std::optional<InterruptGuard> interrupt_;
};

}  // namespace sluice
#endif  // SLUICE_CLI_INTERRUPT_H_
