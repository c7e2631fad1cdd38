// Text to token ids and back, as the model's own reference tokenizer does it.
// SPM, BPE, WPM and UGM vocabularies of GGUF files. Immutable after Load; any thread.
#ifndef SLUICE_SRC_TEXT_TOKENIZER_H_
#define SLUICE_SRC_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/file/gguf.h"

namespace sluice {

enum class TokenType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

class Tokenizer {
 public:
  // `gguf` must outlive the tokenizer.
  static Result<std::unique_ptr<Tokenizer>> Load(const Gguf& gguf);
  virtual ~Tokenizer() = default;

  struct EncodeOptions {
    bool add_special = false;    // BOS, EOS, CLS, SEP as the file and its family say
    bool parse_special = false;  // the text of a control token becomes that token
  };
  // Total: any byte string tokenizes. Time linear (n log n) in the bytes; no recursion.
  virtual std::vector<int32_t> Encode(std::string_view text,
                                      const EncodeOptions& options) const = 0;
  // Ids of the joined text, where only some stretches may yield control tokens: a chat's frame
  // may, what people wrote into it may not, nor can it spell one together with the frame.
  struct Part {
    std::string_view text;
    bool parse_special;
  };
  virtual std::vector<int32_t> EncodeParts(std::span<const Part> parts, bool add_special) const = 0;

  // The user-visible text of a whole sequence. skip_special drops control tokens.
  virtual std::string Decode(std::span<const int32_t> ids, bool skip_special) const = 0;
  // Raw bytes of one token (no leading blank removed, byte tokens as their byte; control tokens as
  // their text).
  virtual std::string Piece(int32_t id) const = 0;

  virtual size_t vocab_size() const = 0;
  virtual std::string_view text(int32_t id) const = 0;  // as written in the file
  virtual TokenType type(int32_t id) const = 0;
  virtual std::string_view model() const = 0;  // "llama" (SPM), "gpt2" (BPE), "bert", "t5"
  virtual std::string_view pre() const = 0;    // pre-tokenizer name
  // Special ids, if the file names them and they are in range.
  virtual std::optional<int32_t> bos() const = 0;
  virtual std::optional<int32_t> eos() const = 0;
  virtual bool adds_bos() const = 0;
  // True if Decode drops the one blank that the family puts before a text.
  virtual bool drops_leading_blank() const = 0;
  // True for every id that ends generation: EOS, EOT, <end_of_turn>, <|eot_id|>, <|im_end|> ...
  virtual bool IsEnd(int32_t id) const = 0;
  // The id whose text is exactly `text` and which is a control or user-defined token.
  virtual std::optional<int32_t> SpecialId(std::string_view text) const = 0;
};

// Token by token output that never cuts a character: an unfinished UTF-8
// sequence waits, bytes that can never become a character turn into U+FFFD
// (one per maximal invalid part). All Push results plus Flush equal Decode of the whole.
class StreamDecoder {
 public:
  // kText: the ids are a whole text, as for Decode. kContinuation: they go on after a text, so a
  // leading blank is part of them (`sluice run`, whose first generated token is often " Paris").
  enum class Start { kText, kContinuation };
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special, Start start = Start::kText)
      : tokenizer_(tokenizer), skip_special_(skip_special), at_start_(start == Start::kText) {}
  std::string Push(int32_t id);  // text that may leave now
  std::string Flush();           // what is left at the true end

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  bool at_start_;
  std::string pending_;  // bytes of an unfinished character
};

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_TOKENIZER_H_
