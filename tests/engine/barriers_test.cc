// Barriers of one decode step: what fusing bought, counted. Small models are bound by them.
#include <gtest/gtest.h>

#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

// Per decoded token on two workers, divided by the layers.
double BarriersPerLayer(const TinyShape& shape) {
  const TempFolder folder;
  const TinyModel model(shape);
  RunnerOptions o = TestOptions(64);
  o.threads = 2;
  const auto runner = MakeRunner(model.Write(folder.path("m.gguf")), o);
  if (!runner) return -1;
  const std::vector<int32_t> tokens = model.Tokens(12);
  Evaluator evaluator(*runner);
  EXPECT_TRUE(evaluator.Append(tokens, tokens.size(), {}).ok());
  const uint64_t before = runner->team().barriers();
  constexpr int kSteps = 5;
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_TRUE(evaluator.Append({&tokens[0], 1}, evaluator.length() + 1, {}).ok());
  }
  return static_cast<double>(runner->team().barriers() - before) / kSteps /
         static_cast<double>(runner->config().layers);
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

}  // namespace
}  // namespace sluice
