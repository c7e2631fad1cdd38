// What is said of requests while they run and wait, and cancelling them by their client's name.
#include "src/engine/live_requests.h"

#include <gtest/gtest.h>

#include <future>

#include "src/engine/engine_service.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

Request Named(const char* name, std::vector<int32_t> prompt, size_t max_tokens) {
  Request request;
  request.request_id = name;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

class LiveRequestsTest : public testing::Test {
 protected:
  // One runs, others wait.
  void StartService() {
    ServiceOptions options;
    options.runner = TestOptions(128);
    Result<std::unique_ptr<EngineService>> service =
        EngineService::Create(tiny_.Write(folder_.path("m.gguf")), options);
    ASSERT_TRUE(service.ok()) << service.status().message();
    service_ = *std::move(service);
  }
  void StartEngine(size_t positions) {
    runner_ = MakeRunner(tiny_.Write(folder_.path("m.gguf")), TestOptions(128));
    RunnerOptions options = TestOptions(128);
    options.kv_bytes = runner_->PagesOf(positions) * runner_->pool().page_bytes();
    runner_ = MakeRunner(folder_.path("m.gguf"), options);
    tokenizer_ = *Tokenizer::Load(runner_->model().gguf());
    EngineOptions engine;
    engine.max_sequences = 2;
    engine_ = std::make_unique<Engine>(*runner_, *tokenizer_, engine);
  }
  static LiveRequest Only(const LiveRequests& live, double read_bytes_per_s = 0) {
    const std::vector<LiveRequest> all = live.List(read_bytes_per_s, {});
    return all.size() == 1 ? all[0] : LiveRequest();
  }

  TempFolder folder_;
  TinyModel tiny_;
  std::unique_ptr<EngineService> service_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(LiveRequestsTest, RunsWaitsAndIsCancelledByName) {
  StartService();
  // The engine's thread stands in the callback of the third token while the test looks.
  std::promise<void> there, go_on;
  size_t tokens = 0;
  Request first = Named("a", tiny_.Tokens(5), 100);
  first.on_token = [&](const TokenEvent& event) {
    if (event.id < 0 || ++tokens != 3) return;
    there.set_value();
    go_on.get_future().wait();
  };
  std::promise<FinishReason> first_end, second_end;
  first.on_finish = [&](const Sequence& s) { first_end.set_value(s.finish_reason()); };
  ASSERT_TRUE(service_->Submit({first}).ok());
  there.get_future().wait();
  Request second = Named("b", tiny_.Tokens(7, 1), 4);
  Request third = Named("a", tiny_.Tokens(3, 2), SIZE_MAX);
  second.on_finish = [&](const Sequence& s) { second_end.set_value(s.finish_reason()); };
  ASSERT_TRUE(service_->Submit({second}).ok());
  ASSERT_TRUE(service_->Submit({third}).ok());

  const std::vector<LiveRequest> live = service_->requests();
  ASSERT_EQ(live.size(), 3u);
  EXPECT_EQ(live[0].request_id, "a");
  EXPECT_EQ(live[0].phase, RequestPhase::kDecode);
  EXPECT_EQ(live[0].prompt_tokens, 5u);
  EXPECT_EQ(live[0].processed_tokens, 5u);
  EXPECT_EQ(live[0].generated_tokens, 2u);  // as the last whole step left it
  EXPECT_EQ(live[0].max_tokens, 100u);
  EXPECT_GT(live[0].prefill_tok_s, 0);
  EXPECT_GT(live[0].decode_tok_s, 0);
  EXPECT_EQ(live[1].request_id, "b");
  EXPECT_EQ(live[1].phase, RequestPhase::kQueued);
  EXPECT_EQ(live[1].prompt_tokens, 7u);
  EXPECT_EQ(live[1].processed_tokens, 0u);
  EXPECT_GT(live[1].queue_s, 0);
  EXPECT_EQ(live[2].max_tokens, SIZE_MAX);

  EXPECT_EQ(service_->CancelRequest("c"), 0u);
  EXPECT_EQ(service_->CancelRequest("a"), 2u);  // the one that runs and the one that waits
  go_on.set_value();
  EXPECT_EQ(first_end.get_future().get(), FinishReason::kCancelled);
  EXPECT_EQ(tokens, 3u);
  EXPECT_EQ(second_end.get_future().get(), FinishReason::kLength);
  service_->Stop();
  EXPECT_TRUE(service_->requests().empty());
  EXPECT_EQ(service_->CancelRequest("a"), 0u);
}

TEST_F(LiveRequestsTest, SpeedsAreOfTheLastHalfSecond) {
  StartEngine(128);
  const Request request = Named("a", tiny_.Tokens(5), 100);
  Sequence* sequence = *engine_->Add(request);
  LiveRequests live;
  live.Add(7, request, {});
  SequenceStats& stats = sequence->mutable_stats();
  const auto decode = [&](size_t passes, double seconds, uint64_t bytes) {
    stats.decode_passes += passes;
    stats.decode_s += seconds;
    stats.decode_bytes += bytes;
    live.Update(7, *sequence);
  };
  decode(1, 0.1, 1000);
  EXPECT_DOUBLE_EQ(Only(live).decode_tok_s, 10);  // the first window fills
  decode(9, 0.4, 1000);
  EXPECT_DOUBLE_EQ(Only(live).decode_tok_s, 20);
  decode(2, 0.25, 500);
  EXPECT_DOUBLE_EQ(Only(live).decode_tok_s, 20);  // until the next is full
  decode(2, 0.25, 500);
  EXPECT_DOUBLE_EQ(Only(live).decode_tok_s, 8);
  EXPECT_DOUBLE_EQ(Only(live, 4000).ceiling_ratio, 0.5);
  EXPECT_DOUBLE_EQ(Only(live, 0).ceiling_ratio, 0);  // no ceiling is known
  decode(1, 2, 8000);                                // a token that takes longer is a window
  EXPECT_DOUBLE_EQ(Only(live).decode_tok_s, 0.5);
  EXPECT_DOUBLE_EQ(Only(live, 4000).ceiling_ratio, 1);
  live.Update(8, *sequence);
  live.Remove(8);
  EXPECT_EQ(Only(live).request_id, "a");
  live.Remove(7);
  EXPECT_TRUE(live.List(0, {}).empty());
}

TEST_F(LiveRequestsTest, WhoIsPutOffIsQueuedAgain) {
  StartEngine(128);  // room for one of the two
  std::vector<Sequence*> sequences;
  LiveRequests live;
  for (uint64_t id : {1, 2}) {
    const Request request = Named("a", tiny_.Tokens(40, id), 60);
    sequences.push_back(*engine_->Add(request));
    live.Add(id, request, {});
  }
  RequestPhase last = RequestPhase::kQueued;
  bool put_off = false;
  while (!sequences[0]->finished() || !sequences[1]->finished()) {
    ASSERT_TRUE(engine_->Step().ok());
    for (uint64_t id : {1, 2}) live.Update(id, *sequences[id - 1]);
    const RequestPhase phase = live.List(0, {})[1].phase;
    put_off = put_off || (last == RequestPhase::kDecode && phase == RequestPhase::kQueued);
    last = phase;
  }
  EXPECT_EQ(sequences[1]->stats().preemptions > 0, put_off);
  EXPECT_TRUE(put_off);
}

}  // namespace
}  // namespace sluice
