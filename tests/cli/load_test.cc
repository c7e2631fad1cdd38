// sluice load as a user runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>

#include "tests/base/temp_folder.h"
#include "tests/cli/run_sluice.h"
#include "tests/cli/served_process.h"
#include "tests/load/scripted_server.h"

namespace sluice {
namespace {

namespace json = boost::json;

std::string Contents(const std::string& path) {
  const std::vector<uint8_t> bytes = ReadFile(path);
  return {bytes.begin(), bytes.end()};
}

TEST(LoadCommandTest, MeasuresAndWritesEveryForm) {
  ScriptedServer server(OpenAiScript([] { return Completion(20, 2, 5); }));
  const TempFolder folder;
  const auto files = [&](const std::string& name) { return folder.path(name); };
  const ProgramResult run = RunSluice(
      {"load", server.url() + "/v1", "--rate", "50", "--requests", "30", "--slo", "ttft=5s", "-o",
       files("a.json"), "-o", files("a.csv"), "-o", files("a.html"), "-o", files("a.svg")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* text : {"openai, model scripted", "sent as ids", "50 req/s, open loop",
                           "30 answered", "TTFT", "from sending", "TPOT", "ITL", "E2E", "p99.9",
                           "100.0 % of the requests", "as the server counts"}) {
    EXPECT_NE(run.out.find(text), std::string::npos) << text << "\n" << run.out;
  }
  EXPECT_EQ(run.out.find('\x1b'), std::string::npos);
  const json::value result = json::parse(Contents(files("a.json")));
  EXPECT_EQ(result.at("steps").at(0).at("summary").at("ok"), 30);
  EXPECT_EQ(result.at("steps").at(0).at("requests").as_array().size(), 30u);
  const std::string csv = Contents(files("a.csv"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 31);
  EXPECT_TRUE(Contents(files("a.svg")).starts_with("<svg"));
  const std::string html = Contents(files("a.html"));
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);

  const ProgramResult compared = RunSluice({"load", "--compare", files("a.json"), files("a.json")});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_NE(compared.out.find("noise"), std::string::npos) << compared.out;
  EXPECT_EQ(compared.out.find("B is"), std::string::npos) << compared.out;
}

TEST(LoadCommandTest, StepsAreATable) {
  ScriptedServer server(OpenAiScript([] { return Completion(5, 1, 3); }));
  const ProgramResult run = RunSluice({"load", server.url(), "--concurrency", "1,2,4", "-n", "12"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* text : {"1 client ", "2 clients", "4 clients"}) {
    EXPECT_NE(run.out.find(text), std::string::npos) << run.out;
  }
  const ProgramResult as_json =
      RunSluice({"load", server.url(), "--rate", "inf", "-n", "12", "--json"});
  EXPECT_EQ(json::parse(as_json.out).at("steps").at(0).at("rate"), "inf") << as_json.err;
}

TEST(LoadCommandTest, ASweepNamesTheKnee) {
  std::mutex one_at_a_time;  // at most 50 answers a second
  ScriptedServer server(OpenAiScript([&] {
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return Completion(0, 0, 1);
  }));
  const ProgramResult run = RunSluice({"load", server.url(), "--sweep", "--sweep-factor", "4",
                                       "--rate", "8", "--duration", "1.5", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json::value knee = json::parse(run.out).at("knee");
  EXPECT_GE(knee.at("rate").to_number<double>(), 8);
  EXPECT_LE(knee.at("rate").to_number<double>(), 64);
  EXPECT_NE(knee.at("reason").as_string().find("a queue grows"), std::string::npos);
}

TEST(LoadCommandTest, ASweepOfFewRequestsEndsWhereItCannotTell) {
  ScriptedServer server(OpenAiScript([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return Completion(0, 0, 1);
  }));
  const ProgramResult run = RunSluice(
      {"load", server.url(), "--sweep", "--sweep-factor", "4", "--rate", "8", "-n", "4", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json::value result = json::parse(run.out);
  EXPECT_LE(result.at("steps").as_array().size(), 8u) << run.out;
  EXPECT_NE(result.at("knee").at("reason").as_string().find("before one is answered"),
            std::string::npos);
}

TEST(LoadCommandTest, AnInterruptedWarmUpIsSaid) {
  // The first request of the warm-up brings the signal.
  std::atomic<int> asked{0};
  ScriptedServer server(OpenAiScript([&] {
    if (++asked == 1 && WaitUntil([] { return running_sluice != 0; })) {
      kill(running_sluice, SIGINT);
    }
    return Completion(5, 1, 3);
  }));
  const ProgramResult run = RunSluice({"load", server.url(), "-n", "5", "--warmup", "3", "--json"});
  EXPECT_TRUE(run.IsOneLineError(130)) << run.exit_code << run.out << run.err;
  EXPECT_NE(run.err.find("warming up"), std::string::npos) << run.err;
}

TEST(LoadCommandTest, ErrorsAreOneLine) {
  EXPECT_TRUE(RunSluice({"load"}).IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"load", "ftp://x"}).IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"load", "http://127.0.0.1:1"}).IsOneLineError(1));
  EXPECT_TRUE(RunSluice({"load", "http://127.0.0.1:1", "--rate", "0"}).IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"load", "http://127.0.0.1:1", "--slo", "x"}).IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"load", "http://127.0.0.1:1", "-o", "x.pdf"}).IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"load", "--compare", "/nowhere", "/nowhere"}).IsOneLineError(1));
  ScriptedServer other(
      [](const std::string&, const std::string&) { return JsonAnswer("<html>hello</html>", 404); });
  const ProgramResult run = RunSluice({"load", other.url()});
  EXPECT_TRUE(run.IsOneLineError(1)) << run.err;
  EXPECT_NE(run.err.find("--dialect"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace sluice
