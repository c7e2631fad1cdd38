// Vocabularies of a few tokens, written to a GGUF file and loaded from it, so
// that the tests of this folder need no real model.
#ifndef SLUICE_TESTS_TEXT_TINY_VOCAB_H_
#define SLUICE_TESTS_TEXT_TINY_VOCAB_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/file/gguf.h"
#include "src/file/gguf_writer.h"
#include "src/text/tokenizer.h"
#include "src/text/unicode.h"
#include "tests/base/temp_folder.h"

namespace sluice {

// Token types as in GGUF.
inline constexpr int32_t kTypeNormal = 1, kTypeUnknown = 2, kTypeControl = 3, kTypeUser = 4,
                         kTypeUnused = 5, kTypeByte = 6;

// Add tokens, set keys through `writer`, then Load.
struct TinyVocab {
  explicit TinyVocab(std::string model_name) : model(std::move(model_name)) {}

  int32_t Add(std::string text, float score = 0, int32_t type = kTypeNormal) {
    tokens.push_back(std::move(text));
    scores.push_back(score);
    types.push_back(type);
    return static_cast<int32_t>(tokens.size()) - 1;
  }
  // <0x00> to <0xFF>; returns the id of the first.
  int32_t AddByteTokens() {
    const int32_t first = static_cast<int32_t>(tokens.size());
    for (int b = 0; b < 256; ++b) {
      char text[8];
      snprintf(text, sizeof(text), "<0x%02X>", b);
      Add(text, 0, kTypeByte);
    }
    return first;
  }
  // GPT-2's characters for the 256 bytes, in the order of the bytes.
  int32_t AddByteChars() {
    const int32_t first = static_cast<int32_t>(tokens.size());
    for (int b = 0; b < 256; ++b) Add(ByteChar(b));
    return first;
  }
  static std::string ByteChar(int byte) {
    uint32_t next = 256;
    std::string text;
    for (int b = 0; b <= byte; ++b) {
      const bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      const uint32_t code = prints ? static_cast<uint32_t>(b) : next++;
      if (b == byte) AppendUtf8(code, text);
    }
    return text;
  }
  // Adds the token `left` + `right` and the merge that makes it.
  int32_t AddMerge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return Add(left + right);
  }

  Status Load() {
    writer.AddString("tokenizer.ggml.model", model);
    writer.AddStrings("tokenizer.ggml.tokens", tokens);
    if (with_scores) writer.AddFloats("tokenizer.ggml.scores", scores);
    if (with_types) writer.AddI32s("tokenizer.ggml.token_type", types);
    if (!merges.empty()) writer.AddStrings("tokenizer.ggml.merges", merges);
    const std::string path = folder.path("tiny.gguf");
    RETURN_IF_ERROR(writer.Write(path));
    ASSIGN_OR_RETURN(gguf, Gguf::Open(path));
    ASSIGN_OR_RETURN(tokenizer, Tokenizer::Load(*gguf));
    return Status();
  }
  const Tokenizer& Loaded() {
    if (tokenizer == nullptr) {
      const Status status = Load();
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return *tokenizer;
  }
  std::vector<int32_t> Encode(std::string_view text, Tokenizer::EncodeOptions options = {}) {
    return Loaded().Encode(text, options);
  }
  // The texts of the ids of `text`, joined by '|': what a reader of a test can check.
  std::string Pieces(std::string_view text, Tokenizer::EncodeOptions options = {}) {
    std::string joined;
    for (const int32_t id : Encode(text, options)) {
      if (!joined.empty()) joined += '|';
      joined += tokenizer->text(id);
    }
    return joined;
  }

  std::string model;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  bool with_scores = true;
  bool with_types = true;
  GgufWriter writer;
  TempFolder folder;
  std::unique_ptr<Gguf> gguf;
  std::unique_ptr<Tokenizer> tokenizer;
};

inline constexpr Tokenizer::EncodeOptions kAddSpecial{.add_special = true, .parse_special = false};
inline constexpr Tokenizer::EncodeOptions kParseSpecial{.add_special = false,
                                                        .parse_special = true};

}  // namespace sluice
#endif  // SLUICE_TESTS_TEXT_TINY_VOCAB_H_
