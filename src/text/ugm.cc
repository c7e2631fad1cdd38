// UGM: SentencePiece's unigram model (t5, xlm-r). The text is normalised by the
// file's compiled rules, and of all ways to cover it with tokens the one with
// the highest sum of scores wins (Viterbi); characters no token covers are
// unknown, a run of them once.
#include <algorithm>
#include <limits>

#include "src/text/charsmap.h"
#include "src/text/token_trie.h"
#include "src/text/tokenizer_base.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

constexpr double kUnknownPenalty = 10.0;  // below the worst token, as SentencePiece has it

// The best way to cover the text up to some byte: its last token.
struct Best {
  double score = std::numeric_limits<double>::lowest();  // double, as the references sum
  uint32_t begin = 0;
  int32_t token = kNoToken;  // kNoToken: an unknown character
};

class UgmTokenizer final : public TokenizerBase {
 public:
  explicit UgmTokenizer(Vocab vocab) : TokenizerBase(std::move(vocab), "t5") {}

  Status Init(const Gguf& gguf) {
    pre_ = "default";
    RETURN_IF_ERROR(ReadSpecials(gguf, {.eos = 1, .unknown = 2, .add_eos = true}));
    ASSIGN_OR_RETURN(const std::optional<bool> prefix,
                     gguf.Bool("tokenizer.ggml.add_space_prefix"));
    ASSIGN_OR_RETURN(const std::optional<bool> squeeze,
                     gguf.Bool("tokenizer.ggml.remove_extra_whitespaces"));
    space_prefix_ = prefix.value_or(true);
    squeeze_ = squeeze.value_or(true);
    drops_leading_blank_ = space_prefix_;
    if (const GgufValue* map = gguf.Find("tokenizer.ggml.precompiled_charsmap")) {
      if (map->type != GgufType::kArray ||
          (map->element != GgufType::kU8 && map->element != GgufType::kI8)) {
        return Status(StatusCode::kCorrupt,
                      "tokenizer.ggml.precompiled_charsmap: expected an array of u8");
      }
      ASSIGN_OR_RETURN(charsmap_, Charsmap::Parse(map->bytes));
    }
    AddTokens();
    return Status();
  }

 private:
  void AddTokens() {
    float worst = 0;
    for (size_t i = 0; i < vocab_.size(); ++i) {
      const int32_t id = static_cast<int32_t>(i);
      const TokenType type = vocab_.type(id);
      if (type == TokenType::kNormal) worst = std::min(worst, vocab_.score(id));
      const bool plain = type == TokenType::kNormal || type == TokenType::kUserDefined ||
                         type == TokenType::kUnused;
      if (plain && vocab_.text(id).size() <= kMaxMatchedBytes) trie_.Add(vocab_.text(id), id);
    }
    unknown_score_ = worst - kUnknownPenalty;
  }

  double ScoreOf(int32_t id) const {
    return vocab_.type(id) == TokenType::kUserDefined ? 0.0 : vocab_.score(id);
  }

  void EncodePlain(std::string_view text, bool opens, std::vector<int32_t>& ids) const override {
    const std::string normal = Normalise(text, opens);
    if (normal.empty()) return;
    std::vector<Best> best(normal.size() + 1);  // by end
    best[0].score = 0;
    for (size_t at = 0; at < normal.size();) {
      const size_t next = at + DecodeChar(normal, at).length;
      Extend(normal, at, next, best);
      at = next;
    }
    const size_t first = ids.size();
    bool after_unknown = false;
    for (size_t end = normal.size(); end > 0; end = best[end].begin) {
      const int32_t token = best[end].token;
      if (token != kNoToken) {
        ids.push_back(token);
      } else if (!after_unknown && unknown_ != kNoToken) {
        ids.push_back(unknown_);
      }
      after_unknown = token == kNoToken;
    }
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
  }

  // Tries all tokens that start at `at`; `next` is the end of the character there.
  void Extend(std::string_view text, size_t at, size_t next, std::vector<Best>& best) const {
    const double so_far = best[at].score;
    const auto offer = [&](size_t end, double score, int32_t token) {
      if (score > best[end].score) best[end] = {score, static_cast<uint32_t>(at), token};
    };
    bool covered = false;  // by a token of this one character
    int32_t node = trie_.Root(text[at]);
    for (size_t end = at + 1; node >= 0; ++end) {
      const int32_t token = trie_.Id(node);
      if (token >= 0) {
        covered |= end == next;
        offer(end, so_far + ScoreOf(token), token);
      }
      if (end >= text.size()) break;
      node = trie_.Child(node, text[end]);
    }
    if (!covered) offer(next, so_far + unknown_score_, kNoToken);
  }

  // Rules applied, blanks squeezed and written U+2581, one put in front.
  std::string Normalise(std::string_view text, bool opens) const {
    std::string out;
    out.reserve(text.size() + text.size() / 2);
    bool started = false;
    bool due = space_prefix_ && opens;  // a blank before the next character
    const auto put = [&](char c) {
      if (c == ' ' && squeeze_) {
        due |= started;
        return;
      }
      if (due) out.append(kBlankMark);
      due = false;
      started = true;
      if (c == ' ') {
        out.append(kBlankMark);
      } else {
        out.push_back(c);
      }
    };
    for (size_t at = 0; at < text.size();) {
      const Charsmap::Rule rule = charsmap_.Longest(text.substr(at));
      const DecodedChar c = DecodeChar(text, at);
      const size_t bytes = rule.bytes > 0 ? rule.bytes : c.length;
      const std::string_view as = rule.bytes > 0 ? rule.replacement
                                  : c.valid      ? text.substr(at, bytes)
                                                 : kReplacementUtf8;
      for (const char byte : as) put(byte);
      at += bytes;
    }
    return out;
  }

  void AppendPlainPiece(int32_t id, std::string& out) const override {
    AppendWithBlanks(vocab_.text(id), out);
  }

  TokenTrie trie_;
  Charsmap charsmap_;
  double unknown_score_ = 0;
  bool space_prefix_ = true;
  bool squeeze_ = true;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadUgm(const Gguf& gguf, Vocab vocab) {
  auto tokenizer = std::make_unique<UgmTokenizer>(std::move(vocab));
  RETURN_IF_ERROR(tokenizer->Init(gguf));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

}  // namespace sluice
