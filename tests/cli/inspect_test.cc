// sluice inspect and sluice models on small files.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>

#include "tests/base/temp_folder.h"
#include "tests/cli/run_sluice.h"
#include "tests/file/small_gguf.h"

namespace sluice {
namespace {

class InspectTest : public testing::Test {
 protected:
  ProgramResult Run(std::vector<std::string> arguments) {
    return RunSluice(std::move(arguments), {{"SLUICE_MODELS", folder_.path("models")},
                                            {"SLUICE_CACHE", folder_.path("cache")}});
  }
  std::string Write(const GgufWriter& writer, const std::string& name) {
    std::filesystem::create_directories(folder_.path("models"));
    EXPECT_TRUE(writer.Write(folder_.path("models/" + name)).ok());
    return folder_.path("models/" + name);
  }

  const TempFolder folder_;
};

TEST_F(InspectTest, DescribesAFileThatCannotRun) {
  const SmallGguf small;
  const ProgramResult result =
      Run({"inspect", Write(small.writer, "m.gguf"), "--json", "--tensors"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const boost::json::object o = boost::json::parse(result.out).as_object();
  EXPECT_EQ(o.at("architecture").as_string(), "llama");
  EXPECT_EQ(o.at("name").as_string(), "small");
  EXPECT_EQ(o.at("parameters").to_number<uint64_t>(), 64u + 320 + 192);
  EXPECT_EQ(o.at("runs").as_bool(), false);
  EXPECT_FALSE(o.at("error").as_string().empty());
  EXPECT_EQ(o.at("tensors").as_array().size(), 3u);
  EXPECT_EQ(o.at("tensors").at(1).at("format").as_string(), "Q4_0");
  const boost::json::object& metadata = o.at("metadata").as_object();
  EXPECT_EQ(metadata.at("x.i32").to_number<int>(), -5);
  EXPECT_EQ(metadata.at("x.bool").as_bool(), true);
  EXPECT_EQ(metadata.at("tokenizer.ggml.tokens").at("count").to_number<int>(), 4);
  EXPECT_EQ(metadata.at("tokenizer.ggml.tokens").at("first").at(3).as_string(), "\\x00b");
}

TEST_F(InspectTest, TextShowsUnknownMetadataOnOneLineEach) {
  SmallGguf small;
  small.writer.AddString("odd.key", "line\nline\x1b[31m\xff");
  small.writer.AddF32("odd.nan", NAN);
  const ProgramResult result = Run({"inspect", Write(small.writer, "m.gguf")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("  odd.key = \"line\\x0Aline\\x1B[31m\\xFF\"\n"), std::string::npos);
  const ProgramResult json = Run({"inspect", "m", "--json"});
  const boost::json::object o = boost::json::parse(json.out).as_object();
  EXPECT_EQ(o.at("metadata").at("odd.nan").as_string(), "nan");
}

TEST_F(InspectTest, DumpsFloats) {
  const SmallGguf small;
  const std::string path = Write(small.writer, "m.gguf");
  const ProgramResult norm = Run({"inspect", path, "--dump", "norm.weight"});
  ASSERT_EQ(norm.exit_code, 0) << norm.err;
  EXPECT_EQ(norm.out, std::string(small.norm.begin(), small.norm.end()));
  const ProgramResult matrix = Run({"inspect", path, "--dump", "matrix.weight"});
  std::vector<float> expected(320);
  FindFormat(kTypeQ4_0)->decode(small.matrix.data(), 320, expected.data());
  ASSERT_EQ(matrix.out.size(), 320 * sizeof(float));
  EXPECT_EQ(std::memcmp(matrix.out.data(), expected.data(), matrix.out.size()), 0);
  EXPECT_TRUE(Run({"inspect", path, "--dump", "none"}).IsOneLineError(1));
}

TEST_F(InspectTest, DumpsPlainIntegersAndRefusesUnknownTypes) {
  GgufWriter writer;
  const std::vector<uint8_t> bytes = {0xfe, 0xff, 0xff, 0xff, 7, 0, 0, 0};
  const uint64_t shape[] = {2};
  writer.AddTensor("i32", 26, shape, bytes);
  writer.AddTensor("odd", 200, shape, bytes);
  const std::string path = Write(writer, "m.gguf");
  const ProgramResult result = Run({"inspect", path, "--dump", "i32"});
  const float expected[] = {-2, 7};
  ASSERT_EQ(result.out.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(result.out.data(), expected, sizeof(expected)), 0);
  const ProgramResult odd = Run({"inspect", path, "--dump", "odd"});
  EXPECT_TRUE(odd.IsOneLineError(1)) << odd.err;
  EXPECT_NE(odd.err.find("type 200"), std::string::npos);
}

TEST_F(InspectTest, BrokenFilesAreOneLineErrors) {
  const SmallGguf small;
  const std::vector<uint8_t> whole = small.Bytes();
  for (size_t i = 0; i < 40; ++i) {
    WriteFile(folder_.path("cut.gguf"), std::span(whole).first(i * (whole.size() - 64) / 40));
    const ProgramResult result = Run({"inspect", folder_.path("cut.gguf")});
    EXPECT_TRUE(result.IsOneLineError(1)) << i << ": " << result.err;
  }
  EXPECT_TRUE(Run({"inspect", "none"}).IsOneLineError(1));
  EXPECT_TRUE(Run({"inspect", folder_.path()}).IsOneLineError(1));
}

TEST_F(InspectTest, ModelsListsTheFolder) {
  EXPECT_EQ(Run({"models", "--json"}).out, "[]\n");
  const SmallGguf small;
  Write(small.writer, "b.gguf");
  GgufWriter part;
  part.AddU32("split.count", 2);
  part.AddU32("split.no", 0);
  part.AddU32("split.tensors.count", 0);
  Write(part, "a-00001-of-00002.gguf");
  GgufWriter second;
  second.AddU32("split.count", 2);
  second.AddU32("split.no", 1);
  Write(second, "a-00002-of-00002.gguf");
  WriteFile(folder_.path("models/broken.gguf"), Pattern(100, 0));
  WriteFile(folder_.path("models/notes.txt"), Pattern(100, 0));
  const ProgramResult result = Run({"models", "--json"});
  const boost::json::array list = boost::json::parse(result.out).as_array();
  ASSERT_EQ(list.size(), 3u) << result.out;
  EXPECT_EQ(list[0].at("name").as_string(), "a");
  EXPECT_EQ(list[0].at("bytes").to_number<uint64_t>(), part.Bytes().size() + second.Bytes().size());
  EXPECT_EQ(list[1].at("architecture").as_string(), "llama");
  EXPECT_TRUE(list[2].as_object().contains("error"));
  EXPECT_EQ(Run({"models"}).exit_code, 0);
}

TEST_F(InspectTest, NamesFindModels) {
  const SmallGguf small;
  Write(small.writer, "Some-Model-q4_0.gguf");
  for (const char* name :
       {"Some-Model-q4_0", "some-model-q4_0.gguf", "some-model", "SOME-MODEL:Q4_0"}) {
    EXPECT_EQ(Run({"inspect", name}).exit_code, 0) << name;
  }
  EXPECT_TRUE(Run({"inspect", "some-mod"}).IsOneLineError(1));
  Write(small.writer, "some-model-q8_0.gguf");
  const ProgramResult two = Run({"inspect", "some-model"});
  EXPECT_TRUE(two.IsOneLineError(1));
  EXPECT_NE(two.err.find("Some-Model-q4_0, some-model-q8_0"), std::string::npos) << two.err;
  EXPECT_NE(Run({"inspect"}).err.find("sluice pull"), std::string::npos);
}

}  // namespace
}  // namespace sluice
