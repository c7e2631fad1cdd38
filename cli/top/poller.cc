#include "cli/top/poller.h"

#include <signal.h>

#include <chrono>
#include <utility>

namespace sluice::top {

Poller::Poller(std::unique_ptr<Client> client, double interval_s)
    : client_(std::move(client)), interval_s_(interval_s) {
  // Signals are for the thread that owns the terminal.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Poller::~Poller() {
  client_->Stop();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::optional<Scrape> Poller::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(scrape_, std::nullopt);
}

std::optional<std::string> Poller::TakeMessage() {
  const std::lock_guard lock(mutex_);
  return std::exchange(message_, std::nullopt);
}

void Poller::Cancel(std::string request_id) {
  {
    const std::lock_guard lock(mutex_);
    cancels_.push_back(std::move(request_id));
  }
  wake_.notify_one();
}

void Poller::Set(double interval_s, bool paused) {
  {
    const std::lock_guard lock(mutex_);
    if (interval_s == interval_s_ && paused == paused_) return;
    interval_s_ = interval_s;
    look_now_ = look_now_ || (paused_ && !paused);
    paused_ = paused;
  }
  wake_.notify_one();
}

void Poller::Run() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point looked;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (!cancels_.empty()) {
      const std::string id = std::move(cancels_.front());
      cancels_.erase(cancels_.begin());
      lock.unlock();
      std::string message = client_->Cancel(id);
      lock.lock();
      message_ = std::move(message);
      continue;
    }
    const auto next = looked + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(interval_s_));
    if (!look_now_ && (paused_ || Clock::now() < next)) {
      if (paused_)
        wake_.wait(lock);
      else
        wake_.wait_until(lock, next);
      continue;
    }
    look_now_ = false;
    looked = Clock::now();
    lock.unlock();
    Scrape scrape = client_->Look();
    lock.lock();
    scrape_ = std::move(scrape);
  }
}

}  // namespace sluice::top
