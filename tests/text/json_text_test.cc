// JSON as it leaves the program.
#include "src/text/json_text.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace sluice {
namespace {

TEST(JsonTextTest, NumbersAsPeopleWriteThem) {
  const std::pair<double, const char*> kNumbers[] = {
      {2, "2.0"},           {0, "0.0"},
      {-0.0, "-0.0"},       {0.8, "0.8"},
      {100000, "100000.0"}, {1e14, "100000000000000.0"},
      {1e15, "1e+15"},      {1e-5, "0.00001"},
      {9e-6, "9e-06"},      {-1234.5, "-1234.5"},
      {1e308, "1e+308"},    {NAN, "null"},
      {INFINITY, "null"},   {1 / 3.0, "0.3333333333333333"}};
  for (const auto& [number, text] : kNumbers) EXPECT_EQ(ToJson(number), text);
  std::string out;
  AppendJson(0.1f, &out);
  EXPECT_EQ(out, "0.1");
  EXPECT_EQ(ToJson({{"a", 1}, {"b", {1.5, nullptr, true, "x\xff"}}}),
            "{\"a\":1,\"b\":[1.5,null,true,\"x\xef\xbf\xbd\"]}");
}

TEST(JsonTextTest, EveryDoubleReadsBackAsItself) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    uint64_t bits = random();
    // Every other one of a usual size.
    if (i % 2 == 0) bits = bits >> 12 | (uint64_t{1023 - 20 + bits % 72} << 52);
    double number = 0;
    std::memcpy(&number, &bits, sizeof(number));
    if (!std::isfinite(number)) continue;
    const std::string text = ToJson(number);
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), number) << text;
    EXPECT_LE(text.size(), 26u) << text;
  }
}

}  // namespace
}  // namespace sluice
