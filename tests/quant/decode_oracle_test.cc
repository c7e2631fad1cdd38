// Every block type of the shared oracles: Decode gives the oracle's float32
// numbers exactly (0 and -0 are one number); the plain quantisers give its bytes.
#include <gtest/gtest.h>
#include <string.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "quant/format.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

fs::path OracleDir() {
  const char* shared = std::getenv("SLUICE_SHARED");
  const fs::path root = shared ? fs::path(shared) : fs::path(SLUICE_TESTDATA "/../../../shared");
  return root / "oracles" / "quants";
}

std::vector<uint8_t> ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<float> ReadFloats(const fs::path& path) {
  const std::vector<uint8_t> bytes = ReadFile(path);
  std::vector<float> floats(bytes.size() / sizeof(float));
  memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

class QuantOracle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(OracleDir() / "index.json")) GTEST_SKIP() << "no shared oracles";
    const std::vector<uint8_t> text = ReadFile(OracleDir() / "index.json");
    index_ = json::parse(std::string(text.begin(), text.end())).as_array();
    ASSERT_FALSE(index_.empty());
  }
  json::array index_;
};

std::string Text(const json::object& entry, const char* key) {
  return std::string(entry.at(key).as_string());
}
size_t Number(const json::object& entry, const char* key) {
  return entry.at(key).to_number<size_t>();
}

TEST_F(QuantOracle, EveryTypeIsKnownWithItsSizes) {
  for (const json::value& value : index_) {
    const json::object& entry = value.as_object();
    SCOPED_TRACE(Text(entry, "type"));
    const Format* format = FindFormat(static_cast<uint32_t>(Number(entry, "ggml_type_id")));
    ASSERT_NE(format, nullptr);
    EXPECT_EQ(format, FindFormat(Text(entry, "type")));
    EXPECT_EQ(format->name, Text(entry, "type"));
    EXPECT_EQ(format->block_values, Number(entry, "block_values"));
    EXPECT_EQ(format->block_bytes, Number(entry, "block_bytes"));
    EXPECT_EQ(format->RowBytes(Number(entry, "cols")), Number(entry, "row_bytes"));
  }
}

TEST_F(QuantOracle, DecodeIsExact) {
  for (const json::value& value : index_) {
    const json::object& entry = value.as_object();
    SCOPED_TRACE(Text(entry, "type"));
    const Format* format = FindFormat(Text(entry, "type"));
    ASSERT_NE(format, nullptr);
    const std::vector<float> want = ReadFloats(OracleDir() / Text(entry, "f32"));
    std::vector<uint8_t> blocks = ReadFile(OracleDir() / Text(entry, "blocks"));
    ASSERT_EQ(blocks.size(), format->RowBytes(want.size()));
    blocks.insert(blocks.begin(), 0);  // blocks may start at any address
    std::vector<float> got(want.size());
    format->decode(blocks.data() + 1, got.size(), got.data());
    const size_t cols = Number(entry, "cols");
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i], want[i]) << "row " << i / cols << " column " << i % cols;
    }
  }
}

TEST_F(QuantOracle, PlainQuantisersGiveTheSameBytes) {
  size_t compared = 0;
  for (const json::value& value : index_) {
    const json::object& entry = value.as_object();
    SCOPED_TRACE(Text(entry, "type"));
    const Format* format = FindFormat(Text(entry, "type"));
    ASSERT_NE(format, nullptr);
    if (!format->encode || Text(entry, "rows_0_3_quantised_by") != "gguf-py") continue;
    const std::vector<float> source = ReadFloats(OracleDir() / Text(entry, "src"));
    const std::vector<uint8_t> want = ReadFile(OracleDir() / Text(entry, "blocks"));
    std::vector<uint8_t> got(format->RowBytes(source.size()));
    format->encode(source.data(), source.size(), got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], want[i]) << "block " << i / format->block_bytes << " byte "
                                 << i % format->block_bytes;
    }
    ++compared;
  }
  EXPECT_GE(compared, 3u);
}

}  // namespace
}  // namespace sluice
