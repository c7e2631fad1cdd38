// `sluice top` on real terminals, which tmux plays, before a running `sluice serve`.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/base/temp_folder.h"
#include "tests/cli/loopback_server.h"
#include "tests/cli/run_sluice.h"
#include "tests/cli/served_process.h"
#include "tests/cli/terminal.h"
#include "tests/model/tiny_model.h"
#include "tests/server/raw_client.h"

namespace sluice {
namespace {

class TopTmuxTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Terminal::Works()) GTEST_SKIP() << "no tmux 3 here";
    TinyShape shape = TinyLlama();
    shape.context = 100000;  // whose end a request does not reach
    model_ = TinyModel(shape).Write(folder_.path("tiny.gguf"));
    Serve(0);
  }
  void Serve(int port) {
    server_ = std::make_unique<ServedProcess>(
        model_,
        std::vector<std::string>{"--np", "1", "-t", "1", "--weights", "gguf", "--no-access-log",
                                 "--api-key", "secret", "-c", "100000"},
        port);
    ASSERT_NE(server_->port(), 0) << server_->log();
  }
  std::string Top(const std::string& environment = "LC_ALL=C.UTF-8") const {
    return "env -u NO_COLOR " + environment + " " + SLUICE_BINARY + " top " + server_->url() +
           " --api-key secret --interval 0.2";
  }
  // An answer that only its cancelling ends: the tiny model would take minutes for so many tokens.
  std::unique_ptr<RawClient> Ask(const std::string& id) const {
    const std::string body = R"({"prompt": "once", "n_predict": 90000, "ignore_eos": true})";
    auto client = std::make_unique<RawClient>(static_cast<uint16_t>(server_->port()));
    EXPECT_TRUE(client->Send("POST /completion HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + id +
                             "\r\nAuthorization: Bearer secret\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body));
    return client;
  }

  TempFolder folder_;
  std::string model_;
  std::unique_ptr<ServedProcess> server_;
};

TEST_F(TopTmuxTest, DrawsResizesAndCancels) {
  // Two connections are read in any order: the second is asked when the first has the slot.
  const auto first = Ask("the-first");
  const Terminal terminal(80, 24, Top());
  ASSERT_TRUE(terminal.Shows("decode  the-first")) << terminal.Text();
  const auto second = Ask("the-second");
  ASSERT_TRUE(terminal.Shows("the-second")) << terminal.Text();
  // Metrics and slots are two answers, and a first one may still know nothing of the requests.
  for (const char* said : {"1 running", "1 waiting", "sluice top", "PHASE", "TOK/S", "CEILING",
                           "queued", "KV pool", "faults", "quit"}) {
    EXPECT_TRUE(terminal.Shows(said)) << said << "\n" << terminal.Text();
  }
  std::string text = terminal.Text();
  EXPECT_EQ(text.find("MODEL"), std::string::npos);
  EXPECT_NE(terminal.Codes().find("\x1b[32m"), std::string::npos) << "nothing is green";

  terminal.Resize(200, 50);
  ASSERT_TRUE(terminal.Shows("MODEL")) << terminal.Text();
  text = terminal.Text();
  EXPECT_GT(Widest(text), 100u) << text;
  terminal.Resize(38, 8);
  ASSERT_TRUE(terminal.Shows("at least 40x10")) << terminal.Text();
  terminal.Resize(60, 20);
  ASSERT_TRUE(terminal.Shows("PHASE")) << terminal.Text();
  EXPECT_LE(Widest(terminal.Text()), 60u);

  terminal.Press("h");
  ASSERT_TRUE(terminal.Shows("up, down scroll")) << terminal.Text();
  terminal.Press("End");
  ASSERT_TRUE(terminal.Shows("KV pool")) << terminal.Text();
  terminal.Press("q");

  terminal.Press("Enter");
  ASSERT_TRUE(terminal.Shows("of 90000 tokens")) << terminal.Text();
  terminal.Press("Escape");
  ASSERT_TRUE(terminal.Shows("the-second")) << terminal.Text();
  terminal.Press("k");
  ASSERT_TRUE(terminal.Shows("cancel the-first? y/n")) << terminal.Text();
  terminal.Press("y");
  ASSERT_TRUE(terminal.Shows("cancelled the-first")) << terminal.Text();
  const RawAnswer answer = first->Answer(false, 60000);
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.Header("X-Request-Id"), "the-first");
  EXPECT_NE(answer.body.find("\"stop_type\":\"none\""), std::string::npos);
  ASSERT_TRUE(terminal.Shows("decode  the-second")) << terminal.Text();
  EXPECT_EQ(terminal.Text().find("decode  the-first"), std::string::npos);

  terminal.Press("q");
  ASSERT_TRUE(terminal.Shows("left=0")) << terminal.Text();
  ASSERT_TRUE(terminal.Shows("icanon")) << terminal.Text();
  EXPECT_EQ(terminal.Text().find("-echo"), std::string::npos) << "the terminal was not given back";
  EXPECT_EQ(terminal.Text().find("-icanon"), std::string::npos);
}

TEST_F(TopTmuxTest, GoesOnWhenTheServerStartsAgain) {
  const Terminal terminal(80, 24, Top());
  ASSERT_TRUE(terminal.Shows("no request runs or waits")) << terminal.Text();
  const int port = server_->port();
  server_->End();
  ASSERT_TRUE(terminal.Shows("trying again")) << terminal.Text();
  Serve(port);
  ASSERT_TRUE(WaitUntil([&] { return terminal.Text().find("trying again") == std::string::npos; }));
  const auto client = Ask("after");
  ASSERT_TRUE(terminal.Shows("decode  after")) << terminal.Text();
}

TEST_F(TopTmuxTest, WithoutColoursAndInAscii) {
  const auto client = Ask("plain");
  const Terminal terminal(80, 24, Top("LC_ALL=C NO_COLOR=1"));
  ASSERT_TRUE(terminal.Shows("decode  plain")) << terminal.Text();
  for (const char c : terminal.Text()) {
    ASSERT_TRUE(c == '\n' || (' ' <= c && c <= '~')) << terminal.Text();
  }
  const std::string codes = terminal.Codes();
  for (const char* before : {"\x1b[", ";"}) {
    for (const char* colour : {"30", "31", "32", "33", "34", "35", "36", "37", "9", "40", "41",
                               "42", "43", "44", "45", "46", "47", "38", "48"}) {
      EXPECT_EQ(codes.find(std::string(before) + colour), std::string::npos) << colour << codes;
    }
  }
}

TEST_F(TopTmuxTest, GivesTheTerminalBackWhenItCrashes) {
  const std::string pid = folder_.path("pid");
  const Terminal terminal(80, 24, "sh -c \"echo \\$\\$ >" + pid + "; exec " + Top() + "\"");
  ASSERT_TRUE(terminal.Shows("no request runs or waits")) << terminal.Text();
  (void)OutputOf("kill -SEGV $(cat " + pid + ")");
  ASSERT_TRUE(terminal.Shows("left=139")) << terminal.Text();
  ASSERT_TRUE(terminal.Shows("icanon")) << terminal.Text();
  EXPECT_EQ(terminal.Text().find("-echo"), std::string::npos);
  EXPECT_EQ(terminal.Text().find("-icanon"), std::string::npos);
}

TEST_F(TopTmuxTest, OnAPipeAndAsJson) {
  const auto client = Ask("piped");
  ProgramResult result;
  ASSERT_TRUE(WaitUntil([&] {
    result =
        RunSluice({"top", server_->url(), "--interval", "0.2"}, {{"SLUICE_API_KEY", "secret"}});
    return result.out.find("decode  piped") != std::string::npos;
  })) << result.out
      << result.err;
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  result = RunSluice({"top", server_->url(), "--json", "--interval", "0.2", "--api-key", "secret"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.find("{\"server\":\"sluice\""), 0u) << result.out;
  EXPECT_NE(result.out.find("\"request_id\":\"piped\""), std::string::npos) << result.out;
  result = RunSluice({"top", server_->url(), "--once", "--interval", "0.2"});
  EXPECT_NE(result.out.find("--api-key"), std::string::npos) << result.out;  // says what is missing
}

TEST(TopCommandTest, APageWithoutMetricsIsAnError) {
  const LoopbackServer page([](const HttpRequest&) {
    return HttpResponse{200, "", "<!doctype html><title>Hello</title>\n"};
  });
  for (const char* flag : {"--once", "--json"}) {
    const ProgramResult r = RunSluice({"top", page.url(""), flag, "--interval", "0.1"});
    EXPECT_TRUE(r.IsOneLineError(1)) << r.out << r.err;
    EXPECT_NE(r.err.find("without metrics"), std::string::npos) << r.err;
  }
}

TEST(TopCommandTest, ErrorsAreOneLine) {
  EXPECT_TRUE(RunSluice({"top", "http://127.0.0.1:1", "--once"}).IsOneLineError(1));
  EXPECT_TRUE(RunSluice({"top", "ftp://x", "--once"}).IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"top", "unix:/nowhere/at.all", "--json"}).IsOneLineError(1));
  EXPECT_TRUE(RunSluice({"top", "--interval", "0"}).IsOneLineError(2));
}

}  // namespace
}  // namespace sluice
