// llama-server's endpoints from body to answer, over a tiny model and its engine.
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "src/server/dialects.h"
#include "tests/server/routes.h"
#include "tests/server/running_server.h"
#include "tests/server/tiny_served.h"

namespace sluice {
namespace {

namespace json = boost::json;

class LlamaRoutesTest : public testing::Test {
 protected:
  LlamaRoutesTest() : served_(kTinyTemplate) {
    HostOptions options;
    options.model = served_.options();
    host_ = std::make_unique<ModelHost>(std::move(options), served_.model());
    context_.host = host_.get();
    context_.version = "1.2.3";
    context_.draining = [this] { return draining_; };
    routes_ = LlamaRoutes(context_);
  }
  std::shared_ptr<RecordedExchange> Post(const char* path, const std::string& body) {
    return CallRoute(routes_, "POST", path, body);
  }
  std::shared_ptr<RecordedExchange> Get(const char* path, HttpHeaders query = {}) {
    return CallRoute(routes_, "GET", path, "", std::move(query));
  }

  TinyServed served_;
  bool draining_ = false;
  std::unique_ptr<ModelHost> host_;
  ServerContext context_;
  std::vector<Route> routes_;
};

constexpr char kGreedy[] = R"("temperature": 0, "n_predict": 6, "ignore_eos": true)";

TEST_F(LlamaRoutesTest, CompletionStreamsAndTheWholeIsTheSame) {
  const std::string body = std::string(R"({"prompt": "hi", "return_tokens": true, )") + kGreedy;
  const json::object whole = Post("/completion", body + "}")->json().as_object();
  EXPECT_EQ(whole.at("stop_type"), "limit");
  EXPECT_EQ(whole.at("tokens_predicted"), 6);
  EXPECT_EQ(whole.at("tokens").as_array().size(), 6u);
  EXPECT_EQ(whole.at("generation_settings").at("n_predict"), 6);
  const auto stream = Post("/completions", body + R"(, "stream": true, "return_progress": true})");
  std::string content;
  json::array tokens;
  bool progress = false;
  const std::vector<json::object> events = stream->lines("data: ", "\n\n");
  ASSERT_GE(events.size(), 2u);
  for (const json::object& event : events) {
    content += std::string(event.at("content").as_string());
    const json::array& more = event.at("tokens").as_array();
    tokens.insert(tokens.end(), more.begin(), more.end());
    progress = progress || event.contains("prompt_progress");
  }
  EXPECT_EQ(content, std::string(whole.at("content").as_string()));
  EXPECT_EQ(tokens, whole.at("tokens").as_array());
  EXPECT_TRUE(progress);
  EXPECT_EQ(events.back().at("stop"), true);
}

TEST_F(LlamaRoutesTest, SeveralPromptsUnderAGrammar) {
  const auto exchange = Post(
      "/completion", R"({"prompt": ["ab", "cd"], "n_predict": 20, "grammar": "root ::= \"qqz\""})");
  const json::array replies = exchange->json().as_array();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].at("content"), "qqz");
  EXPECT_EQ(replies[1].at("content"), "qqz");
  EXPECT_EQ(replies[0].at("stop_type"), "eos");
}

TEST_F(LlamaRoutesTest, TheDeadlineEndsAnAnswer) {
  // The grammar has no end before its last letter, where the answer's would be "eos". Alternatives
  // of every token, so that 60 of them take longer than the deadline on any machine.
  const json::object reply =
      Post("/completion", R"({"prompt": "a", "t_max_predict_ms": 1, "n_predict": 100,
                              "n_probs": 100,
                              "grammar": "root ::= \"\\n\" [a-z]{60}"})")
          ->json()
          .as_object();
  EXPECT_EQ(reply.at("stop_type"), "limit");
}

TEST_F(LlamaRoutesTest, NothingToPredict) {
  const json::object reply =
      Post("/completion", R"({"prompt": "abc", "n_predict": 0})")->json().as_object();
  EXPECT_EQ(reply.at("content"), "");
  EXPECT_EQ(reply.at("tokens_predicted"), 0);
  EXPECT_EQ(reply.at("stop_type"), "limit");
}

TEST_F(LlamaRoutesTest, Errors) {
  EXPECT_EQ(Post("/completion", R"({"prompt": "a", "n_predict": "x"})")->status(), 400);
  const auto unknown = Post("/completion", R"({"prompt": "a", "model": "nope"})");
  EXPECT_EQ(unknown->status(), 404);
  EXPECT_EQ(unknown->json().at("error").at("code"), 404);
  EXPECT_EQ(unknown->json().at("error").at("type"), "not_found_error");
  const auto too_long =
      Post("/completion", R"({"prompt": ")" + std::string(500, 'q') + R"(", "stream": true})");
  EXPECT_EQ(too_long->status(), 400);
  const json::object error = too_long->json().at("error").as_object();
  EXPECT_EQ(error.at("code"), 400);
  EXPECT_EQ(error.at("type"), "exceed_context_size_error");
  EXPECT_GT(error.at("n_prompt_tokens").to_number<int>(), 128);
  EXPECT_EQ(error.at("n_ctx"), 128);
  EXPECT_TRUE(error.at("message").is_string());
  EXPECT_EQ(Post("/infill", R"({"input_prefix": "a"})")->status(), 501);
  EXPECT_EQ(Post("/slots/{id}", "{}")->status(), 501);
}

TEST_F(LlamaRoutesTest, PropsAndSlots) {
  const json::object props = Get("/props")->json().as_object();
  EXPECT_EQ(props.at("total_slots"), 1);
  EXPECT_EQ(props.at("default_generation_settings").at("n_ctx"), 128);
  EXPECT_EQ(props.at("default_generation_settings").at("params").at("top_k"), 40);
  EXPECT_EQ(props.at("chat_template"), kTinyTemplate);
  EXPECT_EQ(props.at("model_path"), "tiny.gguf");
  EXPECT_EQ(props.at("bos_token"), "<s>");
  const json::array slots = Get("/slots")->json().as_array();
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_EQ(slots[0].at("is_processing"), false);
  EXPECT_EQ(Get("/slots", {{"fail_on_no_slot", "1"}})->status(), 200);
  EXPECT_EQ(Get("/lora-adapters")->json(), json::array());
}

// Its client takes the third chunk when the test says so; the engine's thread waits for that.
class HeldExchange : public RecordedExchange {
 public:
  using RecordedExchange::RecordedExchange;
  void Write(std::string chunk) override {
    RecordedExchange::Write(std::move(chunk));
    if (++chunks_ != 3) return;
    held_.set_value();
    release_.get_future().wait();
  }
  void WaitUntilHeld() { held_.get_future().wait(); }
  void Release() { release_.set_value(); }

 private:
  int chunks_ = 0;
  std::promise<void> held_, release_;
};

TEST_F(LlamaRoutesTest, SlotsShowRequestsAndTheyCanBeCancelled) {
  constexpr char kLong[] =
      R"({"prompt": "hi", "n_predict": 90, "ignore_eos": true, "stream": true})";
  const auto start = [&](const std::shared_ptr<RecordedExchange>& exchange, const char* id) {
    exchange->mutable_request().request_id = id;
    FindRoute(routes_, "POST", "/completion")->handler(exchange);
  };
  const auto cancel = [&](const char* id) {
    const auto exchange = std::make_shared<RecordedExchange>();
    exchange->mutable_request().captures = {id};
    FindRoute(routes_, "POST", "/v1/requests/{id}/cancel")->handler(exchange);
    return exchange;
  };
  const auto running = std::make_shared<HeldExchange>(kLong);
  const auto waiting = std::make_shared<RecordedExchange>(kLong);
  start(running, "one");
  running->WaitUntilHeld();
  start(waiting, "two");

  const json::array slots = Get("/slots")->json().as_array();
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].at("id"), 0);
  EXPECT_EQ(slots[0].at("is_processing"), true);
  EXPECT_EQ(slots[0].at("next_token").at("has_next_token"), true);
  const json::object& one = slots[0].at("sluice").as_object();
  EXPECT_EQ(one.at("request_id"), "one");
  EXPECT_EQ(one.at("phase"), "decode");
  EXPECT_EQ(one.at("processed_tokens"), one.at("prompt_tokens"));
  const auto generated = one.at("generated_tokens").to_number<int64_t>();
  EXPECT_GT(generated, 0);
  EXPECT_EQ(slots[0].at("next_token").at("n_decoded"), generated);
  EXPECT_EQ(slots[0].at("next_token").at("n_remain"), 90 - generated);
  for (const char* key : {"queue_s", "prefill_s", "decode_s", "prefill_tok_s", "decode_tok_s",
                          "ceiling_ratio", "cached_tokens"}) {
    EXPECT_TRUE(one.at(key).is_number()) << key;
  }
  EXPECT_EQ(slots[1].at("id"), -1);
  EXPECT_EQ(slots[1].at("is_processing"), false);
  EXPECT_EQ(slots[1].at("sluice").at("request_id"), "two");
  EXPECT_EQ(slots[1].at("sluice").at("phase"), "queued");
  EXPECT_EQ(Get("/slots", {{"fail_on_no_slot", "1"}})->status(), 503);

  EXPECT_EQ(cancel("three")->status(), 404);
  EXPECT_EQ(cancel("two")->json(), (json::object{{"cancelled", 1}}));
  EXPECT_EQ(cancel("one")->json(), (json::object{{"cancelled", 1}}));
  running->Release();
  ASSERT_TRUE(running->WaitForEnd());
  ASSERT_TRUE(waiting->WaitForEnd());
  const json::object last = running->lines("data: ", "\n\n").back();
  EXPECT_EQ(last.at("stop"), true);
  EXPECT_EQ(last.at("stop_type"), "none");
  EXPECT_EQ(last.at("tokens_predicted"), generated + 1);  // the step that ran was its last
  EXPECT_EQ(waiting->lines("data: ", "\n\n").back().at("tokens_predicted"), 0);
}

TEST_F(LlamaRoutesTest, ACancelNeedsTheKey) {
  const std::string none = "POST /v1/requests/a%2Fb/cancel HTTP/1.1\r\nHost: x\r\n";
  const std::string rest = "Content-Length: 0\r\n\r\n";
  {
    RunningServer open({}, LlamaRoutes(context_));
    EXPECT_EQ(open.Ask(none + rest).status, 404);
  }
  HttpOptions options;
  options.api_keys = {"secret"};
  RunningServer locked(options, LlamaRoutes(context_));
  EXPECT_EQ(locked.Ask(none + rest).status, 401);
  EXPECT_EQ(locked.Ask(none + "Authorization: Bearer other\r\n" + rest).status, 401);
  EXPECT_EQ(locked.Ask(none + "Authorization: Bearer secret\r\n" + rest).status, 404);
  EXPECT_EQ(locked.Ask("GET /v1/requests/a/cancel HTTP/1.1\r\nHost: x\r\n\r\n").status, 405);
}

TEST_F(LlamaRoutesTest, AppliesTheTemplate) {
  const auto exchange =
      Post("/apply-template", R"({"messages": [{"role": "user", "content": "hi"}]})");
  EXPECT_EQ(exchange->json().at("prompt"), "[user]hi[assistant]");
  EXPECT_EQ(Post("/apply-template", "{}")->status(), 400);
}

TEST_F(LlamaRoutesTest, HealthUntilTheServerGoes) {
  EXPECT_EQ(Get("/health")->json(), (json::object{{"status", "ok"}}));
  EXPECT_EQ(Get("/v1/health")->status(), 200);
  EXPECT_EQ(Get("/ready")->status(), 200);
  EXPECT_EQ(FindRoute(routes_, "GET", "/health")->access, Access::kOpen);
  EXPECT_TRUE(FindRoute(routes_, "GET", "/health")->quick);
  draining_ = true;
  EXPECT_EQ(Get("/health")->status(), 503);
  EXPECT_EQ(Get("/ready")->status(), 503);
}

}  // namespace
}  // namespace sluice
