// Sliding-window layers keep a ring of pages; full layers keep all. Far past
// the window the ring must give what full tables under a mask give.
#include <gtest/gtest.h>

#include "tests/base/temp_folder.h"
#include "tests/model/loaded_model.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

constexpr size_t kContext = 512, kPositions = 400, kChunk = 7;
constexpr size_t kFullLayer = 5;

class RingTest : public testing::Test {
 protected:
  RingTest()
      : tiny_(TinyGemma3()),
        tokens_(tiny_.Tokens(kPositions)),
        model_(tiny_.Write(folder_.path("m.gguf")), kContext, kContext),
        expected_(Fresh(tokens_)) {}

  KvSequence Ring() { return KvSequence(model_.config(), model_.pool(), kContext, kChunk); }

  // With tables as long as the context: nothing is ever overwritten.
  std::vector<std::vector<float>> Fresh(std::span<const int32_t> tokens) {
    KvSequence kv(model_.config(), model_.pool(), kContext, kContext);
    return model_.Append(kv, tokens, kContext);
  }

  const TempFolder folder_;
  TinyModel tiny_;
  std::vector<int32_t> tokens_;
  LoadedModel model_;
  std::vector<std::vector<float>> expected_;
};

TEST_F(RingTest, WrapsFarPastTheWindowAndKeepsTheBytes) {
  KvSequence kv = Ring();
  for (size_t layer = 0; layer < model_.config().layers; ++layer) {
    EXPECT_EQ(kv.ring_pages(layer), layer == kFullLayer ? kContext / kSpan : 2) << layer;
  }
  EXPECT_EQ(model_.Append(kv, tokens_, kChunk), expected_);
  EXPECT_EQ(kv.length(), kPositions);
}

TEST_F(RingTest, OneRowAtATimeGivesTheSameBytes) {
  KvSequence kv(model_.config(), model_.pool(), kContext, 1);
  EXPECT_EQ(model_.Append(kv, tokens_, 1), expected_);
}

TEST_F(RingTest, TheWindowIsSeen) {
  // The same weights, a window that reaches over all: equal until position 15, then not.
  tiny_.SetU32(".attention.sliding_window", kContext);
  LoadedModel wide(tiny_.Write(folder_.path("wide.gguf")), kContext, kContext);
  KvSequence kv(wide.config(), wide.pool(), kContext, kContext);
  const auto logits = wide.Append(kv, std::span(tokens_).first(40), kContext);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(logits[i] == expected_[i], i < 16) << i;
}

TEST_F(RingTest, FullLayersGrowAndClearGivesAllBack) {
  const size_t total = model_.pool().total_pages();
  KvSequence kv = Ring();
  EXPECT_EQ(model_.pool().free_pages(), total);
  size_t taken[2];
  for (size_t i = 0; i < 2; ++i) {
    model_.Append(kv, std::span(tokens_).subspan(i * 200, 200), kChunk);
    taken[i] = total - model_.pool().free_pages();
  }
  EXPECT_EQ(taken[0], 6 * 2 + 4u);  // 6 rings of 2 pages, 200 positions of the full layer
  EXPECT_EQ(taken[1], 6 * 2 + 7u);
  kv.Clear();
  EXPECT_EQ(model_.pool().free_pages(), total);
  EXPECT_EQ(kv.length(), 0u);
  EXPECT_EQ(model_.Append(kv, std::span(tokens_).first(100), kChunk), Fresh({tokens_.data(), 100}));
}

TEST_F(RingTest, EndOfTheContextIsAStatusAndLosesNothing) {
  KvSequence kv(model_.config(), model_.pool(), 100, kChunk);
  model_.Append(kv, std::span(tokens_).first(98), kChunk);
  const Status s = kv.Reserve(3);
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(s.message().find("100"), std::string::npos) << s.message();
  const auto rest = model_.Append(kv, std::span(tokens_).subspan(98, 2), kChunk);
  EXPECT_EQ(rest.back(), expected_[99]);
}

TEST_F(RingTest, AnEmptyPoolIsAStatus) {
  std::unique_ptr<KvPool> pool = *KvPool::Create(model_.pool().shape(), 10);
  KvSequence kv(model_.config(), *pool, kContext, kChunk);
  ASSERT_TRUE(kv.Reserve(64).ok());
  kv.Advance(64);
  EXPECT_EQ(kv.Reserve(1).code(), StatusCode::kOutOfMemory);
  kv.Clear();
  EXPECT_EQ(pool->free_pages(), 10u);
}

TEST_F(RingTest, ACutThatTheRingStillHoldsIsKept) {
  KvSequence kv = Ring();
  model_.Append(kv, tokens_, kChunk);
  kv.Truncate(390);
  ASSERT_EQ(kv.length(), 390u);
  const auto rest = model_.Append(kv, std::span(tokens_).subspan(390), kChunk);
  for (size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i], expected_[390 + i]) << i;
}

TEST_F(RingTest, ACutBeforeTheRingForgetsAll) {
  KvSequence kv = Ring();
  model_.Append(kv, tokens_, kChunk);
  kv.Truncate(200);
  EXPECT_EQ(kv.length(), 0u);
}

TEST_F(RingTest, TruncateIsExactWhereverItKeeps) {
  for (size_t length : {20, 65, 130, 200, 400}) {
    for (size_t cut : {1, 16, 19, 64, 65, 79, 80, 128, 129, 144, 199, 336, 337, 352, 399}) {
      if (cut >= length) continue;
      KvSequence kv = Ring();
      model_.Append(kv, std::span(tokens_).first(length), kChunk);
      kv.Truncate(cut);
      if (kv.length() == 0) continue;
      ASSERT_EQ(kv.length(), cut);
      const auto rest = model_.Append(kv, std::span(tokens_).subspan(cut, 1), kChunk);
      EXPECT_EQ(rest[0], expected_[cut]) << "from " << length << " to " << cut;
    }
  }
}

// A page that a longer sequence wrote over stays lost, however often it is cut.
TEST_F(RingTest, CutsInTwoStepsRememberWhatWasOverwritten) {
  KvSequence kv = Ring();
  model_.Append(kv, std::span(tokens_).first(384), kChunk);  // the ring holds 256 to 383
  kv.Truncate(320);
  ASSERT_EQ(kv.length(), 320u);
  kv.Truncate(266);  // needs 251 on
  EXPECT_EQ(kv.length(), 0u);
}

}  // namespace
}  // namespace sluice
