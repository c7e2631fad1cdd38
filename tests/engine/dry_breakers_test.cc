#include "src/engine/dry_breakers.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice {
namespace {

// Every token is its text; encoding takes the longest that fits.
class ListTokenizer : public Tokenizer {
 public:
  explicit ListTokenizer(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}

  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions&) const override {
    std::vector<int32_t> ids;
    while (!text.empty()) {
      size_t best = tokens_.size();
      for (size_t i = 0; i < tokens_.size(); ++i) {
        const bool longer = best == tokens_.size() || tokens_[i].size() > tokens_[best].size();
        if (text.starts_with(tokens_[i]) && longer) best = i;
      }
      if (best == tokens_.size()) return ids;
      ids.push_back(static_cast<int32_t>(best));
      text.remove_prefix(tokens_[best].size());
    }
    return ids;
  }
  std::vector<int32_t> EncodeParts(std::span<const Part>, bool) const override { return {}; }
  std::string Decode(std::span<const int32_t>, bool) const override { return ""; }
  std::string Piece(int32_t id) const override { return tokens_[id]; }
  size_t vocab_size() const override { return tokens_.size(); }
  std::string_view text(int32_t id) const override { return tokens_[id]; }
  TokenType type(int32_t) const override { return TokenType::kNormal; }
  std::string_view model() const override { return "list"; }
  std::string_view pre() const override { return ""; }
  std::optional<int32_t> bos() const override { return std::nullopt; }
  std::optional<int32_t> eos() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }
  bool drops_leading_blank() const override { return false; }
  bool IsEnd(int32_t) const override { return false; }
  std::optional<int32_t> SpecialId(std::string_view) const override { return std::nullopt; }

 private:
  std::vector<std::string> tokens_;
};

using Breakers = std::vector<std::vector<int32_t>>;

TEST(DryBreakers, AreAllTokensThatContainTheText) {
  const ListTokenizer tokenizer({"a", "\n", ".\n\n", "b:", "\"", "c"});
  const std::vector<std::string> texts = {"\n", ":"};
  EXPECT_EQ(DryBreakers(tokenizer, texts), Breakers({{1}, {2}, {3}}));
}

TEST(DryBreakers, OfSeveralTokensAreSequences) {
  const ListTokenizer tokenizer({"#", "##", "x", "x#"});
  const std::vector<std::string> texts = {"###"};
  EXPECT_EQ(DryBreakers(tokenizer, texts), Breakers({{1, 0}}));
}

TEST(DryBreakers, EmptyTextsBreakNothing) {
  const ListTokenizer tokenizer({"a", "b"});
  const std::vector<std::string> texts = {"", "z"};
  EXPECT_TRUE(DryBreakers(tokenizer, texts).empty());
  EXPECT_TRUE(DryBreakers(tokenizer, {}).empty());
}

}  // namespace
}  // namespace sluice
