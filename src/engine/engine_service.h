// The engine on a thread of its own: requests come from any thread, wait in a
// bounded queue, run together, and report back through their callbacks, which
// are called on the engine's thread and must be quick. What `sluice serve`
// stands on.
#ifndef SLUICE_SRC_ENGINE_ENGINE_SERVICE_H_
#define SLUICE_SRC_ENGINE_ENGINE_SERVICE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/status.h"
#include "src/engine/engine.h"

namespace sluice {

class EngineService {
 public:
  // Both must outlive it. `max_queue`: requests that may wait beside those that run.
  EngineService(ModelRunner& runner, const Tokenizer& tokenizer, const EngineOptions& options,
                size_t max_queue);
  ~EngineService();  // cancels what runs

  // All of them or none; their ids. kBusy: the queue is full (RetryAfterSeconds says when to come
  // again); else as Engine::Add. Every request submitted gets exactly one on_finish.
  Result<std::vector<uint64_t>> Submit(std::vector<Request> requests);
  void Cancel(uint64_t id);  // before its next step; unknown ids are ignored
  // Until a request that comes now would start, from how long the last ones took; at least 1.
  int RetryAfterSeconds() const;
  // Of the last step. Any thread, no wait for a step.
  EngineSnapshot snapshot() const;
  bool idle() const { return pending_.load() == 0; }  // nothing runs or waits

 private:
  void Loop();
  void TakeInbox();
  struct Arrival {
    uint64_t id;
    Request request;
  };

  Engine engine_;  // its thread only, but for Check
  const size_t max_queue_, max_sequences_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Arrival> inbox_;           // guarded by mutex_
  std::vector<uint64_t> cancellations_;  // guarded by mutex_
  EngineSnapshot snapshot_;              // guarded by mutex_
  bool stop_ = false;                    // guarded by mutex_
  uint64_t next_id_ = 1;                 // guarded by mutex_
  std::atomic<size_t> pending_ = 0;
  std::atomic<double> request_seconds_ = 0;  // moving mean of one request's running time
  std::thread thread_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_ENGINE_SERVICE_H_
