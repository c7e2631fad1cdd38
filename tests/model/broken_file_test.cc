// A damaged model file is an error or a model that computes something; never a
// crash, never a long wait. In process, so that the sanitizers see it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "tests/base/temp_folder.h"
#include "tests/model/loaded_model.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

class BrokenFileTest : public testing::Test {
 protected:
  // Loads the file and, if it loads, runs a pass; whether it loaded.
  bool Try(std::span<const uint8_t> bytes, const std::string& what) {
    const auto start = std::chrono::steady_clock::now();
    const std::string path = folder_.path("m.gguf");
    WriteFile(path, bytes);
    Result<std::unique_ptr<Model>> model = LoadModel(path, *team_);
    if (model.ok()) {
      RunAPass(**model);
    } else {
      EXPECT_FALSE(model.status().message().empty()) << what;
      EXPECT_EQ(model.status().message().find('\n'), std::string::npos)
          << what << ": " << model.status().message();
    }
    // A watchdog, generous for a sanitizer on a busy machine.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << what;
    return model.ok();
  }

  void RunAPass(const Model& model) {
    const Config& c = model.config();
    Result<std::unique_ptr<Workspace>> ws = Workspace::Create(c, 4, 1, 64);
    Result<std::unique_ptr<KvPool>> pool =
        KvPool::Create(KvShapeOf(c, KvType::kF16), KvPagesPerSequence(c, 64, 4));
    if (!ws.ok() || !pool.ok()) return;
    KvSequence kv(c, **pool, 64, 4);
    const std::vector<int32_t> tokens(4, 0);
    const std::vector<int32_t> last = {3};
    if (model.position_limit() && model.position_limit() < 4) return;
    ASSERT_TRUE(kv.Reserve(4).ok());
    const BatchSegment segment{&kv, 0, 4, 0};
    std::vector<float> logits(c.vocab);
    model.Forward(*team_, 0, **ws, {tokens, {&segment, 1}, last}, {logits.data()});
  }

  const TempFolder folder_;
  const std::unique_ptr<ThreadTeam> team_ = *ThreadTeam::Create(1);
};

TEST_F(BrokenFileTest, WholeFilesLoad) {
  for (const TinyShape& shape : {TinyLlama(), TinyGemma3(), TinyMoe()}) {
    const TinyModel model(shape);
    EXPECT_TRUE(Try(model.Writer().Bytes(), "whole"));
  }
}

TEST_F(BrokenFileTest, TruncatedAt200Places) {
  const TinyModel model;
  const std::vector<uint8_t> bytes = model.Writer().Bytes();
  for (size_t i = 0; i < 200; ++i) {
    const size_t size = bytes.size() * i / 200;
    EXPECT_FALSE(Try(std::span(bytes).first(size), std::to_string(size) + " bytes"));
  }
  for (size_t cut = 1; cut <= 64; cut += 21) {
    EXPECT_FALSE(Try(std::span(bytes).first(bytes.size() - cut), "without the end"));
  }
}

TEST_F(BrokenFileTest, EveryKeySetToZeroOneMaxOrAnotherType) {
  for (const TinyShape& shape : {TinyLlama(), TinyGemma3(), TinyMoe()}) {
    const TinyModel whole(shape);
    for (const std::string& key : whole.keys()) {
      for (const uint32_t v : {0u, 1u, 2u, 0x7fffffffu, 0xffffffffu}) {
        TinyModel model(whole);
        model.SetU32(key, v);
        Try(model.Writer().Bytes(), key + " = " + std::to_string(v));
      }
      for (const float v : {0.0f, -1.0f, 1e38f, INFINITY}) {
        TinyModel model(whole);
        model.SetF32(key, v);
        Try(model.Writer().Bytes(), key + " = " + std::to_string(v));
      }
      TinyModel model(whole);
      model.SetString(key, std::string("\0\xff\n", 3));
      Try(model.Writer().Bytes(), key + " = a text");
    }
  }
}

TEST_F(BrokenFileTest, EveryTensorWithOtherTypesAndShapes) {
  const TinyModel whole(TinyMoe());
  for (const auto& [name, tensor] : whole.tensors()) {
    for (const uint32_t type : {0u, 1u, 2u, 8u, 12u, 30u, 39u, 41u, 0xffffffffu}) {
      TinyModel model(whole);
      model.tensor(name).type_id = type;
      Try(model.Writer().Bytes(), name + " type " + std::to_string(type));
    }
    for (const uint64_t d : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 62, ~uint64_t{0}}) {
      for (size_t i = 0; i < tensor.shape.size(); ++i) {
        TinyModel model(whole);
        model.tensor(name).shape[i] = d;
        Try(model.Writer().Bytes(), name + " dimension " + std::to_string(d));
      }
    }
  }
}

TEST_F(BrokenFileTest, RandomBytesOfTheHeadOverwritten) {
  const TinyModel model(TinyGemma3());
  const std::vector<uint8_t> bytes = model.Writer().Bytes();
  size_t weights = 0;  // where the head ends, near enough
  for (const auto& [name, t] : model.tensors()) weights += t.bytes.size();
  const size_t head = bytes.size() - weights;
  const uint64_t kValues[] = {0, 1, ~uint64_t{0}};
  for (uint64_t i = 0; i < 500; ++i) {
    std::vector<uint8_t> bad = bytes;
    const size_t at = RandomBits(5, 0, i) % (head - 8), n = i % 2 ? 4 : 8;
    std::memcpy(bad.data() + at, &kValues[i % 3], n);
    Try(bad, "bytes at " + std::to_string(at));
  }
}

}  // namespace
}  // namespace sluice
