#include "src/server/embedding.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>

#include "src/server/completion.h"
#include "src/server/metrics.h"
#include "src/server/timings.h"

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The requests of a call that the engine has, for whoever wants them cancelled.
class Live {
 public:
  explicit Live(std::shared_ptr<ServedModel> model) : model_(std::move(model)) {}

  void Add(uint64_t id) {
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
    if (cancelled_) model_->engine().Cancel(id);
  }
  // Those to come, too.
  void Cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    for (const uint64_t id : ids_) model_->engine().Cancel(id);
  }

 private:
  const std::shared_ptr<ServedModel> model_;
  std::mutex mutex_;
  std::vector<uint64_t> ids_;  // guarded by mutex_; also of those that have ended
  bool cancelled_ = false;     // guarded by mutex_
};

// The inputs of one call on their way. A window of them is with the engine, and each that ends
// there makes room for the next: a call of a thousand inputs leaves the queue to others.
class EmbeddingRun : public std::enable_shared_from_this<EmbeddingRun> {
 public:
  EmbeddingRun(std::shared_ptr<ServedModel> model, EmbeddingCall call,
               std::shared_ptr<Exchange> exchange, std::shared_ptr<const EmbeddingAnswer> answer)
      : model_(std::move(model)),
        call_(std::move(call)),
        exchange_(std::move(exchange)),
        answer_(std::move(answer)),
        live_(std::make_shared<Live>(model_)),
        entries_(call_.inputs.size()) {}

  Status Start() {
    const size_t all = call_.inputs.size();
    Status status;
    for (size_t i = 0; i < all && status.ok(); ++i) {
      status = model_->engine().Check(MakeRequest(i));
      if (all > 1) status = status.Within("input " + std::to_string(i));
    }
    if (status.ok()) status = Submit();
    if (!status.ok()) CountRefused(*model_, status);
    return status;
  }

 private:
  Status Submit() {
    const size_t window = std::max<size_t>(1, model_->options().service.engine.max_sequences);
    std::vector<Request> requests;
    next_ = std::min(window, call_.inputs.size());
    for (size_t i = 0; i < next_; ++i) requests.push_back(Connected(i));
    ASSIGN_OR_RETURN(const std::vector<uint64_t> ids, model_->engine().Submit(std::move(requests)));
    for (const uint64_t id : ids) live_->Add(id);
    // Not `this`: it holds the exchange, which holds what is given here.
    exchange_->OnDisconnect([live = live_] { live->Cancel(); });
    return Status();
  }

  Request MakeRequest(size_t input) const {
    Request request;
    request.request_id = exchange_->request().request_id;
    request.prompt = call_.inputs[input];
    request.embed = call_.pooling;
    request.cache_scope = CacheScope(*model_, *exchange_, 0);
    return request;
  }

  Request Connected(size_t input) {
    Request request = MakeRequest(input);
    request.on_finish = [self = shared_from_this(), input](const Sequence& sequence) {
      self->OnFinish(input, sequence);
    };
    return request;
  }

  // Engine's thread.
  void OnFinish(size_t input, const Sequence& sequence) {
    if (Metrics* metrics = model_->options().metrics; metrics != nullptr) {
      RequestTimes times;
      times.whole_s = SecondsSince(arrived_);
      metrics->Ended(model_->name(), sequence.stats(), sequence.finish_reason(),
                     sequence.request().max_tokens, times);
    }
    Status status = sequence.error();
    if (status.ok() && sequence.finish_reason() != FinishReason::kStop) {
      status = Status(StatusCode::kCancelled, "the request was cancelled");
    }
    if (status.ok() && next_ < call_.inputs.size()) {
      const Result<uint64_t> id = model_->engine().SubmitNext(Connected(next_++));
      if (id.ok()) {
        live_->Add(*id);
      } else {
        status = id.status();
      }
    }
    exchange_->Post([self = shared_from_this(), input, status, stats = sequence.stats(),
                     vectors = sequence.embedding()]() mutable {
      self->Ended(input, status, stats, std::move(vectors));
    });
  }

  // From here on the I/O thread.
  void Ended(size_t input, Status status, const SequenceStats& stats, std::vector<float> vectors) {
    if (failed_) return;
    AddStats(stats, &sum_);
    if (status.ok()) status = Scale(&vectors);
    if (!status.ok()) {
      failed_ = true;
      live_->Cancel();
      Log("error");
      return answer_->Fail(*exchange_, status);
    }
    entries_[input] = answer_->Entry(input, vectors, dim_);
    if (++ended_ < call_.inputs.size()) return;
    Log("stop");
    std::string joined;
    for (const std::string& entry : entries_) {
      if (!joined.empty()) joined += ',';
      joined += entry;
    }
    HttpResponse response;
    response.body = answer_->Body(joined, sum_.prompt_tokens);
    exchange_->Respond(std::move(response));
  }

  Status Scale(std::vector<float>* vectors) {
    dim_ = model_->config().dim;
    const bool finite =
        std::all_of(vectors->begin(), vectors->end(), [](float v) { return std::isfinite(v); });
    if (!finite) {
      return Status(StatusCode::kCorrupt,
                    "the embedding holds values that are no numbers; is the model's file sound?");
    }
    if (call_.pooling == Pooling::kNone) return Status();
    if (call_.dimensions != 0 && call_.dimensions < dim_) {
      dim_ = call_.dimensions;
      vectors->resize(dim_);
    }
    Normalize(call_.norm, *vectors);
    return Status();
  }

  // Inputs share passes, so the time is that of all of them together.
  void Log(const char* finish) {
    RequestLog log;
    log.model = model_->name();
    log.prompt_tokens = sum_.prompt_tokens;
    log.cached_tokens = sum_.cached_tokens;
    log.prefill_s = SecondsSince(arrived_);
    if (log.prefill_s > 0) {
      log.prefill_per_s = static_cast<double>(sum_.prefill_rows) / log.prefill_s;
    }
    log.finish = finish;
    exchange_->SetLog(log);
  }

  const std::shared_ptr<ServedModel> model_;
  const EmbeddingCall call_;
  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<const EmbeddingAnswer> answer_;
  const std::shared_ptr<Live> live_;
  const Clock::time_point arrived_ = Clock::now();
  size_t next_ = 0;  // input that the engine has yet to get; once it has any, of its thread

  // Of the I/O thread.
  std::vector<std::string> entries_;
  size_t ended_ = 0, dim_ = 0;
  SequenceStats sum_;
  bool failed_ = false;
};

}  // namespace

Status Embed(std::shared_ptr<ServedModel> model, EmbeddingCall call,
             std::shared_ptr<Exchange> exchange, std::shared_ptr<const EmbeddingAnswer> answer) {
  return std::make_shared<EmbeddingRun>(std::move(model), std::move(call), std::move(exchange),
                                        std::move(answer))
      ->Start();
}

}  // namespace sluice
