// Pulls by a shell in the place of the program that fetches models.
#include "src/server/ollama_pull.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <thread>

#include "tests/base/temp_folder.h"
#include "tests/server/recorded_exchange.h"

namespace sluice {
namespace {

namespace json = boost::json;

std::string ArgumentOf(const char* name) {
  const Result<std::string> argument = PullArgument(name);
  return argument.ok() ? *argument : "refused";
}

TEST(OllamaPullTest, Names) {
  EXPECT_EQ(ArgumentOf("gemma-3-270m"), "gemma-3-270m");
  EXPECT_EQ(ArgumentOf("gemma-3-270m:latest"), "gemma-3-270m");
  EXPECT_EQ(ArgumentOf("hf.co/owner/repo:Q8_0"), "hf:owner/repo:Q8_0");
  EXPECT_EQ(ArgumentOf("huggingface.co/owner/repo"), "hf:owner/repo");
  for (const char* bad : {"", "--sha256", "-x", ":latest", "a\nb"}) {
    EXPECT_EQ(ArgumentOf(bad), "refused") << bad;
  }
}

TEST(OllamaPullTest, LinesOfNumbersAreProgress) {
  const json::object status =
      PullStatus("{\"title\": \"m.gguf\", \"completed\": 5, \"total\": 20}", "m", "/models");
  EXPECT_EQ(status.at("status"), "pulling m.gguf");
  EXPECT_EQ(status.at("completed"), 5);
  EXPECT_EQ(status.at("total"), 20);
  // Clients cut 12 characters out of the digits.
  EXPECT_EQ(status.at("digest").as_string().size(), 7u + 64u);
}

TEST(OllamaPullTest, ATotalThatIsNotKnownIsNotTold) {
  EXPECT_EQ(PullStatus("{\"completed\": 5, \"total\": 0}", "m", ""),
            (json::object{{"status", "pulling m"}}));
}

TEST(OllamaPullTest, OtherLinesAreWordsWithoutOurFolders) {
  const auto words = [](std::string_view line) {
    return std::string(PullStatus(line, "m", "/home/a/models").at("status").as_string());
  };
  EXPECT_EQ(words("sluice pull: already there"), "already there");
  EXPECT_EQ(words("/home/a/models/x.gguf: cannot rename"), "x.gguf: cannot rename");
  EXPECT_EQ(words("{\"total\": \"many\"}"), "{\"total\": \"many\"}");
}

class PullJobsTest : public testing::Test {
 protected:
  // The model's name becomes $0 of the script.
  std::unique_ptr<PullJobs> Jobs(const std::string& script) {
    return std::make_unique<PullJobs>(std::vector<std::string>{"/bin/sh", "-c", script},
                                      folder_.path());
  }
  // Waits until the script has said that it runs; false: it did not for a minute.
  bool WaitForFile(const std::string& path) {
    for (int i = 0; i < 6000 && !std::ifstream(path).good(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return std::ifstream(path).good();
  }

  TempFolder folder_;
  std::shared_ptr<RecordedExchange> exchange_ = std::make_shared<RecordedExchange>();
};

TEST_F(PullJobsTest, TellsTheProgressAndTheEnd) {
  const auto jobs = Jobs(
      "echo /a/path/on/stdout; printf '{\"completed\":1,\"total\":2}\\r' >&2;"
      "echo \"fetched $0\" >&2");
  ASSERT_TRUE(jobs->Start("tiny", true, exchange_).ok());
  ASSERT_TRUE(exchange_->WaitForEnd());
  const std::vector<json::object> lines = exchange_->lines("", "\n");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(exchange_->type(), "application/x-ndjson");
  EXPECT_EQ(lines[0].at("status"), "pulling manifest");
  EXPECT_EQ(lines[1].at("completed"), 1);
  EXPECT_EQ(lines[2].at("status"), "fetched tiny");
  EXPECT_EQ(lines[3], (json::object{{"status", "success"}}));
}

TEST_F(PullJobsTest, AFailureIsTheLastWords) {
  const auto jobs = Jobs("echo 'sluice pull: no such model' >&2; exit 3");
  ASSERT_TRUE(jobs->Start("tiny", true, exchange_).ok());
  ASSERT_TRUE(exchange_->WaitForEnd());
  EXPECT_EQ(exchange_->lines("", "\n").back().at("error"), "no such model");
  exchange_ = std::make_shared<RecordedExchange>();
  ASSERT_TRUE(jobs->Start("tiny", false, exchange_).ok());
  ASSERT_TRUE(exchange_->WaitForEnd());
  EXPECT_EQ(exchange_->status(), 500);
  EXPECT_EQ(exchange_->json().at("error"), "no such model");
}

TEST_F(PullJobsTest, WithoutAStreamThereIsOneObject) {
  const auto jobs = Jobs("echo words >&2");
  ASSERT_TRUE(jobs->Start("tiny", false, exchange_).ok());
  ASSERT_TRUE(exchange_->WaitForEnd());
  EXPECT_EQ(exchange_->json(), (json::object{{"status", "success"}}));
}

// The sleep is a child of the shell: both must go, or the pipe stays open for an hour.
TEST_F(PullJobsTest, EndsWithItsClient) {
  const std::string mark = folder_.path("runs");
  const auto jobs = Jobs("touch '" + mark + "'; sleep 3600; echo done >&2");
  ASSERT_TRUE(jobs->Start("tiny", true, exchange_).ok());
  ASSERT_TRUE(WaitForFile(mark));
  exchange_->Disconnect();
  ASSERT_TRUE(exchange_->WaitForEnd());
  EXPECT_TRUE(exchange_->lines("", "\n").back().contains("error"));
}

TEST_F(PullJobsTest, EndsWithTheServer) {
  const std::string mark = folder_.path("runs");
  auto jobs = Jobs("touch '" + mark + "'; sleep 3600");
  ASSERT_TRUE(jobs->Start("tiny", true, exchange_).ok());
  ASSERT_TRUE(WaitForFile(mark));
  jobs.reset();
  EXPECT_EQ(exchange_->ended(), 1);
}

TEST_F(PullJobsTest, NoMoreThanTwoAtOnce) {
  auto jobs = Jobs("sleep 3600");
  ASSERT_TRUE(jobs->Start("a", true, exchange_).ok());
  ASSERT_TRUE(jobs->Start("b", true, std::make_shared<RecordedExchange>()).ok());
  EXPECT_EQ(jobs->Start("c", true, std::make_shared<RecordedExchange>()).code(), StatusCode::kBusy);
}

TEST_F(PullJobsTest, AProgramThatIsNotThere) {
  PullJobs jobs({folder_.path("no-such-program")}, folder_.path());
  EXPECT_EQ(jobs.Start("a", true, exchange_).code(), StatusCode::kIo);
  PullJobs none(std::vector<std::string>{}, folder_.path());
  EXPECT_EQ(none.Start("a", true, exchange_).code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace sluice
