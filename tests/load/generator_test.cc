// Whole runs against a server that answers by a script.
#include "src/load/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

#include "src/load/probe.h"
#include "src/load/summary.h"
#include "tests/load/scripted_server.h"

namespace sluice::load {
namespace {

class LoadTest : public testing::Test {
 protected:
  // Probes the server, then runs.
  LoadSummary Run(const std::string& url, LoadRun run, ClientOptions options = {}) {
    Client client(io_, *ParseTarget(url), options);
    EXPECT_TRUE(client.Resolve().ok());
    const Result<ProbeResult> probe = Probe(client, std::nullopt, {});
    EXPECT_TRUE(probe.ok()) << probe.status().message();
    if (!probe.ok()) return {};
    probe_ = *probe;
    return RunProbed(client, std::move(run));
  }
  LoadSummary RunProbed(Client& client, LoadRun run) {
    PromptPlan plan;
    plan.prompt = *ParseLengths("", "20");
    plan.output = *ParseLengths("", "10");
    PromptSource prompts(plan);
    prompts.set_form(probe_.form);
    samples_ = RunLoad(io_, client, prompts, probe_.request, std::move(run));
    return Summarise(samples_, {});
  }
  static LoadRun Closed(size_t clients, size_t requests) {
    LoadRun run;
    run.clients = clients;
    run.requests = requests;
    return run;
  }
  static LoadRun Open(double rate, size_t requests, size_t most_in_flight = 0) {
    LoadRun run;
    run.open = true;
    run.clients = most_in_flight;
    run.requests = requests;
    run.arrivals.emplace(rate, std::numeric_limits<double>::infinity(), 1);
    return run;
  }

  boost::asio::io_context io_{1};
  ProbeResult probe_;
  std::vector<LoadSample> samples_;
};

TEST_F(LoadTest, DelaysOfAServerAreMeasured) {
  ScriptedServer server(OpenAiScript([] { return Completion(50, 10, 10); }));
  const LoadSummary s = Run(server.url(), Closed(4, 40));
  EXPECT_EQ(probe_.request.model, "scripted");
  EXPECT_TRUE(probe_.form.ids);
  EXPECT_EQ(s.ok, 40u);
  EXPECT_EQ(s.failed, 0u);
  EXPECT_TRUE(s.counted);
  EXPECT_EQ(s.output_tokens.mean, 10);
  EXPECT_EQ(s.prompt_tokens.mean, 7);
  EXPECT_EQ(s.prompt_asked, 20);
  EXPECT_EQ(s.itl.count, 40u * 9);
  EXPECT_GE(s.ttft.least, 0.050);  // cannot be sooner
  EXPECT_LT(s.ttft.p50, 0.100);
  EXPECT_NEAR(s.tpot.p50, 0.010, 0.004);
  EXPECT_NEAR(s.itl.p50, 0.010, 0.004);
  EXPECT_GE(s.e2e.least, 0.140);
  EXPECT_LT(s.e2e.p50, 0.250);
  EXPECT_EQ(s.most_running, 4u);
  EXPECT_LE(server.connections(), 5u);  // kept: the probe's and three more
}

TEST_F(LoadTest, AnOpenLoopSendsWhenRequestsAreDue) {
  ScriptedServer server(OpenAiScript([] { return Completion(300, 0, 1); }));
  const LoadSummary s = Run(server.url(), Open(100, 50));
  EXPECT_EQ(s.ok, 50u);
  EXPECT_NEAR(s.offered, 100, 0.01);
  EXPECT_GT(s.most_running, 20u);  // it waits for no answer
  EXPECT_LT(s.send_lag.p50, 0.020);
  for (size_t i = 0; i < samples_.size(); ++i) {
    EXPECT_NEAR(samples_[i].intended_s, 0.01 * static_cast<double>(i), 1e-9);
    EXPECT_GE(samples_[i].sent_s, samples_[i].intended_s);
  }
}

// A server that serves one at a time and stops for a second in the middle. One client in a closed
// loop sees a single slow answer; requests that were due meanwhile waited, and an open loop says
// so.
TEST_F(LoadTest, AStallIsNotOmitted) {
  std::mutex one_at_a_time;
  std::atomic<int> served{0};
  const auto script = OpenAiScript([&] {
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    if (++served == 40) std::this_thread::sleep_for(std::chrono::seconds(1));
    return Completion(0, 0, 1);
  });
  {
    ScriptedServer server(script);
    const LoadSummary closed = Run(server.url(), Closed(1, 100));
    EXPECT_EQ(closed.ok, 100u);
    EXPECT_GE(closed.e2e.most, 1);
    EXPECT_LT(closed.e2e.p90, 0.5);
  }
  for (const size_t most_in_flight : {0, 2}) {
    served = 0;
    ScriptedServer server(script);
    const LoadSummary open = Run(server.url(), Open(50, 100, most_in_flight));
    EXPECT_EQ(open.ok, 100u);
    EXPECT_GE(open.e2e.p99, 0.9);
    EXPECT_GE(open.e2e.p90, 0.6);  // of a second, 50 were due in turn
    if (most_in_flight == 2) {
      // Held back by the limit: as seen from sending, most of it would be hidden.
      EXPECT_LT(open.e2e_sent.p90, 0.5);
      EXPECT_GE(open.send_lag.p90, 0.5);
    }
  }
}

TEST_F(LoadTest, ErrorsAreCountedByKind) {
  std::atomic<int> n{0};
  ScriptedServer server(OpenAiScript([&] {
    ScriptedAnswer answer = Completion(0, 1, 5);
    switch (n++ % 6) {
      case 0:
        return JsonAnswer(R"({"error":{"message":"the queue is full"}})", 429);
      case 1:
        return JsonAnswer("oops", 500);
      case 2:
        answer.cut = true;
        answer.parts.pop_back();
        return answer;
      case 3:
        answer.instead = "garbage\r\n\r\n";
        return answer;
      case 4:
        answer.parts[2].bytes = "data: {\"choices\n\n";
        return answer;
    }
    return answer;
  }));
  const LoadSummary s = Run(server.url(), Closed(3, 60));
  EXPECT_EQ(s.requests, 60u);
  EXPECT_EQ(s.ok, 10u);
  EXPECT_EQ(s.failed, 50u);
  for (const char* kind : {"http 429", "http 500", "cut off", "not HTTP", "not understood"}) {
    ASSERT_TRUE(s.errors.contains(kind)) << kind;
    EXPECT_EQ(s.errors.at(kind).count, 10u) << kind;
  }
  EXPECT_EQ(s.errors.at("http 429").first, "the queue is full");
}

TEST_F(LoadTest, ARequestMayTakeSoLong) {
  ScriptedServer server(OpenAiScript([] { return Completion(60000, 0, 1); }));
  ClientOptions options;
  options.timeout_s = 0.5;
  const LoadSummary s = Run(server.url(), Closed(2, 4), options);
  EXPECT_EQ(s.errors.at("timeout").count, 4u);
}

TEST_F(LoadTest, AnIdleConnectionThatTheServerClosedIsReplaced) {
  ScriptedServer server(OpenAiScript([] {
    ScriptedAnswer answer = Completion(0, 0, 2);
    answer.close = true;
    return answer;
  }));
  const LoadSummary s = Run(server.url(), Closed(1, 20));
  EXPECT_EQ(s.ok, 20u);
  EXPECT_GE(server.connections(), 20u);
}

TEST_F(LoadTest, AnInterruptKeepsWhatWasMeasured) {
  std::atomic<int> n{0};
  ScriptedServer server(OpenAiScript([&] { return Completion(n++ < 10 ? 0 : 900, 0, 1); }));
  LoadRun run = Closed(1, 1000);
  run.interrupted = [&] { return n > 10; };
  const LoadSummary s = Run(server.url(), std::move(run));
  EXPECT_EQ(s.ok, 10u);
  EXPECT_EQ(s.failed, 0u);
  EXPECT_EQ(s.unfinished, 1u);
}

TEST_F(LoadTest, TheTimeOfARunEndsIt) {
  ScriptedServer server(OpenAiScript([] { return Completion(20, 0, 1); }));
  LoadRun run = Closed(2, 0);
  run.duration_s = 0.5;
  const LoadSummary closed = Run(server.url(), std::move(run));
  EXPECT_GE(closed.ok, 2u);
  for (const LoadSample& sample : samples_) EXPECT_LT(sample.sent_s, 0.6);
  run = Open(50, 0);
  run.duration_s = 0.5;
  const LoadSummary open = Run(server.url(), std::move(run));
  EXPECT_EQ(open.ok, 25u);
}

TEST_F(LoadTest, AServerThatTakesOnlyWords) {
  ScriptedServer server([](const std::string& path, const std::string& body) {
    if (path == "/v1/models") return JsonAnswer(R"({"data":[{"id":"w"}]})");
    if (body.find("ignore_eos") != std::string::npos) {
      return JsonAnswer(R"({"error":{"message":"unknown field"}})", 400);
    }
    const auto words = 1 + std::count(body.begin(), body.end(), ' ');
    return Completion(0, 0, 3, static_cast<size_t>(10 + 2 * words));
  });
  const LoadSummary s = Run(server.url(), Closed(1, 5));
  EXPECT_FALSE(probe_.form.ids);
  EXPECT_EQ(probe_.notes.size(), 1u);
  EXPECT_NEAR(probe_.form.tokens_per_word, 2, 0.01);
  EXPECT_EQ(s.ok, 5u);
  EXPECT_NEAR(s.prompt_tokens.mean, 20, 1.1);
}

TEST_F(LoadTest, NobodyThere) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);  // bound, and nobody listens
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  Client client(io_, *ParseTarget(url), {});
  ASSERT_TRUE(client.Resolve().ok());
  const Result<ProbeResult> probe = Probe(client, std::nullopt, {});
  ASSERT_FALSE(probe.ok());
  EXPECT_NE(probe.status().message().find("is a server running there"), std::string::npos);
  const LoadSummary s = RunProbed(client, Closed(1, 3));
  EXPECT_EQ(s.errors.at("refused").count, 3u);
  close(fd);
}

}  // namespace
}  // namespace sluice::load
