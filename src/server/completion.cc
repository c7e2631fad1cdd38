#include "src/server/completion.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/server/metrics.h"
#include "src/server/timings.h"

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

const char* WhyRefused(const Status& status) {
  return status.code() == StatusCode::kBusy      ? "queue_full"
         : status.code() == StatusCode::kTooLong ? "too_long"
                                                 : "invalid";
}

struct Times {
  RequestTimes request;
  Clock::time_point last;

  void Token(Clock::time_point arrived) {
    const Clock::time_point now = Clock::now();
    if (request.first_token_s < 0) {
      request.first_token_s = SecondsBetween(arrived, now);
    } else {
      request.token_gaps_s.push_back(static_cast<float>(SecondsBetween(last, now)));
    }
    last = now;
  }
};

// One call on its way: forwards what the engine's thread tells to the I/O thread, and what the
// client does to the engine.
class Running : public std::enable_shared_from_this<Running> {
 public:
  Running(std::shared_ptr<ServedModel> model, std::shared_ptr<Exchange> exchange,
          std::shared_ptr<CompletionSink> sink)
      : model_(std::move(model)), exchange_(std::move(exchange)), sink_(std::move(sink)) {}

  Status Start(CompletionCall call, bool want_prefill) {
    std::vector<Request> requests;
    for (size_t p = 0; p < call.prompts.size(); ++p) {
      for (size_t i = 0; i < call.n; ++i) {
        Request request = call.options;
        request.request_id = exchange_->request().request_id;
        request.prompt = call.prompts[p];
        request.sampler.seed += i;
        request.cache_scope = CacheScope(*model_, *exchange_, request.cache_scope);
        if (call.grammar) {
          request.constraint = call.grammar->Start(model_->grammar_vocabulary());
        }
        Connect(p * call.n + i, want_prefill, &request);
        requests.push_back(std::move(request));
      }
    }
    Result<std::vector<uint64_t>> ids = model_->engine().Submit(std::move(requests));
    if (!ids.ok()) {
      CountRefused(*model_, ids.status());
      return ids.status();
    }
    // Not `this`: it holds the exchange, which holds what is given here.
    exchange_->OnDisconnect([model = model_, ids = *std::move(ids)] {
      for (uint64_t id : ids) model->engine().Cancel(id);
    });
    return Status();
  }

 private:
  void Connect(size_t choice, bool want_prefill, Request* request) {
    const auto self = shared_from_this();
    // Of the engine's thread alone, until on_finish hands it over.
    const auto times = std::make_shared<Times>();
    request->on_token = [self, choice, times](const TokenEvent& event) {
      if (event.id >= 0) times->Token(self->arrived_);
      self->exchange_->Post([self, delta = self->DeltaOf(choice, event)] {
        if (!self->failed_) self->sink_->OnToken(delta);
      });
    };
    request->on_finish = [self, choice, times](const Sequence& sequence) {
      if (Metrics* metrics = self->model_->options().metrics; metrics != nullptr) {
        times->request.whole_s = SecondsBetween(self->arrived_, Clock::now());
        metrics->Ended(self->model_->name(), sequence.stats(), sequence.finish_reason(),
                       sequence.request().max_tokens, times->request);
      }
      ChoiceEnd end;
      end.choice = choice;
      end.reason = sequence.finish_reason();
      end.stop_text = sequence.stop_text();
      if (sequence.end_token()) end.end_token = self->DeltaOf(choice, *sequence.end_token());
      end.stats = sequence.stats();
      end.diverged_text = self->DivergedText(sequence);
      self->exchange_->Post(
          [self, end = std::move(end), error = sequence.error()] { self->Ended(end, error); });
    };
    if (request->prompt_logprobs >= 0) {
      request->on_prompt = [self, choice](const PromptLogprobs& logprobs) {
        self->exchange_->Post([self, choice, logprobs] {
          if (!self->failed_) self->sink_->OnPrompt(choice, logprobs);
        });
      };
    }
    if (!want_prefill) return;
    const size_t total = request->prompt.size();
    request->on_prefill = [self, choice, total](size_t processed, size_t cached) {
      self->exchange_->Post([self, choice, processed, cached, total] {
        if (!self->failed_) self->sink_->OnPrefill(choice, processed, cached, total);
      });
    };
  }

  TokenDelta DeltaOf(size_t choice, const TokenEvent& event) const {
    TokenDelta delta;
    delta.choice = choice;
    delta.id = event.id;
    delta.text = event.text;
    if (event.id >= 0) delta.piece = model_->tokenizer().Piece(event.id);
    delta.logprob = event.logprob;
    delta.top.assign(event.top.begin(), event.top.end());
    return delta;
  }

  std::string DivergedText(const Sequence& sequence) const {
    constexpr size_t kAround = 8;
    const size_t at = sequence.stats().diverged_at;
    const std::vector<int32_t>& prompt = sequence.request().prompt;
    if (at >= prompt.size()) return "";
    const size_t begin = at - std::min(at, kAround), end = std::min(at + kAround, prompt.size());
    return model_->tokenizer().Decode({prompt.data() + begin, end - begin}, false);
  }

  void Ended(const ChoiceEnd& end, const Status& error) {
    Log(end);
    if (failed_) return;
    if (error.ok()) return sink_->OnEnd(end);
    failed_ = true;
    sink_->OnError(error);
  }

  // The line of the access log: sums over the choices, speeds over their times.
  void Log(const ChoiceEnd& end) {
    AddStats(end.stats, &sum_);
    const auto rate = [](size_t count, double seconds) {
      return seconds > 0 ? static_cast<double>(count) / seconds : 0;
    };
    log_.model = model_->name();
    log_.prompt_tokens = sum_.prompt_tokens;
    log_.cached_tokens = sum_.cached_tokens;
    log_.generated_tokens = sum_.generated_tokens;
    log_.queue_s = sum_.queue_s;
    log_.prefill_s = sum_.prefill_s;
    log_.decode_s = sum_.decode_s;
    log_.prefill_per_s = rate(sum_.prefill_rows, sum_.prefill_s);
    log_.decode_per_s = rate(sum_.decode_passes, sum_.decode_s);
    log_.ceilings = CeilingLog(sum_.work);
    if (sum_.diverged_at != SIZE_MAX) {
      log_.diverged = std::to_string(sum_.diverged_at) + ":" + end.diverged_text;
    }
    log_.finish = FinishReasonName(end.reason);
    exchange_->SetLog(log_);
  }

  const std::shared_ptr<ServedModel> model_;
  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<CompletionSink> sink_;
  const Clock::time_point arrived_ = Clock::now();
  bool failed_ = false;  // I/O thread
  SequenceStats sum_;    // of the choices that have ended, I/O thread
  RequestLog log_;       // I/O thread
};

}  // namespace

Status Complete(std::shared_ptr<ServedModel> model, CompletionCall call,
                std::shared_ptr<Exchange> exchange, std::shared_ptr<CompletionSink> sink,
                bool want_prefill) {
  return std::make_shared<Running>(std::move(model), std::move(exchange), std::move(sink))
      ->Start(std::move(call), want_prefill);
}

void CountRefused(const ServedModel& model, const Status& status) {
  if (Metrics* metrics = model.options().metrics; metrics != nullptr) {
    metrics->Refused(model.name(), WhyRefused(status));
  }
}

uint64_t CacheScope(const ServedModel& model, const Exchange& exchange, uint64_t salt) {
  constexpr int kSaltBits = 48;
  if (!model.options().scope_by_key) return salt;
  const auto key = static_cast<uint64_t>(exchange.request().key + 1);
  return key << kSaltBits | salt >> (64 - kSaltBits);
}

int HttpStatusOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
    case StatusCode::kTooLong:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kBusy:
      return 429;
    case StatusCode::kUnsupported:
      return 501;
    case StatusCode::kCancelled:
      return 499;
    case StatusCode::kCorrupt:
    case StatusCode::kIo:
    case StatusCode::kOutOfMemory:
      return 500;
  }
  return 500;
}

}  // namespace sluice
