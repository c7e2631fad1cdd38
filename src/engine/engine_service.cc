#include "src/engine/engine_service.h"

#include <algorithm>
#include <chrono>
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
    for (const auto& [id, sequence] : sequences_) live_.Update(id, *sequence);
    const auto wanted = [&] { return stop_ || !inbox_.empty() || !sequences_.empty(); };
    // The ceilings, in the first idle moment: under a second, for which nobody waits at the start;
    // and the bandwidth again in quiet ones.
    const std::chrono::duration<double> quiet(measured_ ? options_.quiet_s : 0);
    if (CeilingIsOld() && !wake_.wait_for(lock, quiet, wanted)) {
      lock.unlock();
      MeasureCeiling();
      lock.lock();
      snapshot_ = engine_->snapshot();
    }
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
  if (!measured_) return true;
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - ceiling_at_;
  return age.count() >= options_.ceiling_age_s && engine_->snapshot().steps != ceiling_steps_;
}

void EngineService::MeasureCeiling() {
  if (!std::exchange(measured_, true)) {
    engine_->SetCeilings(runner_->MeasureCeilings());
  } else {
    PassCeilings ceilings = engine_->ceilings();
    ceilings.decode.read_gb_s = ceilings.prefill.read_gb_s = runner_->MeasureBandwidthAgain();
    ceilings.decode.quiet_read_gb_s = ceilings.prefill.quiet_read_gb_s = runner_->QuietBandwidth();
    engine_->SetCeilings(ceilings);
  }
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
      live_.Remove(it->first);
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
    for (Request& request : requests) ids.push_back(Arrive(std::move(request)));
  }
  wake_.notify_one();
  return ids;
}

// Under the lock.
uint64_t EngineService::Arrive(Request request) {
  ++pending_;
  request.arrived = std::chrono::steady_clock::now();
  live_.Add(next_id_, request, LiveRequests::Clock::now());
  inbox_.push_back({next_id_, std::move(request)});
  return next_id_++;
}

// The engine's own thread looks into the inbox after this step: nobody has to be woken.
Result<uint64_t> EngineService::SubmitNext(Request request) {
  const std::lock_guard lock(mutex_);
  if (stop_) return Status(StatusCode::kCancelled, "the model is being unloaded");
  return Arrive(std::move(request));
}

void EngineService::Cancel(uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    cancellations_.push_back(id);
  }
  wake_.notify_one();
}

size_t EngineService::CancelRequest(std::string_view request_id) {
  size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    const std::vector<uint64_t> ids = live_.WithRequestId(request_id);
    cancellations_.insert(cancellations_.end(), ids.begin(), ids.end());
    count = ids.size();
  }
  if (count > 0) wake_.notify_one();
  return count;
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

std::vector<LiveRequest> EngineService::requests() const {
  const std::lock_guard lock(mutex_);
  return live_.List(snapshot_.read_bandwidth_gb_s * 1e9, LiveRequests::Clock::now());
}

}  // namespace sluice
