// Ctrl-C (or a polite kill) ends a generation, not the program: the first one asks, and the run
// closes with its line; a second one while it still runs ends the process.
#ifndef SLUICE_CLI_INTERRUPT_H_
#define SLUICE_CLI_INTERRUPT_H_

namespace sluice {

class InterruptGuard {
 public:
  InterruptGuard();   // from here SIGINT and SIGTERM only set a flag; one guard at a time
  ~InterruptGuard();  // as before
  bool interrupted() const;
};

}  // namespace sluice
#endif  // SLUICE_CLI_INTERRUPT_H_
