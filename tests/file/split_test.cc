// Models in several files.
#include <gtest/gtest.h>

#include "src/file/gguf.h"
#include "tests/base/temp_folder.h"
#include "tests/file/small_gguf.h"

namespace sluice {
namespace {

class SplitTest : public testing::Test {
 protected:
  static std::string Name(int number, int count) {
    return "m-0000" + std::to_string(number) + "-of-0000" + std::to_string(count) + ".gguf";
  }

  // Part `no` (from 0) of `count` with one tensor "t<tensor>".
  void WritePart(int no, int count, int tensor, int tensor_count) {
    GgufWriter writer;
    if (no == 0) writer.AddString("general.architecture", "llama");
    writer.AddU32("split.no", no);
    writer.AddU32("split.count", count);
    writer.AddI32("split.tensors.count", tensor_count);
    const std::vector<uint8_t> data = Pattern(64, static_cast<uint8_t>(tensor));
    const uint64_t shape[] = {16};
    writer.AddTensor("t" + std::to_string(tensor), kTypeF32, shape, data);
    ASSERT_TRUE(writer.Write(folder_.path(Name(no + 1, count))).ok());
  }

  void WriteThree() {
    for (int no = 0; no < 3; ++no) WritePart(no, 3, no, 3);
  }

  std::string ErrorOf(const std::string& name) {
    const auto gguf = Gguf::Open(folder_.path(name));
    return gguf.ok() ? "opened" : gguf.status().message();
  }

  const TempFolder folder_;
};

TEST_F(SplitTest, AnyPartOpensTheWhole) {
  WriteThree();
  for (int number : {1, 2, 3}) {
    const auto gguf = Gguf::Open(folder_.path(Name(number, 3)));
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    EXPECT_EQ((*gguf)->tensors().size(), 3u);
    EXPECT_EQ((*gguf)->String("general.architecture")->value(), "llama");
    uint64_t bytes = 0;
    for (int part : {1, 2, 3}) bytes += std::filesystem::file_size(folder_.path(Name(part, 3)));
    EXPECT_EQ((*gguf)->file_bytes(), bytes);
    for (int tensor : {0, 1, 2}) {
      const GgufTensor* t = (*gguf)->FindTensor("t" + std::to_string(tensor));
      ASSERT_NE(t, nullptr);
      EXPECT_EQ(t->data[63], 63 + tensor);
      (*gguf)->DontNeed(*t);
    }
  }
}

TEST_F(SplitTest, MissingPartIsNamed) {
  WriteThree();
  std::filesystem::remove(folder_.path(Name(2, 3)));
  EXPECT_NE(ErrorOf(Name(1, 3)).find(Name(2, 3)), std::string::npos);
}

TEST_F(SplitTest, PartOfAnotherSplitIsRefused) {
  WriteThree();
  WritePart(1, 2, 1, 2);
  std::filesystem::rename(folder_.path(Name(2, 2)), folder_.path(Name(2, 3)));
  EXPECT_NE(ErrorOf(Name(1, 3)).find("expected part 2 of 3, found part 2 of 2"), std::string::npos)
      << ErrorOf(Name(1, 3));
}

TEST_F(SplitTest, RepeatedPartIsRefused) {
  WriteThree();
  std::filesystem::copy_file(folder_.path(Name(2, 3)), folder_.path(Name(3, 3)),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(ErrorOf(Name(1, 3)).find("expected part 3 of 3, found part 2 of 3"), std::string::npos);
}

TEST_F(SplitTest, TensorCountIsChecked) {
  for (int no = 0; no < 2; ++no) WritePart(no, 2, no, 5);
  EXPECT_NE(ErrorOf(Name(1, 2)).find("5 tensors, the parts hold 2"), std::string::npos);
}

TEST_F(SplitTest, TensorInTwoPartsIsRefused) {
  for (int no = 0; no < 2; ++no) WritePart(no, 2, 7, 2);
  EXPECT_NE(ErrorOf(Name(1, 2)).find("\"t7\" appears twice"), std::string::npos);
}

TEST_F(SplitTest, RenamedPartSaysWhichNameItNeeds) {
  WriteThree();
  std::filesystem::rename(folder_.path(Name(1, 3)), folder_.path("other.gguf"));
  EXPECT_NE(ErrorOf("other.gguf").find("-00001-of-00003.gguf"), std::string::npos)
      << ErrorOf("other.gguf");
}

TEST_F(SplitTest, HugeCountFailsAtTheFirstMissingPart) {
  GgufWriter writer;
  writer.AddU64("split.count", UINT64_MAX);
  ASSERT_TRUE(writer.Write(folder_.path(Name(1, 3))).ok());
  EXPECT_NE(ErrorOf(Name(1, 3)), "opened");
}

}  // namespace
}  // namespace sluice
