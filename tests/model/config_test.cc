// What a model file says about itself is checked before anything is computed:
// each contradiction is one line that names the key or the tensor.
#include "src/model/config.h"

#include <gtest/gtest.h>

#include "tests/base/temp_folder.h"
#include "tests/model/loaded_model.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

class ConfigTest : public testing::Test {
 protected:
  Status Load(const TinyModel& model) {
    return LoadModel(model.Write(folder_.path("m.gguf")), *team_).status();
  }
  // The error is one line that holds every one of `words`.
  void ExpectError(const TinyModel& model, std::vector<std::string> words) {
    const Status s = Load(model);
    ASSERT_FALSE(s.ok()) << "expected an error about " << words[0];
    EXPECT_EQ(s.message().find('\n'), std::string::npos) << s.message();
    for (const std::string& word : words) {
      EXPECT_NE(s.message().find(word), std::string::npos)
          << "no " << word << " in: " << s.message();
    }
  }

  const TempFolder folder_;
  const std::unique_ptr<ThreadTeam> team_ = *ThreadTeam::Create(1);
};

TEST_F(ConfigTest, ReadsWhatTheFileSays) {
  const TinyModel model(TinyGemma3());
  const std::unique_ptr<Model> loaded = *LoadModel(model.Write(folder_.path("m.gguf")), *team_);
  const Config& c = loaded->config();
  EXPECT_EQ(c.architecture, "gemma3");
  EXPECT_EQ(c.name, "tiny");
  EXPECT_EQ(c.layers, 7u);
  EXPECT_EQ(c.dim, 64u);
  EXPECT_EQ(c.heads, 4u);
  EXPECT_EQ(c.kv_heads, 1u);
  EXPECT_EQ(c.key_dim, 32u);
  EXPECT_EQ(c.vocab, TinyModel::kVocab);
  EXPECT_EQ(c.context, 512u);
  EXPECT_EQ(c.window, 16u);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(c.Windowed(i), i != 5) << i;
  EXPECT_FLOAT_EQ(c.embedding_scale, 8);
}

TEST_F(ConfigTest, PoolingIsAsTheFileSaysElseOfTheLastToken) {
  TinyModel model;
  const auto pooling = [&] {
    return (*LoadModel(model.Write(folder_.path("m.gguf")), *team_))->config().pooling;
  };
  EXPECT_EQ(pooling(), Pooling::kLast);
  model.SetU32(".pooling_type", 1);
  EXPECT_EQ(pooling(), Pooling::kMean);
  model.SetU32(".pooling_type", 4);
  EXPECT_EQ(pooling(), Pooling::kRank);
  model.SetU32(".pooling_type", 5);
  ExpectError(model, {"llama.pooling_type", "5"});
}

TEST_F(ConfigTest, EncodersAreRefused) {
  TinyModel model;
  model.SetBool(".attention.causal", true);
  EXPECT_TRUE(Load(model).ok());
  model.SetBool(".attention.causal", false);
  ExpectError(model, {"llama.attention.causal", "encoder", "only decoders"});
  TinyModel bert;
  bert.set_architecture("bert");
  ExpectError(bert, {"bert is not supported", "supported are", "llama"});
  bert.SetBool("bert.attention.causal", false);
  ExpectError(bert, {"bert is an encoder, and only decoders run here", "supported are", "llama"});
}

TEST_F(ConfigTest, HeadSizesDefaultToTheWidthPerHead) {
  TinyShape shape;
  shape.head_dim = 16;  // 64 / 4
  TinyModel model(shape);
  for (const char* key : {".attention.key_length", ".attention.value_length",
                          ".rope.dimension_count", ".rope.freq_base"}) {
    model.Erase(key);
  }
  ASSERT_TRUE(Load(model).ok());
}

TEST_F(ConfigTest, EveryRequiredKeyIsMissed) {
  for (const char* key :
       {".block_count", ".context_length", ".embedding_length", ".feed_forward_length",
        ".attention.head_count", ".attention.layer_norm_rms_epsilon"}) {
    TinyModel model;
    model.Erase(key);
    ExpectError(model, {std::string("llama") + key, "missing"});
  }
}

struct BadNumber {
  const char* key;
  uint32_t value;
  std::vector<std::string> words;  // besides the value
};

TEST_F(ConfigTest, NumbersOutOfRangeAreNamed) {
  const BadNumber kBad[] = {
      {".attention.head_count", 0, {"llama.attention.head_count"}},
      {".attention.head_count", 0xffffffff, {"llama.attention.head_count"}},
      {".attention.head_count_kv", 0, {"llama.attention.head_count_kv"}},
      {".attention.head_count_kv", 3, {"4 query heads", "multiple"}},
      {".attention.head_count_kv", 8, {"4 query heads", "multiple"}},
      {".block_count", 0, {"llama.block_count"}},
      {".block_count", 4000000000, {"llama.block_count"}},
      {".embedding_length", 0, {"llama.embedding_length"}},
      {".feed_forward_length", 0x80000000, {"llama.feed_forward_length"}},
      {".context_length", 0, {"llama.context_length"}},
      {".attention.key_length", 0, {"llama.attention.key_length"}},
      {".attention.key_length", 12, {"multiples of 8"}},
      {".rope.dimension_count", 31, {"llama.rope.dimension_count", "even"}},
      {".rope.dimension_count", 64, {"llama.rope.dimension_count"}},
  };
  for (const BadNumber& bad : kBad) {
    TinyModel model;
    model.SetU32(bad.key, bad.value);
    std::vector<std::string> words = bad.words;
    words.push_back(std::to_string(bad.value));
    ExpectError(model, words);
  }
}

TEST_F(ConfigTest, NumbersThatMeanNothingAreNamed) {
  TinyModel model;
  model.SetF32(".attention.layer_norm_rms_epsilon", NAN);
  ExpectError(model, {"llama.attention.layer_norm_rms_epsilon", "finite"});
  model = TinyModel();
  model.SetF32(".rope.freq_base", 0);
  ExpectError(model, {"llama.rope.freq_base", "above 0"});
  model = TinyModel();
  model.SetString(".rope.scaling.type", "spiral");
  ExpectError(model, {"llama.rope.scaling.type", "spiral", "yarn"});
  model = TinyModel();
  model.SetString(".block_count", "two");
  ExpectError(model, {"llama.block_count", "string"});
}

TEST_F(ConfigTest, MoreLayersThanTensors) {
  TinyModel model;
  model.SetU32(".block_count", 1000);
  ExpectError(model, {"blk.2.", "missing"});
}

TEST_F(ConfigTest, ExpertsMustFit) {
  TinyModel model(TinyMoe());
  model.SetU32(".expert_used_count", 9);
  ExpectError(model, {"llama.expert_used_count", "9"});
  model = TinyModel(TinyMoe());
  model.SetU32(".expert_used_count", 0);
  ExpectError(model, {"llama.expert_used_count", "0"});
  model = TinyModel(TinyMoe());
  model.SetU32(".expert_count", 7);
  ExpectError(model, {"ffn_gate_inp", "[64, 7]", "[64, 8]"});
  model = TinyModel(TinyMoe());
  model.SetU32(".expert_count", 0xffffffff);
  ExpectError(model, {"llama.expert_count"});
  model = TinyModel(TinyMoe());
  model.SetU32(".expert_group_count", 3);
  ExpectError(model, {"8 experts", "3 groups"});
}

TEST_F(ConfigTest, ArchitectureIsNamed) {
  TinyModel model;
  model.set_architecture("mamba9000");
  ExpectError(model, {"mamba9000", "not supported", "llama", "gemma3"});
  model.set_architecture("");
  ExpectError(model, {"general.architecture"});
  model.set_architecture("evil\n\x1b[2J");
  ExpectError(model, {"not supported"});
  EXPECT_EQ(Load(model).message().find('\x1b'), std::string::npos);
}

TEST_F(ConfigTest, EveryTensorIsMissed) {
  for (const TinyShape& shape : {TinyLlama(), TinyGemma3(), TinyMoe()}) {
    const TinyModel whole(shape);
    for (const auto& [name, tensor] : whole.tensors()) {
      if (name == "output.weight") continue;  // without it the embeddings are tied
      TinyModel model(whole);
      model.tensors().erase(name);
      // Without a gate the MLP's other matrix holds both halves.
      const bool gate = name.find("ffn_gate.weight") != std::string::npos;
      ExpectError(model, {gate ? name.substr(0, 6) + "ffn_up.weight" : name,
                          gate ? "expected shape" : "missing"});
    }
  }
}

TEST_F(ConfigTest, EveryWrongShapeNamesBothShapes) {
  for (const TinyShape& shape : {TinyLlama(), TinyGemma3(), TinyMoe()}) {
    const TinyModel whole(shape);
    for (const auto& [name, tensor] : whole.tensors()) {
      if (name == "token_embd.weight") continue;  // its rows are the vocabulary
      TinyModel model(whole);
      std::vector<uint64_t> more = tensor.shape;
      more.back() += 32;
      model.tensors().erase(name);
      model.AddTensor(name,
                      FindFormat(tensor.type_id)->name == std::string_view("F32") ? "F32" : "Q8_0",
                      more, 1);
      ExpectError(model, {name, "expected", std::to_string(more.back())});
    }
  }
}

TEST_F(ConfigTest, TypesWithoutAKernelAreNamedWithTheirTensor) {
  TinyModel model;
  // A type number that no format has; its size is unknown, so it is the last tensor's.
  model.tensor("token_embd.weight").type_id = 9999;
  ExpectError(model, {"token_embd.weight", "9999"});
  // A known type whose block does not divide the row.
  model = TinyModel();
  model.tensor("blk.0.attn_q.weight").type_id = FindFormat("Q4_K")->gguf_type;
  ExpectError(model, {"blk.0.attn_q.weight"});
  // A quantised norm.
  model = TinyModel();
  model.AddTensor("blk.1.attn_norm.weight", "Q8_0", {64}, 1);
  ExpectError(model, {"blk.1.attn_norm.weight", "Q8_0", "F32"});
}

TEST_F(ConfigTest, HalfPrecisionNormsAreRead) {
  TinyModel model;
  model.AddTensor("blk.1.attn_norm.weight", "F16", {64}, 0.1f, 1);
  model.AddTensor("output_norm.weight", "BF16", {64}, 0.1f, 1);
  EXPECT_TRUE(Load(model).ok());
}

TEST_F(ConfigTest, BytesPerTokenCountWhatIsRead) {
  const TinyModel tiny(TinyMoe("Q8_0"));
  const std::unique_ptr<Model> model = *LoadModel(tiny.Write(folder_.path("m.gguf")), *team_);
  // Q8_0: 34 bytes for 32 values. Two of eight experts, one row of the embedding.
  const uint64_t attention = 64 * (128 + 64 + 64) + 128 * 64;
  const uint64_t experts = 2 * 3 * 64 * 96;
  const uint64_t matrices = 2 * (attention + experts) + 64 * TinyModel::kVocab + 64;
  const uint64_t routers = 2 * 64 * 8 * sizeof(float);
  EXPECT_EQ(model->WeightBytesPerToken(), matrices / 32 * 34 + routers);
  // 2 x layers x kv_heads x head_dim x bytes, for each earlier position.
  EXPECT_EQ(model->KvBytesPerToken(KvType::kF16, 100), 100u * 2 * 2 * 2 * 32 * 2);
}

TEST_F(ConfigTest, WindowedLayersReadNoMoreThanTheirWindow) {
  const TinyModel tiny(TinyGemma3());
  const std::unique_ptr<Model> model = *LoadModel(tiny.Write(folder_.path("m.gguf")), *team_);
  const uint64_t position = 2 * 32 * 4;  // of one layer, f32
  EXPECT_EQ(model->KvBytesPerToken(KvType::kF32, 100), position * (100 + 6 * 16));
  EXPECT_EQ(model->KvBytesPerToken(KvType::kF32, 10), position * 7 * 10);
}

}  // namespace
}  // namespace sluice
