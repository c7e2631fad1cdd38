// Barriers of one decode step: what fusing bought, counted. Small models are bound by them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"
#include "tests/text/shared_oracles.h"

namespace sluice {
namespace {

// Per decoded token on two workers.
double BarriersPerToken(ModelRunner& runner) {
  const std::vector<int32_t> tokens(12, 5);
  Evaluator evaluator(runner);
  EXPECT_TRUE(evaluator.Append(tokens, tokens.size(), {}).ok());
  const uint64_t before = runner.team().barriers();
  constexpr int kSteps = 5;
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_TRUE(evaluator.Append({&tokens[0], 1}, evaluator.length() + 1, {}).ok());
  }
  return static_cast<double>(runner.team().barriers() - before) / kSteps;
}

RunnerOptions TwoWorkers() {
  RunnerOptions o = TestOptions(64);
  o.threads = 2;
  return o;
}

double BarriersPerLayer(const TinyShape& shape) {
  const TempFolder folder;
  const TinyModel model(shape);
  const auto runner = MakeRunner(model.Write(folder.path("m.gguf")), TwoWorkers());
  if (!runner) return -1;
  return BarriersPerToken(*runner) / static_cast<double>(runner->config().layers);
}

// QKV | attention | output | gate and up | down: each ends in one.
TEST(BarriersTest, DenseLayerHasFive) { EXPECT_EQ(BarriersPerLayer(TinyLlama("Q4_0")), 5); }

// Router | gate and up | down instead of the MLP's two.
TEST(BarriersTest, MixtureHasSix) { EXPECT_EQ(BarriersPerLayer(TinyMoe()), 6); }

// One kv head for two workers: its key must be stored before both read it.
TEST(BarriersTest, SharedKvHeadCostsOne) {
  TinyShape shape = TinyLlama("Q4_0");
  shape.kv_heads = 1;
  EXPECT_EQ(BarriersPerLayer(shape), 6);
}

// Latents (and the low-rank query) | its up projection | k_b | attention | v_b | output | an MLP.
TEST(BarriersTest, LatentAttentionHasSixOrFive) {
  for (const char* name : {"tiny-deepseek2-a", "tiny-deepseek2-lite-a"}) {
    const auto path = SharedOracles("arch") / (std::string(name) + ".gguf");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: no shared oracles";
    const auto runner = MakeRunner(path.string(), TwoWorkers());
    ASSERT_TRUE(runner);
    const Config& c = runner->config();
    double expected = 0;
    for (size_t i = 0; i < c.layers; ++i) {
      expected += (c.latent.q_rank > 0 ? 6 : 5) + (c.Sparse(i) ? 3 : 2);
    }
    EXPECT_EQ(BarriersPerToken(*runner), expected) << name;
  }
}

}  // namespace
}  // namespace sluice
