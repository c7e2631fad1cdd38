// Every vocabulary of the shared oracles: the ids of each text, the text of the
// ids, and what leaves the stream decoder after each id.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "src/file/gguf.h"
#include "src/text/tokenizer.h"
#include "tests/text/shared_oracles.h"

namespace sluice {
namespace {

namespace json = boost::json;

std::vector<int32_t> Ids(const json::value& value) {
  std::vector<int32_t> ids;
  for (const json::value& id : value.as_array()) ids.push_back(id.to_number<int32_t>());
  return ids;
}

std::string Base64(const std::string& text) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) continue;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8) bytes.push_back(static_cast<char>(bits >> (count -= 8)));
  }
  return bytes;
}

class TokenizerOracle : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "absent") GTEST_SKIP() << "no shared oracles";
    oracle_ = ReadOracle("tokenizer", GetParam());
    const std::string file(oracle_.at("gguf").as_string());
    auto gguf = Gguf::Open(SharedOracles("tokenizer") / file);
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    gguf_ = *std::move(gguf);
    auto tokenizer = Tokenizer::Load(*gguf_);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    tokenizer_ = *std::move(tokenizer);
  }

  // The ids around the first difference, with their pieces.
  std::string Difference(const std::vector<int32_t>& found, const std::vector<int32_t>& expected) {
    const auto [f, e] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
    std::ostringstream out;
    out << "at id " << f - found.begin();
    const auto show = [&](const char* label, auto at, auto end) {
      out << "; " << label;
      for (int i = 0; i < 5 && at != end; ++i, ++at) {
        out << ' ' << *at << json::serialize(json::value(tokenizer_->text(*at)));
      }
    };
    show("found", f, found.end());
    show("expected", e, expected.end());
    return out.str();
  }

  // `found` is `key` or its documented alternative.
  static void ExpectText(const json::object& entry, const std::string& key,
                         const std::string& found) {
    if (!entry.contains(key)) return;
    const std::string expected(entry.at(key).as_string());
    EXPECT_EQ(found, expected) << entry.at("name") << ' ' << key;
  }

  json::object oracle_;
  std::unique_ptr<Gguf> gguf_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(TokenizerOracle, EveryTextGivesTheReferenceIds) {
  size_t cases = 0;
  for (const json::value& value : oracle_.at("cases").as_array()) {
    const json::object& entry = value.as_object();
    const std::string text = entry.contains("text_b64")
                                 ? Base64(std::string(entry.at("text_b64").as_string()))
                                 : std::string(entry.at("text").as_string());
    const Tokenizer::EncodeOptions options{.add_special = entry.at("add_special").as_bool(),
                                           .parse_special = entry.at("parse_special").as_bool()};
    const std::vector<int32_t> expected = Ids(entry.at("ids"));
    const std::vector<int32_t> found = tokenizer_->Encode(text, options);
    EXPECT_EQ(found == expected, true)
        << entry.at("name") << " add " << options.add_special << " parse " << options.parse_special
        << ' ' << Difference(found, expected);
    ++cases;
  }
  EXPECT_GT(cases, 0u);
}

TEST_P(TokenizerOracle, EveryIdSequenceGivesItsText) {
  for (const json::value& value : oracle_.at("cases").as_array()) {
    const json::object& entry = value.as_object();
    const std::vector<int32_t> ids = Ids(entry.at("ids"));
    ExpectText(entry, "detok", tokenizer_->Decode(ids, false));
    ExpectText(entry, "detok_skip_special", tokenizer_->Decode(ids, true));
  }
}

TEST_P(TokenizerOracle, StreamsWholeCharacters) {
  for (const json::value& value : oracle_.at("streaming").as_array()) {
    const json::object& entry = value.as_object();
    const std::vector<int32_t> ids = Ids(entry.at("ids"));
    StreamDecoder decoder(*tokenizer_, false, StreamDecoder::Start::kContinuation);
    for (size_t i = 0; i < ids.size(); ++i) {
      const json::string& piece = entry.at("pieces_b64").at(i).as_string();
      EXPECT_EQ(tokenizer_->Piece(ids[i]), Base64(std::string(piece))) << ids[i];
      EXPECT_EQ(decoder.Push(ids[i]), std::string(entry.at("emit").at(i).as_string())) << value;
    }
    EXPECT_EQ(decoder.Flush(), std::string(entry.at("flush").as_string())) << value;
  }
}

TEST_P(TokenizerOracle, BadUtf8KeepsTheRestOfTheText) {
  for (const json::value& value : oracle_.at("invalid_utf8_hints").as_array()) {
    const json::object& entry = value.as_object();
    const std::string text = Base64(std::string(entry.at("text_b64").as_string()));
    const std::vector<int32_t> ids = tokenizer_->Encode(text, {});
    const std::string back = tokenizer_->Decode(ids, false);
    for (const char c : text) {
      if (isalnum(static_cast<unsigned char>(c))) {
        EXPECT_NE(back.find(c), std::string::npos) << entry.at("name") << ' ' << back;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerOracle, ::testing::ValuesIn(OracleNames("tokenizer")),
                         [](const auto& param) { return TestName(param.param); });

}  // namespace
}  // namespace sluice
