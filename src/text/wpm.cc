// WPM: BERT's WordPiece. The text is cleaned, lower-cased and stripped of
// accents as the file says, cut at blanks, punctuation and ideographs, and each
// word is covered by the longest tokens from left to right, or is unknown as a
// whole. GGUF writes U+2581 before a word's first piece and drops BERT's "##".
#include <utf8proc.h>

#include "src/text/tokenizer_base.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

constexpr size_t kMaxWordChars = 100;  // longer words are unknown, in BERT too

bool IsIdeograph(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

// All ASCII signs count as punctuation, and beyond ASCII \p{P}.
bool StandsAlone(uint32_t c, uint16_t classes) {
  return (classes & kPunctuation) || (c < 0x80 && (classes & kSymbol)) || IsIdeograph(c);
}

class WpmTokenizer final : public TokenizerBase {
 public:
  explicit WpmTokenizer(Vocab vocab) : TokenizerBase(std::move(vocab), "bert") {}

  Status Init(const Gguf& gguf) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> pre, gguf.String("tokenizer.ggml.pre"));
    pre_ = pre.value_or("default");
    RETURN_IF_ERROR(ReadSpecials(gguf, {.bos = 101, .eos = 102, .unknown = 100}));
    const int32_t cls = vocab_.SpecialFromFile(gguf, "cls");
    const int32_t sep = vocab_.SpecialFromFile(gguf, "seperator");  // spelled so in GGUF
    if (cls != kNoToken) bos_ = cls;
    if (sep != kNoToken) eos_ = sep;
    add_bos_ = bos_ != kNoToken;
    add_eos_ = eos_ != kNoToken;
    drops_leading_blank_ = true;
    ASSIGN_OR_RETURN(const std::optional<bool> lower,
                     gguf.Bool("tokenizer.ggml.normalizer.lowercase"));
    ASSIGN_OR_RETURN(const std::optional<bool> strip,
                     gguf.Bool("tokenizer.ggml.normalizer.strip_accents"));
    lowercase_ = lower.value_or(true);
    strip_accents_ = strip.value_or(lowercase_);
    return Status();
  }

 private:
  void EncodePlain(std::string_view text, bool /*opens*/,
                   std::vector<int32_t>& ids) const override {
    std::string word(kBlankMark);
    size_t chars = 0;
    const auto finish = [&] {
      if (chars > 0) EncodeWord(word, chars, ids);
      word.resize(kBlankMark.size());
      chars = 0;
    };
    const std::vector<uint32_t> codes = Codes(text);
    for (uint32_t c : codes) {
      const uint16_t classes = ClassOf(c);
      const bool blank =
          (classes & kSpace) && (!(classes & kHidden) || c == '\t' || c == '\r' || c == '\n');
      if (blank) {
        finish();
        continue;
      }
      if (c == kReplacement || (classes & kHidden)) continue;
      if (strip_accents_ && (classes & kNonspacing)) continue;
      if (lowercase_) c = static_cast<uint32_t>(utf8proc_tolower(static_cast<int32_t>(c)));
      const bool alone = StandsAlone(c, classes);
      if (alone) finish();
      AppendUtf8(c, word);
      ++chars;
      if (alone) finish();
    }
    finish();
  }

  // Decomposed when accents are to be told from their letters.
  std::vector<uint32_t> Codes(std::string_view text) const {
    if (strip_accents_) return Nfd(text);
    std::vector<uint32_t> codes;
    for (size_t at = 0; at < text.size();) {
      const DecodedChar c = DecodeChar(text, at);
      codes.push_back(c.code);
      at += c.length;
    }
    return codes;
  }

  // `word` starts with the blank mark and holds `chars` characters more.
  void EncodeWord(std::string_view word, size_t chars, std::vector<int32_t>& ids) const {
    const size_t before = ids.size();
    size_t at = 0;
    while (chars <= kMaxWordChars && at < word.size()) {
      size_t bytes = std::min(word.size() - at, vocab_.longest_token_bytes());
      int32_t token = kNoToken;
      for (; bytes > 0; --bytes) {
        const bool inside =
            at + bytes < word.size() && (static_cast<uint8_t>(word[at + bytes]) & 0xC0) == 0x80;
        if (inside) continue;
        token = vocab_.FindPlain(word.substr(at, bytes));
        if (token != kNoToken) break;
      }
      if (token == kNoToken) break;
      ids.push_back(token);
      at += bytes;
    }
    if (at == word.size()) return;
    ids.resize(before);
    if (unknown_ != kNoToken) ids.push_back(unknown_);
  }

  void AppendPlainPiece(int32_t id, std::string& out) const override {
    AppendWithBlanks(vocab_.text(id), out);
  }

  bool lowercase_ = true;
  bool strip_accents_ = true;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadWpm(const Gguf& gguf, Vocab vocab) {
  auto tokenizer = std::make_unique<WpmTokenizer>(std::move(vocab));
  RETURN_IF_ERROR(tokenizer->Init(gguf));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

}  // namespace sluice
