#include "src/file/summary.h"

#include <gtest/gtest.h>

#include "tests/base/temp_folder.h"
#include "tests/file/small_gguf.h"

namespace sluice {
namespace {

std::unique_ptr<Gguf> Open(const TempFolder& folder, const GgufWriter& writer) {
  EXPECT_TRUE(writer.Write(folder.path("m.gguf")).ok());
  auto gguf = Gguf::Open(folder.path("m.gguf"));
  EXPECT_TRUE(gguf.ok()) << gguf.status().message();
  return *std::move(gguf);
}

TEST(Summary, ClassesByName) {
  const std::pair<const char*, TensorClass> kCases[] = {
      {"token_embd.weight", TensorClass::kEmbedding},
      {"position_embd.weight", TensorClass::kEmbedding},
      {"token_embd_norm.weight", TensorClass::kNorm},
      {"blk.7.attn_q.weight", TensorClass::kAttention},
      {"blk.7.attn_q.bias", TensorClass::kAttention},
      {"blk.7.attn_norm.weight", TensorClass::kNorm},
      {"blk.7.post_ffw_norm.weight", TensorClass::kNorm},
      {"blk.7.ffn_down.weight", TensorClass::kMlp},
      {"blk.7.ffn_down_exps.weight", TensorClass::kExperts},
      {"blk.7.ffn_gate_inp.weight", TensorClass::kExperts},
      {"output.weight", TensorClass::kOutput},
      {"output_norm.weight", TensorClass::kNorm},
      {"rope_freqs.weight", TensorClass::kOther},
  };
  for (const auto& [name, expected] : kCases) EXPECT_EQ(TensorClassOf(name), expected) << name;
}

TEST(Summary, CountsEachClass) {
  const TempFolder folder;
  const SmallGguf small;
  const auto gguf = Open(folder, small.writer);
  const std::vector<ClassSummary> classes = SummariseClasses(*gguf);
  uint64_t tensors = 0, parameters = 0, bytes = 0;
  for (const ClassSummary& c : classes) {
    tensors += c.tensors;
    parameters += c.parameters;
    bytes += c.bytes;
  }
  EXPECT_EQ(tensors, 3u);
  EXPECT_EQ(parameters, 64u + 64 * 5 + 32 * 2 * 3);
  EXPECT_EQ(bytes, small.norm.size() + small.matrix.size() + small.experts.size());
  EXPECT_EQ(classes[0].tensor_class, TensorClass::kNorm);
  EXPECT_EQ(classes[0].bytes_of_type.at("F32"), 256u);
}

TEST(Summary, NamesTheQuantisation) {
  const TempFolder folder;
  SmallGguf small;
  EXPECT_EQ(QuantisationOf(*Open(folder, small.writer)), "F32");  // most bytes
  small.writer.AddU32("general.file_type", 15);
  EXPECT_EQ(QuantisationOf(*Open(folder, small.writer)), "Q4_K_M");
  SmallGguf guessed;
  guessed.writer.AddU32("general.file_type", 1024 + 7);
  EXPECT_EQ(QuantisationOf(*Open(folder, guessed.writer)), "Q8_0");
  SmallGguf unknown;
  unknown.writer.AddU32("general.file_type", UINT32_MAX);
  EXPECT_EQ(QuantisationOf(*Open(folder, unknown.writer)), "F32");
  EXPECT_EQ(QuantisationOf(*Open(folder, GgufWriter())), "");
}

TEST(Summary, NamesMayBeAbsentOrOfAnotherType) {
  const TempFolder folder;
  GgufWriter writer;
  writer.AddU32("general.name", 7);
  const auto gguf = Open(folder, writer);
  EXPECT_EQ(ArchitectureOf(*gguf), "");
  EXPECT_EQ(NameOf(*gguf), "");
  const SmallGguf small;
  EXPECT_EQ(NameOf(*Open(folder, small.writer)), "small");
}

}  // namespace
}  // namespace sluice
