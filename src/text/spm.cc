// SPM: the BPE of SentencePiece (llama, mistral, gemma, phi-3). Blanks are
// written U+2581; over the whole text the neighbours whose joint token has the
// highest score are merged, leftmost first on ties; what is no token in the
// end is written byte by byte.
#include <bit>
#include <queue>

#include "src/text/tokenizer_base.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

// A merge that may happen: order of the score in the high half (best first), index of its left
// symbol in the low one, so that the smallest key is next.
using Candidate = uint64_t;
constexpr Candidate kNoCandidate = ~Candidate{0};

Candidate MakeCandidate(float score, size_t left) {
  uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);   // -0 ties with 0
  bits = bits & 0x80000000u ? bits : ~bits & 0x7FFFFFFFu;  // ascending bits: descending score
  return uint64_t{bits} << 32 | left;
}

struct Symbol {
  uint32_t begin;
  uint32_t bytes;  // 0: merged away
  int32_t prev;
  int32_t next;
  int32_t token;        // what it is; kNoToken: not yet looked up, or none
  int32_t with_next;    // what it and the next symbol would be
  Candidate candidate;  // of that merge; older ones in the queue are stale
};

class SpmTokenizer final : public TokenizerBase {
 public:
  explicit SpmTokenizer(Vocab vocab) : TokenizerBase(std::move(vocab), "llama") {}

  Status Init(const Gguf& gguf) {
    pre_ = "default";
    RETURN_IF_ERROR(
        ReadSpecials(gguf, {.bos = 1, .eos = 2, .unknown = 0, .add_bos = true, .add_eos = false}));
    ASSIGN_OR_RETURN(const std::optional<bool> prefix,
                     gguf.Bool("tokenizer.ggml.add_space_prefix"));
    space_prefix_ = prefix.value_or(true);
    drops_leading_blank_ = space_prefix_;
    return Status();
  }

 private:
  void EncodePlain(std::string_view text, bool opens, std::vector<int32_t>& ids) const override {
    std::string marked;
    marked.reserve(text.size() + text.size() / 2);
    if (space_prefix_ && opens) marked.append(kBlankMark);
    AppendWithBlankMarks(text, marked);
    std::vector<Symbol> symbols = Split(marked);
    Merge(marked, symbols);
    for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
      Emit(marked, symbols[static_cast<size_t>(i)], ids);
    }
  }

  void AppendPlainPiece(int32_t id, std::string& out) const override {
    const int byte = vocab_.ByteOf(id);
    if (byte >= 0) {
      out.push_back(static_cast<char>(byte));
    } else {
      AppendWithBlanks(vocab_.text(id), out);
    }
  }

  // One symbol per character; each byte of a bad sequence stands alone.
  static std::vector<Symbol> Split(std::string_view text) {
    std::vector<Symbol> symbols;
    symbols.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const DecodedChar c = DecodeChar(text, at);
      const uint32_t bytes = c.valid ? c.length : 1;
      const int32_t i = static_cast<int32_t>(symbols.size());
      symbols.push_back(
          {static_cast<uint32_t>(at), bytes, i - 1, i + 1, kNoToken, kNoToken, kNoCandidate});
      at += bytes;
    }
    symbols.back().next = -1;
    return symbols;
  }

  // Looks at the merge of symbol `left` and the next one.
  void Consider(std::string_view text, std::vector<Symbol>& symbols, int32_t left) const {
    Symbol& symbol = symbols[static_cast<size_t>(left)];
    symbol.candidate = kNoCandidate;
    if (symbol.next < 0) return;
    const size_t bytes = symbol.bytes + symbols[static_cast<size_t>(symbol.next)].bytes;
    if (bytes > vocab_.longest_token_bytes()) return;
    symbol.with_next = vocab_.FindPlain(text.substr(symbol.begin, bytes));
    if (symbol.with_next == kNoToken) return;
    symbol.candidate = MakeCandidate(vocab_.score(symbol.with_next), static_cast<size_t>(left));
  }

  void Merge(std::string_view text, std::vector<Symbol>& symbols) const {
    std::vector<Candidate> first;
    for (size_t i = 0; i < symbols.size(); ++i) {
      Consider(text, symbols, static_cast<int32_t>(i));
      if (symbols[i].candidate != kNoCandidate) first.push_back(symbols[i].candidate);
    }
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(std::greater<>(),
                                                                                 std::move(first));
    const auto consider = [&](int32_t left) {
      Consider(text, symbols, left);
      const Candidate candidate = symbols[static_cast<size_t>(left)].candidate;
      if (candidate != kNoCandidate) queue.push(candidate);
    };
    while (!queue.empty()) {
      const Candidate candidate = queue.top();
      queue.pop();
      const int32_t left = static_cast<int32_t>(candidate & 0xFFFFFFFFu);
      Symbol& symbol = symbols[static_cast<size_t>(left)];
      if (symbol.bytes == 0 || symbol.candidate != candidate) continue;
      Symbol& gone = symbols[static_cast<size_t>(symbol.next)];
      symbol.bytes += gone.bytes;
      symbol.token = symbol.with_next;
      symbol.next = gone.next;
      gone.bytes = 0;
      if (symbol.next >= 0) symbols[static_cast<size_t>(symbol.next)].prev = left;
      if (symbol.prev >= 0) consider(symbol.prev);
      consider(left);
    }
  }

  void Emit(std::string_view text, const Symbol& symbol, std::vector<int32_t>& ids) const {
    const std::string_view piece = text.substr(symbol.begin, symbol.bytes);
    int32_t token = symbol.token;
    if (token == kNoToken) token = vocab_.FindPlain(piece);
    if (token != kNoToken) {
      ids.push_back(token);
      return;
    }
    for (const char c : piece) {
      const int32_t byte = vocab_.byte_tokens()[static_cast<uint8_t>(c)];
      if (byte != kNoToken) {
        ids.push_back(byte);
      } else if (unknown_ != kNoToken) {
        ids.push_back(unknown_);
        return;
      }
    }
  }

  bool space_prefix_ = true;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadSpm(const Gguf& gguf, Vocab vocab) {
  auto tokenizer = std::make_unique<SpmTokenizer>(std::move(vocab));
  RETURN_IF_ERROR(tokenizer->Init(gguf));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

}  // namespace sluice
