// One block of each format, worked by hand from the picture at the top of its
// file: a few bytes set, everything else zero, a few weights looked at. Needs no
// oracle, and covers the fields that decide a weight: scales, bits, signs, order.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quant/format.h"

namespace sluice {
namespace {

struct Case {
  const char* format;
  std::vector<std::pair<size_t, int>> bytes;      // offset, value; the rest is 0
  std::vector<std::pair<size_t, float>> weights;  // index, value
};

// f16: 1 = 3c00, 2 = 4000, 4 = 4400, 8 = 4800, 0.5 = 3800, little endian.
const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"F32", {{2, 0xc0}, {3, 0x3f}}, {{0, 1.5f}}},
      {"F16", {{1, 0xbe}}, {{0, -1.5f}}},
      {"F16", {{0, 0x01}}, {{0, 0x1p-24f}}},
      {"BF16", {{0, 0xc0}, {1, 0x3f}}, {{0, 1.5f}}},
      {"Q8_0", {{1, 0x38}, {2, 0x80}, {33, 0x7f}}, {{0, -64}, {1, 0}, {31, 63.5f}}},
      {"Q8_0", {{0, 0x01}, {2, 3}}, {{0, 3 * 0x1p-24f}}},
      {"Q4_0", {{1, 0x40}, {2, 0x1f}}, {{0, 14}, {16, -14}, {1, -16}}},
      {"Q4_1", {{1, 0x40}, {3, 0x3c}, {7, 0x5a}}, {{3, 21}, {19, 11}, {0, 1}}},
      {"Q5_0",
       {{1, 0x3c}, {2, 0x01}, {5, 0x80}, {6, 0x03}, {21, 0x40}},
       {{0, 3}, {16, -16}, {15, -16}, {31, 4}}},
      {"Q5_1",
       {{1, 0x3c}, {3, 0x40}, {4, 0x01}, {7, 0x80}, {8, 0x03}, {23, 0x40}},
       {{0, 21}, {16, 2}, {15, 2}, {31, 22}}},
      {"Q2_K",
       {{81, 0x3c}, {83, 0x3c}, {0, 0x23}, {6, 0x01}, {9, 0x12}, {16, 3}, {21, 0x80}, {64, 1}},
       {{0, 7}, {1, -2}, {101, 2}, {144, 1}, {255, 0}}},
      {"Q3_K",
       {{109, 0x3c}, {96, 0x01}, {104, 0x02}, {0, 0x01}, {32, 3}},
       {{0, 3}, {1, -4}, {16, 128}, {255, 128}}},
      {"Q4_K",
       {{1, 0x3c}, {3, 0x3c}, {4, 0x45}, {5, 1}, {8, 2}, {12, 0x14}, {16, 0x73}, {82, 0x02}},
       {{0, 13}, {1, -2}, {32, 7}, {130, 39}, {128, -1}, {255, 0}}},
      {"Q5_K",
       {{1, 0x3c}, {3, 0x3c}, {4, 0x45}, {8, 2}, {12, 0x14}, {16, 0x11}, {48, 0x03}},
       {{0, 93}, {1, -2}, {128, 319}, {129, -1}}},
      {"Q6_K",
       {{209, 0x3c},
        {192, 2},
        {193, 0xff},
        {204, 1},
        {0, 0x0f},
        {128, 0x02},
        {64, 0x50},
        {160, 0x10}},
       {{0, 30}, {1, -64}, {16, 32}, {192, -11}, {255, 0}}},
      {"IQ4_NL", {{1, 0x3c}, {2, 0x8f}}, {{0, 113}, {16, 1}, {1, -127}}},
      {"IQ4_XS", {{1, 0x3c}, {2, 0x02}, {4, 0x01}, {8, 0x8f}}, {{0, 113}, {16, 1}, {32, 4064}}},
      {"MXFP4", {{0, 128}, {1, 0x97}}, {{0, 12}, {16, -1}, {1, 0}}},
      {"MXFP4", {{0, 0}, {1, 0x01}}, {{0, 0x1p-128f}}},
      {"NVFP4", {{0, 0x38}, {3, 0x40}, {4, 0xf2}, {35, 0x31}}, {{0, 1}, {8, -6}, {55, 1}, {63, 3}}},
      {"TQ1_0", {{53, 0x3c}, {0, 171}, {51, 29}}, {{0, 1}, {32, -1}, {243, -1}, {247, 0}}},
      {"TQ2_0", {{65, 0x3c}, {0, 0xe4}, {32, 2}}, {{0, -1}, {32, 0}, {64, 1}, {96, 2}, {128, 1}}},
      {"IQ2_XXS", {{1, 0x44}, {3, 1}, {6, 1}}, {{0, -4}, {1, 4}, {7, -4}, {8, 21.5f}}},
      {"IQ2_XS", {{1, 0x44}, {2, 1}, {3, 2}, {66, 0x10}}, {{0, -21.5f}, {1, 4}, {7, -4}, {16, 12}}},
      {"IQ2_S", {{1, 0x44}, {2, 1}, {34, 0x80}, {74, 0x10}}, {{0, 21.5f}, {7, -4}, {16, 12}}},
      {"IQ3_XXS", {{1, 0x40}, {3, 1}, {66, 0x10}}, {{0, 2}, {4, -10}, {5, 2}, {7, -2}}},
      {"IQ3_S", {{1, 0x3c}, {3, 1}, {74, 0x10}, {106, 0x20}}, {{0, 1}, {4, -3}, {5, 1}, {32, 5}}},
      {"IQ1_S",
       {{1, 0x48}, {6, 1}, {35, 0x80}, {37, 0x10}},
       {{0, -9}, {32, 27}, {33, -21}, {64, -7}}},
      {"IQ1_M",
       {{0, 1}, {33, 0x08}, {48, 1}, {53, 0x80}, {55, 0x40}},
       {{0, 27}, {1, -21}, {16, -9}, {24, -7}}},
  };
  return cases;
}

TEST(HandWorked, BlocksDecodeAsPictured) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.format);
    const Format* format = FindFormat(c.format);
    ASSERT_NE(format, nullptr);
    std::vector<uint8_t> block(format->block_bytes);
    for (const auto& [offset, value] : c.bytes) block.at(offset) = static_cast<uint8_t>(value);
    std::vector<float> out(format->block_values);
    format->decode(block.data(), out.size(), out.data());
    for (const auto& [index, value] : c.weights) EXPECT_EQ(out.at(index), value) << index;
  }
}

TEST(HandWorked, NoFormatIsForgotten) {
  std::set<std::string> seen;
  for (const Case& c : Cases()) seen.insert(c.format);
  for (const Format* format : Formats()) EXPECT_TRUE(seen.count(format->name)) << format->name;
}

// The second block of a row starts where the first ends.
TEST(HandWorked, BlocksFollowOneAnother) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.format);
    const Format* format = FindFormat(c.format);
    ASSERT_NE(format, nullptr);
    std::vector<uint8_t> row(3 * format->block_bytes);
    for (const auto& [offset, value] : c.bytes) {
      row.at(format->block_bytes + offset) = static_cast<uint8_t>(value);
    }
    std::vector<float> out(3 * format->block_values);
    format->decode(row.data(), out.size(), out.data());
    for (const auto& [index, value] : c.weights) {
      EXPECT_EQ(out.at(format->block_values + index), value) << index;
    }
  }
}

}  // namespace
}  // namespace sluice
