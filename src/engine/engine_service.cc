#include "src/engine/engine_service.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

namespace sluice {

Result<std::unique_ptr<EngineService>> EngineService::Create(const std::string& path,
                                                             const ServiceOptions& options,
                                                             const LoadProgress& progress) {
  std::unique_ptr<EngineService> service(new EngineService(options));
  std::promise<Status> loaded;
  std::future<Status> result = loaded.get_future();
  service->thread_ =
      std::thread(&EngineService::Run, service.get(), path, progress, std::move(loaded));
  RETURN_IF_ERROR(result.get());
  return service;
}

void EngineService::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Status EngineService::Load(const std::string& path, const LoadProgress& progress) {
  try {
    ASSIGN_OR_RETURN(runner_, ModelRunner::Create(path, options_.runner, progress));
    ASSIGN_OR_RETURN(tokenizer_, Tokenizer::Load(runner_->model().gguf()));
    engine_ = std::make_unique<Engine>(*runner_, *tokenizer_, options_.engine);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, path + ": not enough memory to load it");
  }
  snapshot_ = engine_->snapshot();
  return Status();
}

void EngineService::Run(const std::string& path, const LoadProgress& progress,
                        std::promise<Status> loaded) {
  const Status status = Load(path, progress);
  loaded.set_value(status);
  while (status.ok() && TakeInbox()) {
    const Result<bool> more = engine_->Step();
    CHECK(more.ok());
    RemoveFinished();
  }
  engine_.reset();
  tokenizer_.reset();
  runner_.reset();
}

// Waits until there is something to do; false: the end.
bool EngineService::TakeInbox() {
  std::vector<Arrival> arrivals;
  std::vector<uint64_t> cancellations;
  bool stop = false;
  {
    std::unique_lock lock(mutex_);
    snapshot_ = engine_->snapshot();
    snapshot_.read_bandwidth_gb_s = std::max(read_bandwidth_gb_s_, 0.0);
    const auto wanted = [&] { return stop_ || !inbox_.empty() || !sequences_.empty(); };
    // The ceiling, in the first idle moment: half a second, for which nobody waits at the start;
    // and again in quiet ones.
    const std::chrono::duration<double> quiet(read_bandwidth_gb_s_ < 0 ? 0 : options_.quiet_s);
    if (CeilingIsOld() && !wake_.wait_for(lock, quiet, wanted)) {
      lock.unlock();
      MeasureCeiling();
      lock.lock();
    }
    snapshot_.read_bandwidth_gb_s = std::max(read_bandwidth_gb_s_, 0.0);
    wake_.wait(lock, wanted);
    arrivals.swap(inbox_);
    cancellations.swap(cancellations_);
    stop = stop_;
  }
  for (Arrival& arrival : arrivals) Start(std::move(arrival));
  for (uint64_t id : cancellations) {
    if (const auto found = sequences_.find(id); found != sequences_.end()) found->second->Cancel();
  }
  if (!stop) return true;
  for (const auto& [id, sequence] : sequences_) sequence->Cancel();
  return !sequences_.empty();  // one more step lets them end
}

bool EngineService::CeilingIsOld() const {
  if (read_bandwidth_gb_s_ < 0) return true;
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - ceiling_at_;
  return age.count() >= options_.ceiling_age_s && engine_->snapshot().steps != ceiling_steps_;
}

void EngineService::MeasureCeiling() {
  read_bandwidth_gb_s_ =
      read_bandwidth_gb_s_ < 0 ? runner_->ReadBandwidth() : runner_->MeasureBandwidthAgain();
  ceiling_steps_ = engine_->snapshot().steps;
  ceiling_at_ = std::chrono::steady_clock::now();
}

void EngineService::Start(Arrival arrival) {
  Result<Sequence*> sequence = engine_->Add(std::move(arrival.request));
  CHECK(sequence.ok());  // Submit has checked it
  sequences_[arrival.id] = *sequence;
}

void EngineService::RemoveFinished() {
  for (auto it = sequences_.begin(); it != sequences_.end();) {
    Sequence* sequence = it->second;
    if (!sequence->finished()) {
      ++it;
      continue;
    }
    const SequenceStats& stats = sequence->stats();
    {
      const std::lock_guard lock(mutex_);
      request_s_ += 0.2 * (stats.prefill_s + stats.decode_s - request_s_);
    }
    engine_->Remove(sequence);
    it = sequences_.erase(it);
    --pending_;
  }
}

Result<std::vector<uint64_t>> EngineService::Submit(std::vector<Request> requests) {
  for (const Request& request : requests) RETURN_IF_ERROR(engine_->Check(request));
  std::vector<uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    const size_t most = options_.engine.max_sequences + options_.max_queue;
    // A request for more choices than fit at all may wait in an empty house.
    if (stop_ || (pending_ > 0 && pending_ + requests.size() > most)) {
      return Status(StatusCode::kBusy,
                    "the queue is full: " + std::to_string(pending_.load()) +
                        " requests run or wait, --max-num-seqs and --max-queue allow " +
                        std::to_string(most) + "; try again later");
    }
    pending_ += requests.size();
    for (Request& request : requests) {
      ids.push_back(next_id_++);
      inbox_.push_back({ids.back(), std::move(request)});
    }
  }
  wake_.notify_one();
  return ids;
}

void EngineService::Cancel(uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    cancellations_.push_back(id);
  }
  wake_.notify_one();
}

int EngineService::RetryAfterSeconds() const {
  const std::lock_guard lock(mutex_);
  const double ahead =
      static_cast<double>(pending_.load()) / static_cast<double>(options_.engine.max_sequences);
  return static_cast<int>(std::clamp(std::ceil(ahead * request_s_), 1.0, 3600.0));
}

EngineSnapshot EngineService::snapshot() const {
  const std::lock_guard lock(mutex_);
  EngineSnapshot s = snapshot_;
  s.waiting += inbox_.size();
  return s;
}

}  // namespace sluice
