// The same bytes on every CPU, for whole models: every SIMD target that is built in and that this
// CPU has, and ARM64 (under qemu, ./dev test neon), against constants. Who changes the arithmetic
// on purpose changes them.
#include <gtest/gtest.h>

#include "src/machine/simd_target.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

struct Case {
  const char* name;
  TinyShape shape;
  uint64_t f16, bf16;  // over the logits after each token, by the type of keys and values
};

class PortableTest : public testing::TestWithParam<Case> {
 protected:
  PortableTest() : tiny_(GetParam().shape), path_(tiny_.Write(folder_.path("tiny.gguf"))) {}
  ~PortableTest() override { EXPECT_TRUE(ChooseSimdTarget("").ok()); }

  // A chunk of 48 rows, then one of 30 that ends beyond a page and the windows.
  uint64_t Hash(KvType type, LoadMode weights) const {
    RunnerOptions o = TestOptions(128, type);
    o.portable = true;
    o.chunk = 48;
    o.weights = weights;
    const std::unique_ptr<ModelRunner> runner = MakeRunner(path_, o);
    if (!runner) return 0;
    const std::vector<uint64_t> hashes = LogitHashes(*runner, tiny_.Tokens(78));
    return XXH3_64bits(hashes.data(), hashes.size() * sizeof(hashes[0]));
  }

  const TempFolder folder_;
  const TinyModel tiny_;
  const std::string path_;
};

TEST_P(PortableTest, SameBytesOnEveryTargetAndMachine) {
  for (const std::string& target : UsableSimdTargets()) {
    ASSERT_TRUE(ChooseSimdTarget(target).ok());
    for (const LoadMode weights : {LoadMode::kGguf, LoadMode::kRepack}) {
      SCOPED_TRACE(target + " " + LoadModeName(weights));
      EXPECT_EQ(Hash(KvType::kF16, weights), GetParam().f16);
      EXPECT_EQ(Hash(KvType::kBF16, weights), GetParam().bf16);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, PortableTest,
    testing::Values(Case{"LlamaQ4_0", TinyLlama("Q4_0"), 0x2378e2e2acad3b65, 0x655ba3fcda0018e3},
                    Case{"LlamaQ5_1", TinyLlama("Q5_1"), 0x2f589f0a3ab0a429, 0x2f8b87ebf05d6377},
                    Case{"LlamaQ8_0", TinyLlama("Q8_0"), 0xd66d835e3f2981b7, 0x380f1681c752300b},
                    Case{"LlamaF32", TinyLlama("F32"), 0xa8b0d4e16ffb49fd, 0xef48db98c66a3fe6},
                    Case{"Gemma3Q4_0", TinyGemma3(), 0xebf272284ddf25ce, 0x281bca8f483d2fa9},
                    Case{"MixtureQ8_0", TinyMoe(), 0x2a6b5659295ed55f, 0xd81df7014123255e}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice
