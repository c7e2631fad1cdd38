#include "cli/interrupt.h"

#include <csignal>

namespace sluice {

namespace {

volatile std::sig_atomic_t interrupts = 0;
struct sigaction previous_int, previous_term;

void OnInterrupt(int signal) {
  interrupts = interrupts + 1;
  if (interrupts > 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupts = 0;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_int);
  sigaction(SIGTERM, &action, &previous_term);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_int, nullptr);
  sigaction(SIGTERM, &previous_term, nullptr);
}

bool InterruptGuard::interrupted() const { return interrupts > 0; }

}  // namespace sluice
