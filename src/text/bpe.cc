// BPE (gpt-2, llama-3, qwen, tekken, deepseek ...): the text is cut into words,
// each word starts as its bytes, and neighbours are merged in the order of the
// file's list of merges, leftmost first.
#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "src/base/printable.h"
#include "src/text/pretokenize.h"
#include "src/text/tokenizer_base.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

constexpr uint32_t kNoRank = ~uint32_t{0};

// GPT-2's map of bytes to characters: what prints stands for itself, the rest for U+0100 and up.
struct ByteMap {
  std::array<uint32_t, 256> code_of;
  std::array<int16_t, 512> byte_of;  // -1: no such character
};
constexpr ByteMap MakeByteMap() {
  ByteMap map{};
  for (int16_t& byte : map.byte_of) byte = -1;
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    map.code_of[b] = prints ? b : next++;
    map.byte_of[map.code_of[b]] = static_cast<int16_t>(b);
  }
  return map;
}
constexpr ByteMap kByteMap = MakeByteMap();

struct Merge {
  uint32_t rank = kNoRank;
  int32_t token = kNoToken;
};

// Pair of ids to what it becomes: open addressing, half full at most.
class MergeTable {
 public:
  void Reserve(size_t count) {
    slots_.assign(std::bit_ceil(std::max<size_t>(count + count / 2, 16)), Slot());
    mask_ = slots_.size() - 1;
  }
  // The first rank of a pair wins.
  void Insert(int32_t left, int32_t right, Merge merge) {
    Slot& slot = slots_[Locate(Key(left, right))];
    if (slot.key == kEmpty) slot = {Key(left, right), merge};
  }
  Merge Find(int32_t left, int32_t right) const { return slots_[Locate(Key(left, right))].merge; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };
  static uint64_t Key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t Locate(uint64_t key) const {
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    size_t at = (hash ^ hash >> 32) & mask_;
    while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask_;
    return at;
  }
  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

struct Symbol {
  int32_t token;  // kNoToken: a character without one
  uint32_t begin;
  uint32_t bytes;  // 0: merged away
  int32_t prev;
  int32_t next;
  Merge merge;  // with the next symbol
};

// Memory of one Encode, kept from word to word. A queued merge is its rank (high half) and the
// index of its left symbol.
struct Workspace {
  std::vector<Symbol> symbols;
  std::vector<uint64_t> queue;
  std::string mapped;
};

class BpeTokenizer final : public TokenizerBase {
 public:
  BpeTokenizer(Vocab vocab, std::string_view model) : TokenizerBase(std::move(vocab), model) {}

  Status Init(const Gguf& gguf) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> name, gguf.String("tokenizer.ggml.pre"));
    pre_ = model_ == "gemma4" ? model_ : name.value_or("default");
    rules_ = FindPreTokenizer(pre_);
    if (rules_ == nullptr) {
      return Status(
          StatusCode::kUnsupported,
          "tokenizer.ggml.pre is \"" + Printable(pre_) +
              "\": expected a pre-tokenizer known here, such as llama-bpe, qwen2 or gpt-2");
    }
    RETURN_IF_ERROR(ReadSpecials(gguf, {.add_bos = rules_->add_bos}));
    for (size_t b = 0; b < 256; ++b) {
      std::string text;
      AppendUtf8(kByteMap.code_of[b], text);
      bytes_[b] = rules_->bytes ? vocab_.FindPlain(text) : vocab_.byte_tokens()[b];
    }
    return LoadMerges(gguf);
  }

 private:
  Status LoadMerges(const Gguf& gguf) {
    ASSIGN_OR_RETURN(const std::vector<std::string_view> merges,
                     gguf.Strings("tokenizer.ggml.merges"));
    if (merges.empty()) {
      return Status(StatusCode::kCorrupt, "no tokenizer.ggml.merges: expected them in a BPE file");
    }
    merges_.Reserve(merges.size());
    int32_t token = 0;
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      const std::string_view merge = merges[rank];
      // From 1: the left part may itself be a blank.
      const size_t blank = merge.find(' ', 1);
      if (blank == std::string_view::npos || merge.size() > kMaxMatchedBytes) continue;
      const std::string_view left_text = merge.substr(0, blank);
      const std::string_view right_text = merge.substr(blank + 1);
      token = FindJoint(left_text, right_text, token);
      const int32_t left = vocab_.Find(left_text);
      const int32_t right = vocab_.Find(right_text);
      // A merge that names no token can never produce one.
      if (left == kNoToken || right == kNoToken || token == kNoToken) continue;
      merges_.Insert(left, right, {static_cast<uint32_t>(rank), token});
    }
    return Status();
  }

  // The token of two texts written together. Lists of merges mostly follow the order of the
  // tokens, so the one after `last` is tried first: half of a load is such lookups.
  int32_t FindJoint(std::string_view left, std::string_view right, int32_t last) const {
    for (int32_t id = last; id <= last + 1; ++id) {
      if (!vocab_.Has(id)) continue;
      const std::string_view text = vocab_.text(id);
      if (text.size() == left.size() + right.size() && text.starts_with(left) &&
          text.ends_with(right)) {
        return id;
      }
    }
    std::string joint(left);
    return vocab_.Find(joint += right);
  }

  void EncodePlain(std::string_view text, bool /*opens*/,
                   std::vector<int32_t>& ids) const override {
    std::string owned;
    if (!IsUtf8(text)) text = owned = ReplaceBadUtf8(text);
    if (rules_->nfc) text = owned = Nfc(text);
    if (!rules_->bytes) {
      std::string marked;
      AppendWithBlankMarks(text, marked);
      text = owned = std::move(marked);
    }
    std::vector<uint32_t> ends;
    SplitWords(*rules_, text, ends);
    Workspace work;
    size_t begin = 0;
    for (const uint32_t end : ends) {
      EncodeWord(text.substr(begin, end - begin), work, ids);
      begin = end;
    }
  }

  void EncodeWord(std::string_view word, Workspace& work, std::vector<int32_t>& ids) const {
    if (const int32_t whole = FindWhole(word, work); whole != kNoToken) {
      ids.push_back(whole);
      return;
    }
    StartSymbols(word, work.symbols);
    MergeSymbols(work);
    for (int32_t i = 0; i >= 0; i = work.symbols[static_cast<size_t>(i)].next) {
      Emit(word, work.symbols[static_cast<size_t>(i)], ids);
    }
  }

  // The token that is the word itself, in families that look before they merge.
  int32_t FindWhole(std::string_view word, Workspace& work) const {
    if (!rules_->bytes) {
      // gemma's runs of newlines are tokens that no merge makes.
      const bool newlines = word.find_first_not_of('\n') == std::string_view::npos;
      return newlines ? vocab_.FindPlain(word) : kNoToken;
    }
    if (!rules_->whole_words || word.size() > vocab_.longest_token_bytes()) return kNoToken;
    work.mapped.clear();
    for (const char c : word) AppendUtf8(kByteMap.code_of[static_cast<uint8_t>(c)], work.mapped);
    return vocab_.FindPlain(work.mapped);
  }

  void StartSymbols(std::string_view word, std::vector<Symbol>& symbols) const {
    symbols.clear();
    for (size_t at = 0; at < word.size();) {
      const uint32_t bytes = rules_->bytes ? 1 : DecodeChar(word, at).length;
      const int32_t token = rules_->bytes ? bytes_[static_cast<uint8_t>(word[at])]
                                          : vocab_.FindPlain(word.substr(at, bytes));
      const int32_t i = static_cast<int32_t>(symbols.size());
      symbols.push_back({token, static_cast<uint32_t>(at), bytes, i - 1, i + 1, {}});
      at += bytes;
    }
    symbols.back().next = -1;
  }

  void MergeSymbols(Workspace& work) const {
    std::vector<Symbol>& symbols = work.symbols;
    std::vector<uint64_t>& queue = work.queue;
    queue.clear();
    // Looks at the merge of symbol `left` and the next one.
    const auto consider = [&](int32_t left) {
      Symbol& symbol = symbols[static_cast<size_t>(left)];
      symbol.merge =
          symbol.next < 0
              ? Merge()
              : merges_.Find(symbol.token, symbols[static_cast<size_t>(symbol.next)].token);
      if (symbol.merge.rank == kNoRank) return false;
      queue.push_back(uint64_t{symbol.merge.rank} << 32 | static_cast<uint32_t>(left));
      return true;
    };
    const auto push = [&](int32_t left) {
      if (consider(left)) std::push_heap(queue.begin(), queue.end(), std::greater<>());
    };
    for (size_t i = 0; i < symbols.size(); ++i) consider(static_cast<int32_t>(i));
    std::make_heap(queue.begin(), queue.end(), std::greater<>());
    while (!queue.empty()) {
      const uint64_t best = queue.front();
      std::pop_heap(queue.begin(), queue.end(), std::greater<>());
      queue.pop_back();
      const int32_t left = static_cast<int32_t>(best & 0xFFFFFFFFu);
      Symbol& symbol = symbols[static_cast<size_t>(left)];
      // Stale: a neighbour has changed since it was queued.
      if (symbol.bytes == 0 || symbol.merge.rank != best >> 32) continue;
      Symbol& gone = symbols[static_cast<size_t>(symbol.next)];
      symbol.token = symbol.merge.token;
      symbol.bytes += gone.bytes;
      symbol.next = gone.next;
      gone.bytes = 0;
      if (symbol.next >= 0) symbols[static_cast<size_t>(symbol.next)].prev = left;
      if (symbol.prev >= 0) push(symbol.prev);
      push(left);
    }
  }

  void Emit(std::string_view word, const Symbol& symbol, std::vector<int32_t>& ids) const {
    if (symbol.token != kNoToken) {
      ids.push_back(symbol.token);
      return;
    }
    for (const char c : word.substr(symbol.begin, symbol.bytes)) {
      const int32_t byte = bytes_[static_cast<uint8_t>(c)];
      if (byte != kNoToken) {
        ids.push_back(byte);
      } else if (unknown_ != kNoToken) {
        ids.push_back(unknown_);
        return;
      }
    }
  }

  void AppendPlainPiece(int32_t id, std::string& out) const override {
    const std::string_view text = vocab_.text(id);
    if (!rules_->bytes) {
      const int byte = vocab_.ByteOf(id);
      if (byte >= 0) {
        out.push_back(static_cast<char>(byte));
      } else {
        AppendWithBlanks(text, out);
      }
      return;
    }
    for (size_t at = 0; at < text.size();) {
      const DecodedChar c = DecodeChar(text, at);
      const int byte = c.code < kByteMap.byte_of.size() ? kByteMap.byte_of[c.code] : -1;
      if (byte >= 0) {
        out.push_back(static_cast<char>(byte));
      } else {
        out.append(text, at, c.length);  // not of the map: as written
      }
      at += c.length;
    }
  }

  const PreTokenizer* rules_ = nullptr;
  std::array<int32_t, 256> bytes_;  // the token of each byte
  MergeTable merges_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadBpe(const Gguf& gguf, Vocab vocab) {
  const std::string_view model =
      gguf.String("tokenizer.ggml.model")->value_or("gpt2");  // checked by the caller
  auto tokenizer = std::make_unique<BpeTokenizer>(std::move(vocab), model);
  RETURN_IF_ERROR(tokenizer->Init(gguf));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

}  // namespace sluice
