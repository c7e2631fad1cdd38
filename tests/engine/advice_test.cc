// Goals as sentences, and what is advised for them.
#include "src/engine/advice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/engine/machine_speed.h"
#include "tests/base/temp_folder.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

TEST(ParseGoal, ReadsSentences) {
  Goal g = *ParseGoal("TTFT under 2 s at 4k prompts");
  EXPECT_DOUBLE_EQ(*g.ttft_s, 2);
  EXPECT_EQ(*g.prompt, 4096u);
  EXPECT_FALSE(g.token_s || g.users || g.context);
  g = *ParseGoal("10 tok/s for 4 users");
  EXPECT_DOUBLE_EQ(*g.token_s, 0.1);
  EXPECT_EQ(*g.users, 4u);
  g = *ParseGoal(
      "ttft<500ms, ITL below 50 ms for 8 streams with 1.5k token prompts and 32k context.");
  EXPECT_DOUBLE_EQ(*g.ttft_s, 0.5);
  EXPECT_DOUBLE_EQ(*g.token_s, 0.05);
  EXPECT_EQ(*g.users, 8u);
  EXPECT_EQ(*g.prompt, 1536u);
  EXPECT_EQ(*g.context, 32768u);
}

TEST(ParseGoal, SaysWhatItDoesNotUnderstand) {
  for (const char* text : {"", "fast please", "4 users", "2 s", "TTFT under 0 s", "TTFT under s",
                           "10 tok/s for users", "10 tok/s 7", "TTFT under 1e999 s",
                           "TTFT under 2.5.5 s", "10 tok/s for 0 users", "k tok/s"}) {
    const Result<Goal> goal = ParseGoal(text);
    ASSERT_FALSE(goal.ok()) << text;
    EXPECT_EQ(goal.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(goal.status().message().find("TTFT under 2 s at 4k prompts"), std::string::npos);
    EXPECT_EQ(goal.status().message().find('\n'), std::string::npos);
  }
}

class AdviceTest : public testing::Test {
 protected:
  AdviceTest() {
    TinyShape shape = TinyLlama();
    shape.dim = 256;
    shape.ffn_dim = 512;
    shape.head_dim = 64;
    model_ = std::make_unique<ModelWork>(
        *ModelWork::Of(TinyModel(shape).Write(folder_.path("m.gguf")), false));
    question_.model = model_.get();
    question_.workload = {.prompt = 64, .output = 32, .chunk = 64};
    question_.formats = {FindFormat("Q8_0"), FindFormat("Q4_0")};
    question_.devices = devices_;
    question_.room_bytes = 1e9;
    question_.speed = [](const ModelWork& m, KvType) {
      return SpeedOf(m, {"here", "", 1e-3, 1, 0});  // 1 MB/s: weights are all that counts
    };
  }
  double TokenSeconds(const ModelWork& model) const {
    return Predict(model, question_.speed(model, KvType::kF16), question_.workload).token_s;
  }
  std::vector<Advice> Ask() {
    Result<std::vector<Advice>> advice = Advise(question_);
    EXPECT_TRUE(advice.ok()) << advice.status().message();
    return *std::move(advice);
  }
  static const Advice* Find(const std::vector<Advice>& all, const std::string& what) {
    const auto found =
        std::find_if(all.begin() + 1, all.end(), [&](const Advice& a) { return a.what == what; });
    return found == all.end() ? nullptr : &*found;
  }

  const TempFolder folder_;
  std::unique_ptr<ModelWork> model_;
  const std::vector<Device> devices_ = {
      {"fast", "", 1, 10, 0}, {"faster", "", 10, 100, 0}, {"tiny", "", 5, 10, 1e-6}};
  AdviceQuestion question_;
};

TEST_F(AdviceTest, NothingIsAdvisedWhereTheGoalIsMet) {
  question_.goal.token_s = 1e6;
  const std::vector<Advice> advice = Ask();
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_TRUE(advice[0].meets());
}

TEST_F(AdviceTest, ASmallerFormat) {
  // Between the two formats.
  question_.goal.token_s =
      (TokenSeconds(*model_) + TokenSeconds(model_->In(*FindFormat("Q4_0")))) / 2;
  const std::vector<Advice> advice = Ask();
  EXPECT_FALSE(advice[0].meets());
  const Advice* format = Find(advice, "format");
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format->change, "weights in Q4_0");
  EXPECT_TRUE(format->meets());
  EXPECT_TRUE(advice[1].meets());  // those that reach it come first
}

TEST_F(AdviceTest, TheSlowestMachineThatDoes) {
  question_.goal.token_s = TokenSeconds(*model_) / 100;
  const std::vector<Advice> advice = Ask();
  const Advice* hardware = Find(advice, "hardware");
  ASSERT_NE(hardware, nullptr);
  EXPECT_TRUE(hardware->change.starts_with("fast ")) << hardware->change;
  for (const Advice& a : advice) EXPECT_FALSE(a.change.starts_with("tiny")) << "has no room";
}

TEST_F(AdviceTest, AGoalForAContextIsForAFullOne) {
  question_.workload.output = 128;
  question_.goal.context = 1024;
  EXPECT_EQ(WorkloadOf(question_).prompt, 1024u - 128);
  EXPECT_EQ(WorkloadOf(question_).positions(), 1024u);
  question_.goal.prompt = 100;
  EXPECT_EQ(WorkloadOf(question_).prompt, 100u);
  EXPECT_EQ(WorkloadOf(question_).positions(), 1024u);
}

TEST_F(AdviceTest, FewerAtOnceForFasterStreams) {
  question_.goal.users = 8;
  question_.speed = [](const ModelWork& m, KvType) {
    MachineSpeed s = SpeedOf(m, {"here", "", 1000, 1e-3, 0});  // arithmetic is all that counts
    return s;
  };
  question_.workload.concurrency = 8;
  const double together = TokenSeconds(*model_);
  question_.workload.concurrency = 1;
  question_.goal.token_s = together / 2;
  const std::vector<Advice> advice = Ask();
  const Advice* fewer = Find(advice, "concurrency");
  ASSERT_NE(fewer, nullptr);
  EXPECT_TRUE(fewer->meets());
  EXPECT_TRUE(fewer->change.starts_with("--max-num-seqs ")) << fewer->change;
}

TEST_F(AdviceTest, AContextThatFits) {
  question_.goal.token_s = 1e6;
  question_.workload.context = 1 << 20;
  const double rest = PlanMemory(*model_, {.prompt = 64, .output = 32}, 1, 1e9)->resident_bytes;
  question_.room_bytes = 4 * rest;
  const std::vector<Advice> advice = Ask();
  EXPECT_FALSE(advice[0].memory.fits());
  const Advice* context = Find(advice, "context");
  ASSERT_NE(context, nullptr);
  EXPECT_TRUE(context->meets());
  EXPECT_EQ(context->change, "--ctx-size 96");
}

}  // namespace
}  // namespace sluice
