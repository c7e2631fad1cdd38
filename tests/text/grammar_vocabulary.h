// Vocabularies made of given pieces, and texts walked through a constraint byte
// by byte, for the tests of grammars.
#ifndef SLUICE_TESTS_TEXT_GRAMMAR_VOCABULARY_H_
#define SLUICE_TESTS_TEXT_GRAMMAR_VOCABULARY_H_

#include <gtest/gtest.h>
#include <pthread.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/grammar/grammar.h"

namespace sluice {

// Token i is pieces[i]; then one control token, and two that end if `with_ends`.
class PieceTokenizer final : public Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces, bool with_ends = true)
      : pieces_(std::move(pieces)), text_tokens_(pieces_.size()), with_ends_(with_ends) {
    pieces_.insert(pieces_.end(), {"<control>", "<end>", "<eot>"});
  }
  // Every byte as a token, then `more`.
  static std::vector<std::string> WithBytes(const std::vector<std::string>& more = {}) {
    std::vector<std::string> pieces;
    for (int byte = 0; byte < 256; ++byte)
      pieces.push_back(std::string(1, static_cast<char>(byte)));
    pieces.insert(pieces.end(), more.begin(), more.end());
    return pieces;
  }
  int32_t control() const { return static_cast<int32_t>(text_tokens_); }
  int32_t end() const { return control() + 1; }
  size_t text_tokens() const { return text_tokens_; }

  std::vector<int32_t> Encode(std::string_view, const EncodeOptions&) const override { return {}; }
  std::vector<int32_t> EncodeParts(std::span<const Part>, bool) const override { return {}; }
  std::string Decode(std::span<const int32_t> ids, bool) const override {
    std::string text;
    for (const int32_t id : ids) text += Piece(id);
    return text;
  }
  std::string Piece(int32_t id) const override { return pieces_[static_cast<size_t>(id)]; }
  size_t vocab_size() const override { return pieces_.size(); }
  std::string_view text(int32_t id) const override { return pieces_[static_cast<size_t>(id)]; }
  TokenType type(int32_t id) const override {
    return id < control() ? TokenType::kNormal : TokenType::kControl;
  }
  std::string_view model() const override { return "test"; }
  std::string_view pre() const override { return ""; }
  std::optional<int32_t> bos() const override { return std::nullopt; }
  std::optional<int32_t> eos() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }
  bool drops_leading_blank() const override { return false; }
  bool IsEnd(int32_t id) const override { return with_ends_ && id >= end(); }
  std::optional<int32_t> SpecialId(std::string_view) const override { return std::nullopt; }

 private:
  std::vector<std::string> pieces_;
  const size_t text_tokens_;
  const bool with_ends_;
};

inline bool Allows(TokenConstraint& constraint, int32_t id) {
  const size_t i = static_cast<size_t>(id);
  return constraint.Allowed()[i / 64] >> (i % 64) & 1;
}

// One token per byte.
struct Bytes {
  PieceTokenizer tokenizer{PieceTokenizer::WithBytes()};
  std::shared_ptr<const GrammarVocabulary> vocabulary = MakeGrammarVocabulary(tokenizer);

  static Bytes& Get() {
    static Bytes bytes;
    return bytes;
  }
  // How much of `text` fits; sets *ends to whether it may end there.
  size_t Fits(const Grammar& grammar, std::string_view text, bool* ends) {
    const auto constraint = grammar.Start(vocabulary);
    size_t at = 0;
    for (; at < text.size(); ++at) {
      const int32_t id = static_cast<uint8_t>(text[at]);
      if (!Allows(*constraint, id)) break;
      constraint->Accept(id);
    }
    *ends = Allows(*constraint, tokenizer.end());
    return at;
  }
  bool Matches(const Grammar& grammar, std::string_view text) {
    bool ends = false;
    return Fits(grammar, text, &ends) == text.size() && ends;
  }
  bool IsPrefix(const Grammar& grammar, std::string_view text) {
    bool ends = false;
    return Fits(grammar, text, &ends) == text.size();
  }
};

inline std::shared_ptr<const Grammar> MustParse(std::string_view source) {
  auto grammar = Grammar::FromGbnf(source);
  EXPECT_TRUE(grammar.ok()) << source << ": " << grammar.status().message();
  return grammar.ok() ? *grammar : Grammar::JsonObject();
}

// Runs in a thread with a stack of 256 KB, where recursion that depends on the input would end.
inline void OnSmallStack(void (*body)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    reinterpret_cast<void (*)()>(argument)();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, reinterpret_cast<void*>(body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace sluice
#endif  // SLUICE_TESTS_TEXT_GRAMMAR_VOCABULARY_H_
