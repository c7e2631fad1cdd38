// The engine on a thread of its own: requests come from any thread, wait in a
// bounded queue, run together, and report back through their callbacks, which
// are called on the engine's thread and must be quick. The same thread loads the
// model, because the thread that leads the team is bound to a core. What
// `sluice serve` stands on.
#ifndef SLUICE_SRC_ENGINE_ENGINE_SERVICE_H_
#define SLUICE_SRC_ENGINE_ENGINE_SERVICE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/engine/live_requests.h"

namespace sluice {

struct ServiceOptions {
  RunnerOptions runner;
  EngineOptions engine;
  size_t max_queue = 128;  // requests that may wait beside those that run
  // The read bandwidth is measured again (0.1 s) when nobody has asked for anything for quiet_s, it
  // is older than ceiling_age_s and steps were run since.
  double quiet_s = 30, ceiling_age_s = 600;
};

class EngineService {
 public:
  static Result<std::unique_ptr<EngineService>> Create(const std::string& path,
                                                       const ServiceOptions& options,
                                                       const LoadProgress& progress = {});
  ~EngineService() { Stop(); }

  // Cancels what runs, lets it end, and refuses what comes. Not from the engine's thread, where
  // callbacks run: whoever keeps the service alive from there must not be the last.
  void Stop();

  // Any thread, as long as it is only read.
  ModelRunner& runner() const { return *runner_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

  // All of them or none; their ids. kBusy: the queue is full (RetryAfterSeconds says when to come
  // again); else as Engine::Check. Every request submitted gets exactly one on_finish.
  Result<std::vector<uint64_t>> Submit(std::vector<Request> requests);
  // As Submit checks each; any thread.
  Status Check(const Request& request) const { return engine_->Check(request); }
  // From an on_finish: takes the place of the request that has just ended, so there is always room
  // for it. Checked before. kCancelled: the service ends.
  Result<uint64_t> SubmitNext(Request request);
  void Cancel(uint64_t id);  // before its next step; unknown ids are ignored
  // Every request of this Request::request_id; how many there were.
  size_t CancelRequest(std::string_view request_id);
  // Until a request that comes now would start, from how long the last ones took; at least 1.
  int RetryAfterSeconds() const;
  // Of the last step. Any thread, no wait for a step.
  EngineSnapshot snapshot() const;
  // All that run or wait, in order of arrival, as the last step left them. Any thread, no wait for
  // a step.
  std::vector<LiveRequest> requests() const;
  size_t pending() const { return pending_.load(); }  // requests that run or wait

 private:
  struct Arrival {
    uint64_t id;
    Request request;
  };

  explicit EngineService(const ServiceOptions& options) : options_(options) {}
  uint64_t Arrive(Request request);
  Status Load(const std::string& path, const LoadProgress& progress);
  void Run(const std::string& path, const LoadProgress& progress, std::promise<Status> loaded);
  bool TakeInbox();
  bool CeilingIsOld() const;
  void MeasureCeiling();
  void Start(Arrival arrival);
  void RemoveFinished();

  const ServiceOptions options_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;                     // its thread only, but for Check
  std::unordered_map<uint64_t, Sequence*> sequences_;  // its thread only
  bool measured_ = false;                              // its thread only: the ceilings
  uint64_t ceiling_steps_ = 0;  // its thread only: steps until then, and when it was
  std::chrono::steady_clock::time_point ceiling_at_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Arrival> inbox_;           // guarded by mutex_
  std::vector<uint64_t> cancellations_;  // guarded by mutex_
  EngineSnapshot snapshot_;              // guarded by mutex_
  LiveRequests live_;                    // guarded by mutex_
  bool stop_ = false;                    // guarded by mutex_
  uint64_t next_id_ = 1;                 // guarded by mutex_
  double request_s_ = 1;  // guarded by mutex_: moving mean of a request's running time
  std::atomic<size_t> pending_ = 0;
  std::thread thread_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_ENGINE_SERVICE_H_
