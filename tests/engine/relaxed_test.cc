// --relaxed in whole models: the logits of oneDNN's products are near ours, for dense models and
// mixtures, and decode, which it leaves alone, has our bytes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

using Logits = std::vector<std::vector<float>>;

class RelaxedTest : public testing::TestWithParam<TinyShape> {
 protected:
  RelaxedTest() { setenv("SLUICE_CACHE", folder_.path().c_str(), 1); }
  ~RelaxedTest() override { unsetenv("SLUICE_CACHE"); }

  Logits Run(RunnerOptions o, std::span<const int32_t> tokens) {
    Logits all;
    const std::unique_ptr<ModelRunner> runner = MakeRunner(path_, o);
    if (!runner) return all;
    note_ = runner->load_note();
    Evaluator evaluator(*runner);
    const Status s = evaluator.Append(tokens, 0, [&](size_t, std::span<const float> logits) {
      all.emplace_back(logits.begin(), logits.end());
    });
    EXPECT_TRUE(s.ok()) << s.message();
    return all;
  }

  const TempFolder folder_;
  const TinyModel model_{GetParam()};
  const std::string path_ = model_.Write(folder_.path("m.gguf"));
  const std::vector<int32_t> tokens_ = model_.Tokens(150);
  std::string note_;
};

TEST_P(RelaxedTest, IsCloseToTheNormalKernels) {
  const Logits normal = Run(TestOptions(tokens_.size()), tokens_);
  ASSERT_EQ(normal.size(), tokens_.size());
  for (const LoadMode weights : {LoadMode::kGguf, LoadMode::kRepack}) {
    for (const int threads : {1, 3}) {
      RunnerOptions o = TestOptions(tokens_.size());
      o.weights = weights;
      o.threads = threads;
      o.chunk = 100;  // and a rest of 50
      o.relaxed = true;
      o.relaxed_gain = 0;                     // however fast
      o.warn = [](const std::string& line) {  // three threads may be more than the CPUs
        EXPECT_EQ(line.find("--relaxed"), std::string::npos) << line;
      };
      const Logits relaxed = Run(o, tokens_);
      ASSERT_EQ(relaxed.size(), normal.size());
      double differences = 0, squares = 0;
      for (size_t t = 0; t < normal.size(); ++t) {
        for (size_t i = 0; i < normal[t].size(); ++i) {
          differences += std::pow(relaxed[t][i] - normal[t][i], 2);
          squares += std::pow(normal[t][i], 2);
        }
      }
      // bfloat16 inputs, where the CPU has them, are off by 2^-9 in every product, and a token may
      // go to another expert.
      EXPECT_LT(std::sqrt(differences / squares), GetParam().experts > 0 ? 0.06 : 0.02);
      // Other bytes are allowed and not certain: of k this short a library may make one chain too.
      EXPECT_EQ(note_.find("oneDNN from") != std::string::npos, OneDnn::Create(1) != nullptr)
          << note_;
    }
  }
}

TEST_P(RelaxedTest, PassesOfFewRowsHaveTheSameBytes) {
  const std::span<const int32_t> tokens = std::span(tokens_).first(20);
  RunnerOptions o = TestOptions(tokens.size());
  o.chunk = kFewRows;
  const Logits normal = Run(o, tokens);
  EXPECT_EQ(note_, "");
  o.relaxed = true;
  o.relaxed_gain = 0;
  EXPECT_EQ(Run(o, tokens), normal);
  EXPECT_TRUE(note_.starts_with("--relaxed: ")) << note_;
}

// A factor that nothing reaches: measured, said, not taken, so our bytes.
TEST_P(RelaxedTest, NotFasterMeansTheSameBytes) {
  RunnerOptions o = TestOptions(tokens_.size());
  const Logits normal = Run(o, tokens_);
  o.relaxed = true;
  o.relaxed_gain = 1e9;
  EXPECT_EQ(Run(o, tokens_), normal);
  EXPECT_TRUE(note_.starts_with("--relaxed: ")) << note_;
}

INSTANTIATE_TEST_SUITE_P(Models, RelaxedTest,
                         testing::Values(TinyLlama("F32"), TinyLlama("F16"), TinyLlama("BF16"),
                                         TinyMoe("F16")),
                         [](const auto& info) {
                           return std::string(info.param.experts ? "Mixture" : "Llama") +
                                  info.param.format;
                         });

}  // namespace
}  // namespace sluice
