// Text and tables on terminals of 80 columns, which tmux plays: nothing that it would have to
// break.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/base/temp_folder.h"
#include "tests/cli/run_sluice.h"
#include "tests/cli/terminal.h"
#include "tests/load/scripted_server.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

class WidthTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Terminal::Works()) GTEST_SKIP() << "no tmux 3 here";
    model_ = TinyModel(TinyLlama("Q4_0")).Write(folder_.path("tiny.gguf"));
  }
  // What a command shows from `begin` on.
  std::string Shown(const std::string& arguments, const char* begin) const {
    const Terminal terminal(80, 100,
                            "SLUICE_CACHE=" + folder_.path("cache") + " LC_ALL=C.UTF-8 " +
                                SLUICE_BINARY + " " + arguments);
    EXPECT_TRUE(terminal.Shows("left=0")) << terminal.Text();
    const std::string text = terminal.Unbroken();
    const size_t at = text.find(begin);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? "" : text.substr(at, text.find("left=0") - at);
  }

  const TempFolder folder_;
  std::string model_;
};

TEST_F(WidthTest, Inspect) {
  const std::string text = Shown("inspect --tensors " + model_, "name  ");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool one_word = line.find_last_of(' ') + 1 == line.find_first_not_of(' ');
    EXPECT_TRUE(one_word || Widest(line) <= 80) << text;  // a path has no place to break
  }
  EXPECT_NE(text.find("blk.1.attn_k.weight"), std::string::npos) << text;
}

TEST_F(WidthTest, BenchGoesWithoutSomeColumns) {
  for (const char* more : {"", " -np 2 --ctk f16", " --vs \"-t 2\""}) {
    const std::string text = Shown("bench " + model_ + " -t 1 -p 4 -n 2 -r 2" + more, "| ");
    EXPECT_LE(Widest(text), 80u) << text;
    EXPECT_NE(text.find("test |             t/s |"), std::string::npos) << text;
    EXPECT_EQ(text.find("backend"), std::string::npos) << text;
    EXPECT_EQ(text.find("% of roof") != std::string::npos, more[0] == '\0') << text;
  }
}

TEST_F(WidthTest, LoadSweep) {
  ScriptedServer server(OpenAiScript([] { return Completion(0, 0, 1); }));
  const std::string text =
      Shown("load " + server.url() + " --rate 50,100 --duration 0.2 --slo ttft=1s", "     ");
  EXPECT_LE(Widest(text), 80u) << text;
  for (const char* name : {"due/s", "E2E p50", "tok/s"}) {
    EXPECT_EQ(text.find(name), std::string::npos) << name << text;
  }
  for (const char* name :
       {"done/s", "TTFT p50", "TPOT p50", "failed", "goodput/s", "50 req/s", "100 req/s"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name << text;
  }
}

}  // namespace
}  // namespace sluice
