#include "src/load/generator.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace sluice::load {
namespace {

namespace asio = boost::asio;
using std::chrono::duration;
using std::chrono::duration_cast;

constexpr auto kTick = std::chrono::milliseconds(50);
constexpr auto kLead = std::chrono::milliseconds(5);  // before the first request is due
constexpr auto kPause = std::chrono::milliseconds(100);

class Generator {
 public:
  Generator(asio::io_context& io, Client& client, const PromptSource& prompts,
            const RequestOptions& options, LoadRun run)
      : client_(client),
        prompts_(prompts),
        options_(options),
        run_(std::move(run)),
        due_timer_(io),
        tick_(io),
        io_(io) {}

  std::vector<LoadSample> Run() {
    begin_ = LoadClock::now();
    io_.restart();
    OnTick();
    Prepare();
    if (run_.open) {
      begin_ = LoadClock::now() + kLead;
      ScheduleNext();
    } else {
      for (size_t i = 0; i < run_.clients; ++i) SendNow(0);
    }
    EndIfDone();
    io_.run();
    return std::move(samples_);
  }

 private:
  struct Prepared {
    LoadRequest request;
    size_t prompt_tokens, output_tokens;
  };

  double Now() const { return duration<double>(LoadClock::now() - begin_).count(); }

  // Made before it is due, so that the making costs no latency.
  void Prepare() {
    const uint64_t index = run_.first_index + sent_;
    const LoadPrompt prompt = run_.warm_up ? prompts_.MakeWarmUp(index) : prompts_.Make(index);
    next_ = Prepared{MakeRequest(options_, prompt), prompt.tokens, prompt.output_tokens};
  }

  bool MaySend(double at_s) const {
    if (stopped_ || (run_.requests > 0 && sent_ >= run_.requests)) return false;
    return run_.duration_s <= 0 || at_s < run_.duration_s;
  }

  LoadSample& AddSample(double due_s) {
    LoadSample& sample = samples_.emplace_back();
    sample.index = run_.first_index + sent_++;
    sample.intended_s = due_s;
    return sample;
  }

  void SendNow(double due_s) {
    if (!MaySend(due_s)) return;
    if (!next_) Prepare();
    const size_t slot = samples_.size();
    LoadSample& sample = AddSample(due_s);
    sample.prompt_asked = next_->prompt_tokens;
    sample.output_asked = next_->output_tokens;
    const Prepared prepared = std::move(*next_);
    next_.reset();
    client_.Send(prepared.request, [this, slot](Reply reply) { OnReply(slot, std::move(reply)); });
  }

  void OnReply(size_t slot, Reply reply) {
    ++ended_;
    // First what somebody waits for, then the reading.
    const bool failed = !reply.error.empty() || reply.status != 200;
    if (run_.open) {
      SendWaiting();
    } else if (failed) {
      SendLater();
    } else {
      SendNow(Now());
    }
    LoadSample read = ReadAnswer(options_.dialect, begin_, reply);
    LoadSample& sample = samples_[slot];
    read.index = sample.index;
    read.intended_s = run_.open ? sample.intended_s : read.sent_s;
    read.prompt_asked = sample.prompt_asked;
    read.output_asked = sample.output_asked;
    sample = std::move(read);
    failed_ += !sample.ok() && !sample.unfinished();
    output_tokens_ += sample.ok() ? sample.output_tokens : 0;
    if (!next_ && MaySend(Now())) Prepare();
    EndIfDone();
  }

  void SendWaiting() {
    if (waiting_.empty()) return;
    const double due_s = waiting_.front();
    waiting_.pop_front();
    SendNow(due_s);
  }

  // A client of a closed loop whose request failed does not hammer the server.
  void SendLater() {
    if (!MaySend(Now())) return;
    ++pausing_;
    auto timer = std::make_shared<asio::steady_timer>(io_, kPause);
    timer->async_wait([this, timer](const boost::system::error_code&) {
      --pausing_;
      SendNow(Now());
      EndIfDone();
    });
  }

  void ScheduleNext() {
    const double due_s = run_.arrivals->Next();
    const bool enough = run_.requests > 0 && due_count_ >= run_.requests;
    no_more_due_ = std::isinf(due_s) || enough || !MaySend(due_s);
    if (no_more_due_) return;
    ++due_count_;
    due_timer_.expires_at(begin_ + duration_cast<LoadClock::duration>(duration<double>(due_s)));
    due_timer_.async_wait([this, due_s](const boost::system::error_code& error) {
      if (error) return;
      if (run_.clients > 0 && client_.running() >= run_.clients) {
        waiting_.push_back(due_s);
      } else {
        SendNow(due_s);
      }
      ScheduleNext();
      if (!next_ && !no_more_due_) Prepare();
      EndIfDone();
    });
  }

  void Stop() {
    stopped_ = true;
    no_more_due_ = true;
    due_timer_.cancel();
    // Due, never sent: they are not lost either.
    for (const double due_s : waiting_) {
      LoadSample& sample = AddSample(due_s);
      sample.sent_s = sample.end_s = Now();
      sample.error = "interrupted";
      ++ended_;
    }
    waiting_.clear();
    client_.CancelAll();
    EndIfDone();
  }

  void OnTick() {
    if (!stopped_ && run_.interrupted && run_.interrupted()) Stop();
    if (run_.progress) {
      run_.progress(
          {sent_, ended_, failed_, client_.running(), output_tokens_, std::max(0.0, Now())});
    }
    if (over_) return;
    tick_.expires_after(kTick);
    tick_.async_wait([this](const boost::system::error_code& error) {
      if (!error) OnTick();
    });
  }

  void EndIfDone() {
    if (over_ || ended_ < sent_ || pausing_ > 0 || !waiting_.empty()) return;
    if (run_.open && !no_more_due_) return;
    over_ = true;
    tick_.cancel();
  }

  Client& client_;
  const PromptSource& prompts_;
  const RequestOptions& options_;
  LoadRun run_;
  asio::steady_timer due_timer_, tick_;
  asio::io_context& io_;
  LoadClock::time_point begin_{};
  std::vector<LoadSample> samples_;
  std::optional<Prepared> next_;
  std::deque<double> waiting_;  // due, and held back by the limit of requests in flight
  size_t sent_ = 0, due_count_ = 0, ended_ = 0, failed_ = 0, pausing_ = 0;
  uint64_t output_tokens_ = 0;
  bool no_more_due_ = false, stopped_ = false, over_ = false;
};

}  // namespace

std::vector<LoadSample> RunLoad(asio::io_context& io, Client& client, const PromptSource& prompts,
                                const RequestOptions& options, LoadRun run) {
  return Generator(io, client, prompts, options, std::move(run)).Run();
}

}  // namespace sluice::load
