#include "src/server/late_constraint.h"

#include <gtest/gtest.h>

#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

// Allows one token, and counts.
class OneToken : public TokenConstraint {
 public:
  explicit OneToken(int32_t id) : bits_(5) {
    bits_[static_cast<size_t>(id) / 64] |= 1ull << id % 64;
  }
  std::span<const uint64_t> Allowed() override { return bits_; }
  void Accept(int32_t) override { ++accepted; }
  int accepted = 0;

 private:
  std::vector<uint64_t> bits_;
};

bool Allows(TokenConstraint& constraint, int32_t id) {
  return constraint.Allowed()[static_cast<size_t>(id) / 64] >> id % 64 & 1;
}

TEST(LateConstraint, HoldsFromTheMarkOn) {
  TinyVocab vocab("llama");
  const int32_t end = vocab.Add("</s>", 0, kTypeControl);
  const int32_t first = vocab.AddByteTokens();
  const int32_t half = vocab.Add("x</thi");
  vocab.writer.AddU32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(end));
  const Tokenizer& tokenizer = vocab.Loaded();
  const auto inner = std::make_shared<OneToken>(first + '{');
  LateConstraint constraint(tokenizer, tokenizer.vocab_size(), "</think>", inner);
  EXPECT_TRUE(Allows(constraint, half));
  EXPECT_FALSE(Allows(constraint, end)) << "the answer cannot end before it begins";
  constraint.Accept(half);
  for (const char c : std::string("nk</think")) constraint.Accept(first + c);
  EXPECT_TRUE(Allows(constraint, half));
  EXPECT_EQ(inner->accepted, 0);
  constraint.Accept(first + '>');
  EXPECT_FALSE(Allows(constraint, half));
  EXPECT_TRUE(Allows(constraint, first + '{'));
  constraint.Accept(first + '{');
  EXPECT_EQ(inner->accepted, 1);
}

}  // namespace
}  // namespace sluice
