#include "src/file/gguf.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "src/file/gguf_directory.h"
#include "tests/base/temp_folder.h"
#include "tests/file/small_gguf.h"

namespace sluice {
namespace {

using Bytes = std::vector<uint8_t>;

// Opens `bytes` as a file.
class GgufTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Gguf>> Open(const Bytes& bytes) {
    WriteFile(folder_.path("model.gguf"), bytes);
    return Gguf::Open(folder_.path("model.gguf"));
  }

  // The error of opening `bytes` must be one line that names the file and contains `words`.
  void ExpectError(const Bytes& bytes, const std::vector<std::string>& words) {
    const auto gguf = Open(bytes);
    ASSERT_FALSE(gguf.ok()) << words[0];
    const std::string& message = gguf.status().message();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_NE(message.find("model.gguf: "), std::string::npos) << message;
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
    }
  }

  const TempFolder folder_;
};

TEST_F(GgufTest, ReadsMetadata) {
  const auto file = Open(SmallGguf().Bytes());
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Gguf& gguf = **file;
  EXPECT_EQ(gguf.version(), 3u);
  EXPECT_EQ(gguf.metadata_size(), 10u);
  EXPECT_EQ(gguf.metadata_key(2), "llama.block_count");
  EXPECT_EQ(gguf.String("general.architecture")->value(), "llama");
  EXPECT_EQ(gguf.U64("llama.block_count")->value(), 2u);
  EXPECT_EQ(gguf.U64("x.u64")->value(), uint64_t{1} << 40);
  EXPECT_EQ(gguf.I64("x.i32")->value(), -5);
  EXPECT_EQ(gguf.F64("x.f32")->value(), 0.25);
  EXPECT_EQ(gguf.Bool("x.bool")->value(), true);
  EXPECT_EQ(gguf.Strings("tokenizer.ggml.tokens").value(),
            (std::vector<std::string_view>{"<s>", "", "a", std::string_view("\0b", 2)}));
  EXPECT_EQ(gguf.Floats("tokenizer.ggml.scores").value(), (std::vector<float>{0, -1, -2.5f, 3}));
  EXPECT_EQ(gguf.Integers("tokenizer.ggml.token_type").value(),
            (std::vector<int64_t>{3, 1, 1, -1}));
}

TEST_F(GgufTest, AbsentKeysAreNotErrors) {
  const auto file = Open(SmallGguf().Bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->U64("none").value(), std::nullopt);
  EXPECT_EQ((*file)->String("none").value(), std::nullopt);
  EXPECT_TRUE((*file)->Strings("none").value().empty());
  EXPECT_EQ((*file)->Find("none"), nullptr);
  EXPECT_EQ((*file)->FindTensor("none"), nullptr);
}

TEST_F(GgufTest, WrongTypesAreErrorsThatNameBoth) {
  const auto file = Open(SmallGguf().Bytes());
  ASSERT_TRUE(file.ok());
  const Gguf& gguf = **file;
  EXPECT_EQ(gguf.U64("general.name").status().message(),
            "metadata \"general.name\": expected an integer, found string");
  EXPECT_EQ(gguf.U64("x.bool").status().message(),
            "metadata \"x.bool\": expected an integer, found bool");
  EXPECT_EQ(gguf.Floats("tokenizer.ggml.token_type").status().message(),
            "metadata \"tokenizer.ggml.token_type\": expected array of f32, found array of i32");
  EXPECT_FALSE(gguf.U64("x.i32").ok());  // negative
  EXPECT_FALSE(gguf.F64("x.u64").ok());
  EXPECT_FALSE(gguf.String("x.f32").ok());
  EXPECT_FALSE(gguf.Bool("llama.block_count").ok());
  EXPECT_FALSE(gguf.Strings("tokenizer.ggml.scores").ok());
  EXPECT_FALSE(gguf.Integers("tokenizer.ggml.tokens").ok());
  EXPECT_FALSE(gguf.Strings("general.name").ok());
}

TEST_F(GgufTest, IntegersThatDoNotFitAreErrors) {
  GgufWriter writer;
  writer.AddU64("big", UINT64_MAX);
  const auto file = Open(writer.Bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->U64("big")->value(), UINT64_MAX);
  EXPECT_FALSE((*file)->I64("big").ok());
}

TEST_F(GgufTest, ReadsTensors) {
  const SmallGguf small;
  const auto file = Open(small.Bytes());
  ASSERT_TRUE(file.ok());
  ASSERT_EQ((*file)->tensors().size(), 3u);
  const GgufTensor* matrix = (*file)->FindTensor("matrix.weight");
  ASSERT_NE(matrix, nullptr);
  EXPECT_STREQ(matrix->format->name, "Q4_0");
  EXPECT_EQ(matrix->dims, 2u);
  EXPECT_EQ(matrix->shape[0], 64u);
  EXPECT_EQ(matrix->shape[1], 5u);
  EXPECT_EQ(matrix->Elements(), 320u);
  EXPECT_EQ(Bytes(matrix->data, matrix->data + matrix->bytes), small.matrix);
  const GgufTensor* experts = (*file)->FindTensor("experts.weight");
  ASSERT_NE(experts, nullptr);
  EXPECT_EQ(Bytes(experts->data, experts->data + experts->bytes), small.experts);
  (*file)->DontNeed(*experts);
  (*file)->WillNeed(*experts);
  EXPECT_EQ(experts->data[0], small.experts[0]);
  EXPECT_EQ((*file)->ResidentBytes(), (*file)->file_bytes());
}

TEST_F(GgufTest, ReadsVersion2AndOtherAlignments) {
  for (uint32_t alignment : {8u, 64u, 4096u}) {
    SmallGguf small;
    small.writer = GgufWriter();
    small.writer.set_version(2);
    small.writer.SetAlignment(alignment);
    small.AddTensors();
    const auto file = Open(small.Bytes());
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ((*file)->version(), 2u);
    const GgufTensor* experts = (*file)->FindTensor("experts.weight");
    EXPECT_EQ(Bytes(experts->data, experts->data + experts->bytes), small.experts);
  }
}

TEST_F(GgufTest, KeepsUnknownMetadataByteForByte) {
  const auto file = Open(SmallGguf().Bytes());
  ASSERT_TRUE(file.ok());
  SmallGguf copy;
  copy.writer = GgufWriter();
  for (size_t i = 0; i < (*file)->metadata_size(); ++i) {
    copy.writer.AddValue((*file)->metadata_key(i), (*file)->metadata_value(i));
  }
  copy.AddTensors();
  EXPECT_EQ(copy.Bytes(), SmallGguf().Bytes());
}

TEST_F(GgufTest, WriterFileEqualsWriterBytes) {
  const SmallGguf small;
  ASSERT_TRUE(small.writer.Write(folder_.path("written.gguf")).ok());
  EXPECT_EQ(ReadFile(folder_.path("written.gguf")), small.Bytes());
  EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(GgufTest, NamesForeignFiles) {
  const auto text = [](std::string_view s) { return Bytes(s.begin(), s.end()); };
  ExpectError({}, {"empty"});
  ExpectError(text("GG"), {"GGUF"});
  ExpectError(text("GGUF\x03\0\0\0"), {"too short"});
  ExpectError(text("PK\x03\x04 and more than thirty-two bytes of zip"), {"zip or PyTorch"});
  ExpectError(text("<!DOCTYPE html><html><body>404</body></html>"), {"web page"});
  ExpectError(text("version https://git-lfs.github.com/spec/v1"), {"Git LFS"});
  ExpectError(text("\x1f\x8b\x08 gzip data gzip data gzip data"), {"gzip"});
  ExpectError(text("tjgg of the year twenty twenty-three"), {"before GGUF"});
  ExpectError(text("FUGG of a machine with another order"), {"big-endian"});
  ExpectError(text(std::string_view("\x40\0\0\0\0\0\0\0{\"__metadata__\":{}}", 27)),
              {"safetensors"});
  ExpectError(text("\n\n\n\n lines lines lines lines lines"), {"\\x0A"});
}

TEST_F(GgufTest, NamesOtherVersions) {
  const auto version = [](uint32_t v) {
    Bytes bytes = SmallGguf().Bytes();
    Put(&bytes, 4, v);
    return bytes;
  };
  ExpectError(version(0), {"version 0"});
  ExpectError(version(1), {"version 1", "expected 2 or 3"});
  ExpectError(version(4), {"version 4"});
  ExpectError(version(3u << 24), {"big-endian"});
  ExpectError(version(2u << 24), {"big-endian"});
}

TEST_F(GgufTest, RefusesCountsThatCannotFit) {
  for (uint64_t count : {uint64_t{1000}, uint64_t{1} << 32, UINT64_MAX / 88, UINT64_MAX}) {
    Bytes bytes = SmallGguf().Bytes();
    Put(&bytes, 8, count);
    ExpectError(bytes, {std::to_string(count), "tensors"});
    bytes = SmallGguf().Bytes();
    Put(&bytes, 16, count);
    ExpectError(bytes, {std::to_string(count), "metadata"});
  }
}

TEST_F(GgufTest, RefusesBadMetadata) {
  Bytes bytes = SmallGguf().Bytes();
  const size_t tokens = After(bytes, "tokenizer.ggml.tokens");
  for (uint64_t count : {uint64_t{5000}, UINT64_MAX / 8, UINT64_MAX}) {
    Bytes bad = bytes;
    Put(&bad, tokens + 8, count);
    ExpectError(bad, {"tokenizer.ggml.tokens", std::to_string(count), "past the end"});
  }
  Bytes bad = bytes;
  Put(&bad, tokens + 4, uint32_t{9});
  ExpectError(bad, {"tokenizer.ggml.tokens", "arrays of arrays"});
  Put(&bad, tokens + 4, uint32_t{13});
  ExpectError(bad, {"tokenizer.ggml.tokens", "element type 13"});
  bad = bytes;
  Put(&bad, After(bad, "general.name"), UINT32_MAX);
  ExpectError(bad, {"general.name", "type 4294967295"});
  bad = bytes;
  Put(&bad, After(bad, "general.name") + 4, UINT64_MAX);
  ExpectError(bad, {"general.name", "past the end"});
  bad = bytes;
  bad[After(bad, "x.bool") + 4] = 2;
  ExpectError(bad, {"x.bool", "neither 0 nor 1"});
  bad = bytes;
  Put(&bad, 24, UINT64_MAX);  // length of the first key
  ExpectError(bad, {"metadata entry 0", "past the end"});
  Put(&bad, 24, uint64_t{0});
  ExpectError(bad, {"metadata entry 0", "name of 1 to"});
}

TEST_F(GgufTest, RefusesDuplicates) {
  SmallGguf small;
  small.writer.AddU32("x.f32", 1);
  ExpectError(small.Bytes(), {"metadata key", "x.f32", "twice"});
  SmallGguf other;
  const uint64_t shape[] = {64};
  other.writer.AddTensor("norm.weight", kTypeF32, shape, other.norm);
  ExpectError(other.Bytes(), {"tensor name", "norm.weight", "twice"});
}

TEST_F(GgufTest, RefusesBadAlignment) {
  for (uint32_t alignment : {0u, 1u, 3u, 4u, 13u, 48u, 1u << 21, 1u << 31, UINT32_MAX}) {
    GgufWriter writer;
    writer.AddU32("general.alignment", alignment);
    ExpectError(writer.Bytes(), {"general.alignment", std::to_string(alignment)});
  }
  GgufWriter writer;
  writer.AddI32("general.alignment", 32);
  ExpectError(writer.Bytes(), {"general.alignment", "expected u32, found i32"});
}

// The fields of the entry of matrix.weight: dims u32, shape 2 x u64, type u32, offset u64.
TEST_F(GgufTest, RefusesBadTensors) {
  const Bytes bytes = SmallGguf().Bytes();
  const size_t entry = After(bytes, "matrix.weight");
  const auto with = [&](size_t at, auto value) {
    Bytes bad = bytes;
    Put(&bad, entry + at, value);
    return bad;
  };
  for (uint32_t dims : {0u, 5u, 9u, UINT32_MAX}) {
    ExpectError(with(0, dims), {"matrix.weight", "1 to 4 dimensions", std::to_string(dims)});
  }
  ExpectError(with(4, uint64_t{65}), {"matrix.weight", "65", "Q4_0", "blocks of 32"});
  ExpectError(with(4, uint64_t{1} << 62), {"matrix.weight", "63 bits"});
  ExpectError(with(12, UINT64_MAX), {"matrix.weight", "63 bits"});
  ExpectError(with(12, uint64_t{1} << 50), {"matrix.weight", "cut short"});
  ExpectError(with(20, UINT32_MAX), {"matrix.weight", "type number 4294967295"});
  ExpectError(with(24, uint64_t{257}), {"matrix.weight", "offset 257", "alignment 32"});
  ExpectError(with(24, uint64_t{0}), {"norm.weight", "matrix.weight", "overlap"});
  ExpectError(with(24, uint64_t{128}), {"norm.weight", "matrix.weight", "overlap"});
  ExpectError(with(24, UINT64_MAX - 31), {"matrix.weight", "cut short"});
  ExpectError(with(24, uint64_t{1} << 20), {"matrix.weight", "cut short"});
}

TEST_F(GgufTest, AcceptsTensorsInAnyOrderWithGaps) {
  Bytes bytes = SmallGguf().Bytes();
  // Swap norm (256 bytes at 0) with a copy placed behind everything.
  const size_t entry = After(bytes, "norm.weight");
  const SmallGguf small;
  const size_t data_bytes = 256 + 192 + 224;
  Put(&bytes, entry + 4 + 8 + 4, uint64_t{data_bytes + 64});
  bytes.resize(bytes.size() + 64);
  bytes.insert(bytes.end(), small.norm.rbegin(), small.norm.rend());
  const auto file = Open(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->FindTensor("norm.weight")->data[0], small.norm.back());
}

TEST_F(GgufTest, ZeroDimensionsAreEmptyTensors) {
  SmallGguf small;
  const uint64_t shape[] = {0, uint64_t{1} << 40, 7};
  small.writer.AddTensor("nothing", kTypeQ4_0, shape, {});
  const auto file = Open(small.Bytes());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->FindTensor("nothing")->bytes, 0u);
  EXPECT_EQ((*file)->FindTensor("nothing")->Elements(), 0u);
  (*file)->WillNeed(*(*file)->FindTensor("nothing"));
}

TEST_F(GgufTest, ListsTensorsOfUnknownTypes) {
  SmallGguf small;
  const uint64_t shape[] = {16};
  small.writer.AddTensor("mystery", 200, shape, small.norm);
  small.writer.AddTensor("indices", 26, shape, std::span(small.norm).first(64));  // i32
  const auto file = Open(small.Bytes());
  ASSERT_TRUE(file.ok()) << file.status().message();
  const GgufTensor* mystery = (*file)->FindTensor("mystery");
  EXPECT_EQ(mystery->format, nullptr);
  EXPECT_EQ(mystery->type_id, 200u);
  EXPECT_EQ(mystery->bytes, small.norm.size());  // up to the next tensor
  EXPECT_EQ((*file)->FindTensor("indices")->bytes, 64u);
}

TEST_F(GgufTest, IgnoresBytesAfterTheLastTensor) {
  Bytes bytes = SmallGguf().Bytes();
  bytes.resize(bytes.size() + 1000);
  EXPECT_TRUE(Open(bytes).ok());
}

TEST_F(GgufTest, LongNamesAreAllowed) {
  for (size_t length : {63, 64, 65, 300}) {
    SmallGguf small;
    const uint64_t shape[] = {64};
    small.writer.AddTensor(std::string(length, 'n'), kTypeF32, shape, small.norm);
    EXPECT_TRUE(Open(small.Bytes()).ok());
  }
}

TEST_F(GgufTest, EmptyModelIsReadable) {
  const auto file = Open(GgufWriter().Bytes());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->metadata_size(), 0u);
  EXPECT_TRUE((*file)->tensors().empty());
}

}  // namespace
}  // namespace sluice
