// What the four tokenizers share: cutting special tokens out of a text, adding
// BOS and EOS, the way back to text, the special ids. A kind of vocabulary
// derives from it and turns plain text into ids. Immutable after Load; any thread.
#ifndef SLUICE_SRC_TEXT_TOKENIZER_BASE_H_
#define SLUICE_SRC_TEXT_TOKENIZER_BASE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/file/gguf.h"
#include "src/text/token_trie.h"
#include "src/text/tokenizer.h"
#include "src/text/vocab.h"

namespace sluice {

class TokenizerBase : public Tokenizer {
 public:
  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options) const final;
  std::vector<int32_t> EncodeParts(std::span<const Part> parts, bool add_special) const final;
  std::string Decode(std::span<const int32_t> ids, bool skip_special) const final;
  std::string Piece(int32_t id) const final;

  size_t vocab_size() const final { return vocab_.size(); }
  std::string_view text(int32_t id) const final;
  TokenType type(int32_t id) const final;
  std::string_view model() const final { return model_; }
  std::string_view pre() const final { return pre_; }
  std::optional<int32_t> bos() const final;
  std::optional<int32_t> eos() const final;
  bool adds_bos() const final { return add_bos_; }
  bool drops_leading_blank() const final { return drops_leading_blank_; }
  bool IsEnd(int32_t id) const final;
  std::optional<int32_t> SpecialId(std::string_view text) const final;

 protected:
  // What a family does where the file is silent.
  struct Defaults {
    int32_t bos = kNoToken;
    int32_t eos = kNoToken;
    int32_t unknown = kNoToken;
    bool add_bos = false;
    bool add_eos = false;
  };
  TokenizerBase(Vocab vocab, std::string_view model) : vocab_(std::move(vocab)), model_(model) {}
  // Special ids, flags and the matchers. Once, before anything else.
  Status ReadSpecials(const Gguf& gguf, const Defaults& defaults);

  // Ids of a non-empty text without special tokens. `opens`: it stands at the start or right
  // after a special token, where SPM and UGM put their blank. At most kMaxPartBytes.
  virtual void EncodePlain(std::string_view text, bool opens, std::vector<int32_t>& ids) const = 0;
  // Bytes of a token that is no special one.
  virtual void AppendPlainPiece(int32_t id, std::string& out) const = 0;

  Vocab vocab_;
  std::string_view model_;
  std::string_view pre_;
  int32_t bos_ = kNoToken;
  int32_t eos_ = kNoToken;
  int32_t unknown_ = kNoToken;
  bool add_bos_ = false;
  bool add_eos_ = false;
  bool drops_leading_blank_ = false;

 private:
  void FindEnds(const Gguf& gguf);
  void FindStrippingTokens(const Gguf& gguf);
  // Ids of a text; control tokens are cut out at `markers` only, which are in order.
  void EncodeAround(std::string_view text, std::span<const TokenTrie::Match> markers,
                    std::vector<int32_t>& ids) const;
  size_t SkipStripped(std::string_view text, const TokenTrie::Match& match) const;
  void EncodeSlices(std::string_view text, std::vector<int32_t>& ids) const;
  void AppendPiece(int32_t id, std::string& out) const;
  bool StripsRight(int32_t id) const;

  TokenTrie user_defined_;            // cut out always
  TokenTrie all_special_;             // cut out when special tokens are parsed
  std::vector<int32_t> ends_;         // sorted
  bool strips_right_ = false;         // phi-3: special tokens swallow the blanks after them ...
  std::vector<int32_t> keeps_right_;  // ... except these
};

// The loaders of the four kinds; `vocab` is that of `gguf`.
Result<std::unique_ptr<Tokenizer>> LoadSpm(const Gguf& gguf, Vocab vocab);
Result<std::unique_ptr<Tokenizer>> LoadBpe(const Gguf& gguf, Vocab vocab);
Result<std::unique_ptr<Tokenizer>> LoadWpm(const Gguf& gguf, Vocab vocab);
Result<std::unique_ptr<Tokenizer>> LoadUgm(const Gguf& gguf, Vocab vocab);

// `piece` with each U+2581 as a blank.
void AppendWithBlanks(std::string_view piece, std::string& out);
// `text` with each blank as U+2581.
void AppendWithBlankMarks(std::string_view text, std::string& out);

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_TOKENIZER_BASE_H_
