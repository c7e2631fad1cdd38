// The project's headline promise: logits have the same bytes whatever the
// thread count, the prefill chunk and the way the weights are held.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"
#include "tests/text/shared_oracles.h"

namespace sluice {
namespace {

struct Setting {
  int threads;
  size_t chunk;  // 512: the whole prompt in one pass
  LoadMode weights;
  HugePages huge_pages = HugePages::kAuto;
};

// Whether a file has weights that the CPU may multiply in its own way.
bool HoldsBf16(const std::string& path) {
  const Result<std::unique_ptr<Gguf>> gguf = Gguf::Open(path);
  if (!gguf.ok()) return false;
  for (const GgufTensor& t : (*gguf)->tensors()) {
    if (t.format && MultipliesBf16(*t.format) && t.dims > 1) return true;
  }
  return false;
}

// float products, and the CPU's own of bfloat16 where it has them
constexpr KvType kKvTypes[] = {KvType::kF16, KvType::kBF16};

// The first is what the others are compared with. Every value of every factor occurs.
constexpr Setting kSettings[] = {{1, 512, LoadMode::kGguf},
                                 {1, 1, LoadMode::kRepack},
                                 {2, 512, LoadMode::kPanels},
                                 {3, 7, LoadMode::kRepack},
                                 {2, 64, LoadMode::kPanels, HugePages::kOn},
                                 {4, 32, LoadMode::kGguf},
                                 {2, 7, LoadMode::kGguf},
                                 {4, 512, LoadMode::kRepack}};

class SameBytesTest : public testing::Test {
 protected:
  SameBytesTest() { setenv("SLUICE_CACHE", cache_.path().c_str(), 1); }
  ~SameBytesTest() override { unsetenv("SLUICE_CACHE"); }

  std::vector<uint64_t> Hashes(const std::string& path, const Setting& setting,
                               std::span<const int32_t> tokens, KvType kv_type,
                               bool portable = false) const {
    RunnerOptions o = TestOptions(tokens.size(), kv_type);
    o.portable = portable;
    o.activations = activations_;
    o.threads = setting.threads;
    o.chunk = setting.chunk;
    o.weights = setting.weights;
    o.placement.huge_pages = setting.huge_pages;
    o.placement.lock = setting.huge_pages == HugePages::kOn;  // granted or not, bytes are bytes
    const std::unique_ptr<ModelRunner> runner = MakeRunner(path, o);
    if (!runner) return {};
    shape_ = KvShapeOf(runner->config(), KvType::kBF16);
    EXPECT_EQ(runner->model().load_mode(), setting.weights) << runner->model().load_note();
    return LogitHashes(*runner, tokens);
  }

  void ExpectSame(const std::string& path, std::span<const int32_t> tokens) const {
    for (const KvType type : kKvTypes) ExpectSame(path, tokens, type);
    // Another KV type has other bytes, other products too: the hashes do see the logits.
    const std::vector<uint64_t> f16 = Hashes(path, kSettings[0], tokens, KvType::kF16);
    const std::vector<uint64_t> bf16 = Hashes(path, kSettings[0], tokens, KvType::kBF16);
    EXPECT_NE(f16, bf16);
    const bool weights = HoldsBf16(path);
    EXPECT_EQ(Hashes(path, kSettings[0], tokens, KvType::kF16, true) == f16, !weights);
    EXPECT_EQ(Hashes(path, kSettings[0], tokens, KvType::kBF16, true) == bf16,
              !weights && !DotsBf16(shape_));
  }

  void ExpectSame(const std::string& path, std::span<const int32_t> tokens, KvType type) const {
    SCOPED_TRACE(KvTypeName(type));
    const std::vector<uint64_t> expected = Hashes(path, kSettings[0], tokens, type);
    ASSERT_EQ(expected.size(), tokens.size());
    for (const Setting& s : std::span(kSettings).subspan(1)) {
      // The settings with a barrier after every op of every row take a part of the rows.
      const size_t n =
          s.threads > 1 && s.chunk < 32 ? std::min<size_t>(tokens.size(), 70) : tokens.size();
      const std::vector<uint64_t> found = Hashes(path, s, tokens.first(n), type);
      ASSERT_EQ(found.size(), n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(found[i], expected[i])
            << "position " << i << ", " << s.threads << " threads, chunks of " << s.chunk << ", "
            << LoadModeName(s.weights);
      }
    }
  }

  Activations activations_ = Activations::kInt8;
  mutable KvShape shape_;  // of the last model's keys and values
  const TempFolder cache_;
};

struct TinyCase {
  const char* name;
  TinyShape shape;
};

class TinySameBytesTest : public SameBytesTest, public testing::WithParamInterface<TinyCase> {};

TEST_P(TinySameBytesTest, Holds) {
  const TempFolder folder;
  const TinyModel model(GetParam().shape);
  ExpectSame(model.Write(folder.path("m.gguf")), model.Tokens(150));
}

INSTANTIATE_TEST_SUITE_P(Models, TinySameBytesTest,
                         testing::Values(TinyCase{"LlamaQ4_0", TinyLlama("Q4_0")},
                                         TinyCase{"LlamaQ8_0", TinyLlama("Q8_0")},
                                         TinyCase{"LlamaQ5_1", TinyLlama("Q5_1")},
                                         TinyCase{"LlamaF32", TinyLlama("F32")},
                                         TinyCase{"Gemma3", TinyGemma3()},
                                         TinyCase{"MixtureQ8_0", TinyMoe()},
                                         TinyCase{"MixtureBF16", TinyMoe("BF16")}),
                         [](const auto& info) { return info.param.name; });

// Products of pairs of bfloat16, also where the CPU has no instruction for them.
class Bf16SameBytesTest : public SameBytesTest, public testing::WithParamInterface<TinyCase> {
 protected:
  // Every logit after every token.
  static std::vector<float> Logits(const std::string& path, std::span<const int32_t> tokens,
                                   Activations activations) {
    RunnerOptions o = TestOptions(tokens.size());
    o.activations = activations;
    const std::unique_ptr<ModelRunner> runner = MakeRunner(path, o);
    std::vector<float> all;
    if (!runner) return all;
    const Status s =
        Evaluator(*runner).Append(tokens, 0, [&](size_t, std::span<const float> logits) {
          all.insert(all.end(), logits.begin(), logits.end());
        });
    EXPECT_TRUE(s.ok()) << s.message();
    return all;
  }
};

TEST_P(Bf16SameBytesTest, Holds) {
  const TempFolder folder;
  const TinyModel model(GetParam().shape);
  const std::string path = model.Write(folder.path("m.gguf"));
  const std::vector<int32_t> tokens = model.Tokens(150);
  activations_ = Activations::kInt8AndBf16;
  ExpectSame(path, tokens, KvType::kF16);
}

TEST_P(Bf16SameBytesTest, IsNearTheFloats) {
  const TempFolder folder;
  const TinyModel model(GetParam().shape);
  const std::string path = model.Write(folder.path("m.gguf"));
  const std::vector<int32_t> tokens = model.Tokens(20);
  const std::vector<float> floats = Logits(path, tokens, Activations::kF32);
  const std::vector<float> found = Logits(path, tokens, Activations::kInt8AndBf16);
  ASSERT_EQ(found.size(), floats.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < floats.size(); ++i) {
    error += std::fabs(found[i] - floats[i]);
    size += std::fabs(floats[i]);
  }
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 0.02 * size);
}

INSTANTIATE_TEST_SUITE_P(Models, Bf16SameBytesTest,
                         testing::Values(TinyCase{"Llama", TinyLlama("BF16")},
                                         TinyCase{"Mixture", TinyMoe("BF16")}),
                         [](const auto& info) { return info.param.name; });

class OracleSameBytesTest : public SameBytesTest,
                            public testing::WithParamInterface<std::string> {};

TEST_P(OracleSameBytesTest, Holds) {
  if (GetParam() == "absent") GTEST_SKIP() << "no shared oracles";
  const boost::json::object oracle = ReadOracle("arch", GetParam());
  const std::string path = (SharedOracles("arch") / oracle.at("gguf").as_string().c_str()).string();
  const auto tokens = boost::json::value_to<std::vector<int32_t>>(
      oracle.at("prompts").as_array().back().at("tokens"));
  ExpectSame(path, tokens);
}

INSTANTIATE_TEST_SUITE_P(All, OracleSameBytesTest, testing::ValuesIn(OracleNames("arch")),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace sluice
