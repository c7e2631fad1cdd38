#include "src/server/ollama_reply.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

namespace json = boost::json;

double Seconds(const json::value& value) {
  const Result<std::optional<double>> seconds = ReadKeepAlive(&value);
  return seconds.ok() && *seconds ? **seconds : -12345;
}

TEST(OllamaReplyTest, KeepAliveIsSecondsOrADuration) {
  EXPECT_DOUBLE_EQ(Seconds(300), 300);
  EXPECT_DOUBLE_EQ(Seconds(0), 0);
  EXPECT_DOUBLE_EQ(Seconds(-1), -1);
  EXPECT_DOUBLE_EQ(Seconds(0.5), 0.5);
  EXPECT_DOUBLE_EQ(Seconds("5m"), 300);
  EXPECT_DOUBLE_EQ(Seconds("1h30m"), 5400);
  EXPECT_DOUBLE_EQ(Seconds("1.5h"), 5400);
  EXPECT_DOUBLE_EQ(Seconds("-1m"), -60);
  EXPECT_DOUBLE_EQ(Seconds("250ms"), 0.25);
  EXPECT_DOUBLE_EQ(Seconds("3\xC2\xB5s"), 3e-6);
  EXPECT_DOUBLE_EQ(Seconds("0"), 0);
  EXPECT_DOUBLE_EQ(Seconds("-1"), -1);
  EXPECT_DOUBLE_EQ(Seconds("300"), 300);
}

TEST(OllamaReplyTest, AbsentAndNullAreTheDefault) {
  const json::value null;
  ASSERT_TRUE(ReadKeepAlive(nullptr).ok());
  EXPECT_FALSE(ReadKeepAlive(nullptr)->has_value());
  EXPECT_FALSE(ReadKeepAlive(&null)->has_value());
}

TEST(OllamaReplyTest, OtherTextsAreRefused) {
  for (const char* text : {"", "-", "m", "5", "5x", "5m3", "1..2s", "five", "5 m", "1e3s", "inf"}) {
    const json::value value = json::string(text);
    const bool seconds = std::string(text) == "5";
    EXPECT_EQ(ReadKeepAlive(&value).ok(), seconds) << text;
  }
  const json::value list = json::array{1};
  EXPECT_EQ(ReadKeepAlive(&list).status().code(), StatusCode::kInvalidArgument);
}

TEST(OllamaReplyTest, TimesHaveNineDigitsAndAZone) {
  using std::chrono::nanoseconds;
  const auto at = [](int64_t ns) {
    return Rfc3339(std::chrono::system_clock::time_point(nanoseconds(ns)));
  };
  EXPECT_EQ(at(0), "1970-01-01T00:00:00.000000000Z");
  EXPECT_EQ(at(1709164800'000000005), "2024-02-29T00:00:00.000000005Z");
  EXPECT_EQ(at(-1), "1969-12-31T23:59:59.999999999Z");
}

TEST(OllamaReplyTest, NanosecondsOfOddNumbers) {
  EXPECT_EQ(Nanoseconds(1.5), 1500000000);
  EXPECT_EQ(Nanoseconds(-1), 0);
  EXPECT_EQ(Nanoseconds(NAN), 0);
  EXPECT_GT(Nanoseconds(INFINITY), 0);
}

TEST(OllamaReplyTest, DigestsNameAVersionOfAFile) {
  ModelEntry a{"m", "/x/m.gguf", 100, 7};
  ModelEntry b = a;
  EXPECT_EQ(ModelDigest(a), ModelDigest(b));
  EXPECT_EQ(ModelDigest(a).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(ModelDigest(a).size(), 64u);
  b.modified_s = 8;
  EXPECT_NE(ModelDigest(a), ModelDigest(b));
}

}  // namespace
}  // namespace sluice
