// `sluice top` on real terminals, which tmux plays, before a running `sluice serve`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/base/temp_folder.h"
#include "tests/cli/run_sluice.h"
#include "tests/cli/served_process.h"
#include "tests/model/tiny_model.h"
#include "tests/server/raw_client.h"

namespace sluice {
namespace {

std::string OutputOf(const std::string& command) {
  std::string out;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return out;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) out.append(buffer, n);
  pclose(pipe);
  return out;
}

// A terminal whose shell runs one command and then says how it left the terminal.
class Terminal {
 public:
  Terminal(int width, int height, const std::string& command) {
    const std::string size = " -x " + std::to_string(width) + " -y " + std::to_string(height);
    const std::string then =
        "; echo left=$?; stty -a | tr \" \" \"\\n\" | grep -x -e \"-*echo\" -e \"-*icanon\"";
    (void)Tmux("new-session -d" + size + " '" + command + then + "; sleep 300'");
  }
  ~Terminal() { (void)Tmux("kill-server"); }

  std::string Text() const { return Tmux("capture-pane -p"); }
  std::string Codes() const { return Tmux("capture-pane -p -e"); }
  void Press(const std::string& keys) const { (void)Tmux("send-keys " + keys); }
  void Resize(int width, int height) const {
    (void)Tmux("resize-window -x " + std::to_string(width) + " -y " + std::to_string(height));
  }
  bool Shows(const std::string& text) const {
    return WaitUntil([&] { return Text().find(text) != std::string::npos; });
  }

 private:
  std::string Tmux(const std::string& command) const {
    return OutputOf("LC_ALL=C.UTF-8 tmux -u -f /dev/null -S " + folder_.path("tmux") + " " +
                    command);
  }
  TempFolder folder_;
};

class TopTmuxTest : public testing::Test {
 protected:
  void SetUp() override {
    if (OutputOf("tmux -V").find("tmux 3") != 0) GTEST_SKIP() << "no tmux 3 here";
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

size_t Widest(const std::string& screen) {
  size_t widest = 0, columns = 0;
  for (const char c : screen) {
    if (c == '\n') columns = 0;
    if (c != '\n' && (static_cast<unsigned char>(c) & 0xC0) != 0x80) ++columns;
    widest = std::max(widest, columns);
  }
  return widest;
}

TEST_F(TopTmuxTest, DrawsResizesAndCancels) {
  const auto first = Ask("the-first"), second = Ask("the-second");
  const Terminal terminal(80, 24, Top());
  ASSERT_TRUE(terminal.Shows("the-second")) << terminal.Text();
  ASSERT_TRUE(terminal.Shows("decode  the-first")) << terminal.Text();
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

TEST(TopCommandTest, ErrorsAreOneLine) {
  EXPECT_TRUE(RunSluice({"top", "http://127.0.0.1:1", "--once"}).IsOneLineError(1));
  EXPECT_TRUE(RunSluice({"top", "ftp://x", "--once"}).IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"top", "unix:/nowhere/at.all", "--json"}).IsOneLineError(1));
  EXPECT_TRUE(RunSluice({"top", "--interval", "0"}).IsOneLineError(2));
}

}  // namespace
}  // namespace sluice
