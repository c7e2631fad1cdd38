// What a runner is made of, what it refuses, and evaluation at its edges.
#include "src/engine/model_runner.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/machine/machine_profile.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"
#include "tests/text/shared_oracles.h"

namespace sluice {
namespace {

class ModelRunnerTest : public testing::Test {
 protected:
  std::string Write(const TinyShape& shape) { return TinyModel(shape).Write(folder_.path("m")); }
  const TempFolder folder_;
};

TEST_F(ModelRunnerTest, DefaultsComeFromTheModelAndTheMachine) {
  RunnerOptions o;
  o.weights = LoadMode::kGguf;
  const std::unique_ptr<ModelRunner> runner = MakeRunner(Write(TinyLlama()), o);
  ASSERT_TRUE(runner);
  EXPECT_EQ(runner->context(), 512u);  // as trained
  EXPECT_EQ(runner->chunk(), 512u);
  EXPECT_GE(runner->decode_threads(), 1);
  EXPECT_GT(runner->load_seconds(), 0);
}

// On CPUs with AMX heads of 16 are multiplied as floats, and those of 32 are not.
TEST_F(ModelRunnerTest, KeysAreBf16WhereTheseHeadsAreMultipliedSo) {
  for (const uint32_t head : {16u, 32u}) {
    TinyShape shape = TinyLlama();
    shape.head_dim = head;
    RunnerOptions o = TestOptions(16);
    o.kv_type.reset();
    const std::unique_ptr<ModelRunner> runner = MakeRunner(Write(shape), o);
    ASSERT_TRUE(runner);
    const bool dots = DotsBf16({head, head, KvType::kBF16});
    EXPECT_EQ(runner->kv_type(), dots ? KvType::kBF16 : KvType::kF16) << head;
    o.portable = true;
    EXPECT_EQ(MakeRunner(Write(shape), o)->kv_type(), KvType::kF16);
  }
}

TEST_F(ModelRunnerTest, ThreadsComeFromTheMachineProfile) {
  setenv("SLUICE_CACHE", folder_.path("cache").c_str(), 1);
  MachineProfile profile = DefaultProfile(ThisMachine());
  profile.decode_threads = 1;
  profile.prefill_threads = 3;
  const std::string path = Write(TinyLlama());
  ASSERT_TRUE(WriteProfile(folder_.path("cache/machine.json"), profile).ok());
  RunnerOptions options = TestOptions(16);
  options.threads = options.threads_batch = 0;
  auto runner = MakeRunner(path, options);
  ASSERT_NE(runner, nullptr);
  EXPECT_EQ(runner->decode_threads(), 1);
  EXPECT_EQ(runner->team().size(), 3);
  options.threads = 2;  // given: both phases
  runner = MakeRunner(path, options);
  ASSERT_NE(runner, nullptr);
  EXPECT_EQ(runner->decode_threads(), 2);
  EXPECT_EQ(runner->team().size(), 2);
  unsetenv("SLUICE_CACHE");
}

TEST_F(ModelRunnerTest, PortableMeansF16OnEveryCpu) {
  RunnerOptions o;
  o.weights = LoadMode::kGguf;
  o.portable = true;
  const std::unique_ptr<ModelRunner> runner = MakeRunner(Write(TinyLlama()), o);
  ASSERT_TRUE(runner);
  EXPECT_EQ(runner->kv_type(), KvType::kF16);
}

TEST_F(ModelRunnerTest, AChunkIsNoLongerThanTheContext) {
  RunnerOptions o = TestOptions(40);
  EXPECT_EQ(MakeRunner(Write(TinyLlama()), o)->chunk(), 40u);
}

TEST_F(ModelRunnerTest, ErrorsNameTheFile) {
  const std::string missing = folder_.path("missing.gguf");
  Result<std::unique_ptr<ModelRunner>> r = ModelRunner::Create(missing, TestOptions(16));
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().message().find(missing), std::string::npos);
  TinyModel model;
  model.tensors().erase("blk.1.attn_k.weight");
  const std::string bad = model.Write(folder_.path("bad.gguf"));
  r = ModelRunner::Create(bad, TestOptions(16));
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().message().find(bad), std::string::npos);
  EXPECT_NE(r.status().message().find("blk.1.attn_k.weight"), std::string::npos);
}

// However the panels are held, giving up is no reason to make them in another way.
TEST_F(ModelRunnerTest, ALoadThatIsToldToGiveUpDoes) {
  const std::string path = Write(TinyLlama("Q4_0"));
  setenv("SLUICE_CACHE", folder_.path("cache").c_str(), 1);
  for (const LoadMode mode : {LoadMode::kAuto, LoadMode::kPanels, LoadMode::kRepack}) {
    RunnerOptions o = TestOptions(16);
    o.weights = mode;
    size_t calls = 0;
    const auto give_up = [&](uint64_t, uint64_t) { return ++calls == 0; };
    const Result<std::unique_ptr<ModelRunner>> r = ModelRunner::Create(path, o, give_up);
    EXPECT_EQ(r.status().code(), StatusCode::kCancelled) << LoadModeName(mode);
    EXPECT_EQ(calls, 1u) << LoadModeName(mode);
  }
  unsetenv("SLUICE_CACHE");
}

TEST_F(ModelRunnerTest, Q8KeysNeedHeadsOf32) {
  TinyShape shape;
  shape.head_dim = 24;
  const std::string path = Write(shape);
  const Result<std::unique_ptr<ModelRunner>> r =
      ModelRunner::Create(path, TestOptions(16, KvType::kQ8));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(r.status().message().find("24"), std::string::npos) << r.status().message();
  EXPECT_TRUE(MakeRunner(path, TestOptions(16)));
}

TEST_F(ModelRunnerTest, KvTypesAreNearEachOther) {
  const TinyModel model(TinyGemma3());
  const std::string path = model.Write(folder_.path("m.gguf"));
  const std::vector<int32_t> tokens = model.Tokens(70);
  std::vector<float> exact;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8}) {
    const std::unique_ptr<ModelRunner> runner = MakeRunner(path, TestOptions(70, type));
    std::vector<float> last;
    GreedyTokens(*runner, tokens, 1, [&](size_t, std::span<const float> logits) {
      last.assign(logits.begin(), logits.end());
    });
    if (type == KvType::kF32) exact = last;
    double difference = 0, size = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      difference += std::pow(static_cast<double>(last[i] - exact[i]), 2);
      size += std::pow(static_cast<double>(exact[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference / size), type == KvType::kF32   ? 0
                                            : type == KvType::kF16 ? 0.02
                                                                   : 0.05)
        << KvTypeName(type);
  }
}

TEST_F(ModelRunnerTest, LearnedPositionsBoundTheContext) {
  const std::filesystem::path path = SharedOracles("arch") / "tiny-gpt2-a.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no shared oracles";
  const std::unique_ptr<ModelRunner> runner = MakeRunner(path.string(), TestOptions(0));
  ASSERT_TRUE(runner);
  const size_t limit = runner->model().position_limit();
  EXPECT_EQ(runner->context(), limit);
  const Result<std::unique_ptr<ModelRunner>> r =
      ModelRunner::Create(path.string(), TestOptions(limit + 1));
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().message().find("learned positions"), std::string::npos);
}

TEST_F(ModelRunnerTest, EvaluationEndsAtTheContextWithAStatus) {
  const TinyModel model;
  const std::unique_ptr<ModelRunner> runner =
      MakeRunner(model.Write(folder_.path("m.gguf")), TestOptions(20));
  Evaluator evaluator(*runner);
  size_t seen = 0;
  const LogitSink count = [&](size_t, std::span<const float>) { ++seen; };
  EXPECT_TRUE(evaluator.Append(model.Tokens(20), 5, count).ok());
  EXPECT_EQ(seen, 15u);
  EXPECT_FALSE(evaluator.Append(model.Tokens(1), 0, count).ok());
  evaluator.Clear();
  EXPECT_TRUE(evaluator.Append(model.Tokens(3), 0, count).ok());
  const std::vector<int32_t> foreign = {5, -1};
  EXPECT_EQ(evaluator.Append(foreign, 0, count).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(seen, 18u);
}

TEST_F(ModelRunnerTest, LogitsComeForThePositionsAskedFor) {
  const TinyModel model;
  RunnerOptions o = TestOptions(200);
  o.chunk = 90;  // more rows than logits are made at a time
  const std::unique_ptr<ModelRunner> runner = MakeRunner(model.Write(folder_.path("m.gguf")), o);
  const std::vector<int32_t> tokens = model.Tokens(200);
  const std::vector<uint64_t> all = LogitHashes(*runner, tokens);
  Evaluator evaluator(*runner);
  std::vector<size_t> positions;
  ASSERT_TRUE(evaluator
                  .Append(tokens, 77,
                          [&](size_t i, std::span<const float> logits) {
                            positions.push_back(i);
                            EXPECT_EQ(XXH3_64bits(logits.data(), logits.size_bytes()), all[i]);
                          })
                  .ok());
  ASSERT_EQ(positions.size(), 123u);
  for (size_t i = 0; i < positions.size(); ++i) EXPECT_EQ(positions[i], 77 + i);
}

}  // namespace
}  // namespace sluice
