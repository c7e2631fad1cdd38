#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace sluice {

namespace {

std::atomic<int> interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free);  // may be touched in a handler
struct sigaction previous_int, previous_term;

void OnInterrupt(int signal) {
  if (++interrupts > 1) {
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

bool InterruptGuard::interrupted() { return interrupts > 0; }

LoadProgress LoadWatch::progress() {
  return [this](uint64_t done, uint64_t total) {
    std::call_once(began_, [this] { interrupt_.emplace(); });
    bar_.Update(done, total);
    return !InterruptGuard::interrupted();
  };
}

}  // namespace sluice
