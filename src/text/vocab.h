// The tokens of one file: texts, types, scores, special ids, and the lookups
// the tokenizers share. Built once by Tokenizer::Load; then any thread.
#ifndef SLUICE_SRC_TEXT_VOCAB_H_
#define SLUICE_SRC_TEXT_VOCAB_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/file/gguf.h"
#include "src/text/tokenizer.h"

namespace sluice {

inline constexpr int32_t kNoToken = -1;
// U+2581, which SPM, UGM and WPM vocabularies write for a blank.
inline constexpr std::string_view kBlankMark = "\xE2\x96\x81";
// Longer tokens are shown but never matched: it bounds the work a hostile vocabulary can cause
// per byte of text. The longest honest tokens have about 1 KB.
inline constexpr size_t kMaxMatchedBytes = 16384;

// Text to id: open addressing, 8 bytes a slot, half full. The keys stay in the file's map.
class TextIndex {
 public:
  void Reserve(size_t count);
  // The first id of a text wins.
  void Insert(std::string_view text, int32_t id, const std::vector<std::string_view>& texts);
  int32_t Find(std::string_view text, const std::vector<std::string_view>& texts) const;

 private:
  struct Slot {
    uint32_t tag = 0;  // high hash bits
    int32_t id = kNoToken;
  };
  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

class Vocab {
 public:
  // Reads tokenizer.ggml.{tokens,scores,token_type,*_token_id,add_*_token}.
  static Result<Vocab> Load(const Gguf& gguf);

  size_t size() const { return texts_.size(); }
  bool Has(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < texts_.size(); }
  std::string_view text(int32_t id) const { return texts_[static_cast<size_t>(id)]; }
  TokenType type(int32_t id) const { return types_[static_cast<size_t>(id)]; }
  float score(int32_t id) const { return scores_.empty() ? 0 : scores_[static_cast<size_t>(id)]; }
  bool has_types() const { return has_types_; }

  // The id of `text`, of whatever type; kNoToken if there is none.
  int32_t Find(std::string_view text) const { return index_.Find(text, texts_); }
  // The same among the types that plain text may become.
  int32_t FindPlain(std::string_view text) const;
  // <0xHH> tokens of byte fallback; kNoToken where missing.
  const std::array<int32_t, 256>& byte_tokens() const { return byte_tokens_; }
  // The byte a <0xHH> token stands for; -1 for any other token.
  int ByteOf(int32_t id) const;
  size_t longest_token_bytes() const { return longest_token_bytes_; }  // of the matched ones

  // tokenizer.ggml.<name>_token_id; kNoToken if absent or out of range.
  int32_t SpecialFromFile(const Gguf& gguf, std::string_view name) const;

 private:
  Status LoadTypes(const Gguf& gguf);
  Status LoadScores(const Gguf& gguf);
  void IndexTexts();

  std::vector<std::string_view> texts_;
  std::vector<TokenType> types_;
  std::vector<float> scores_;  // empty: none in the file
  bool has_types_ = false;
  TextIndex index_;
  std::array<int32_t, 256> byte_tokens_;
  size_t longest_token_bytes_ = 0;
};

// The value of a text that is exactly <0xHH>; -1 for any other.
int ParseByteToken(std::string_view text);

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_VOCAB_H_
