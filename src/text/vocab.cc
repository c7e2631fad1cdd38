#include "src/text/vocab.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

int ParseByteToken(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int high = HexDigit(text[3]), low = HexDigit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void TextIndex::Reserve(size_t count) {
  slots_.assign(std::bit_ceil(std::max<size_t>(count * 2, 16)), Slot());
  mask_ = slots_.size() - 1;
}

void TextIndex::Insert(std::string_view text, int32_t id,
                       const std::vector<std::string_view>& texts) {
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  const uint32_t tag = static_cast<uint32_t>(hash >> 32);
  size_t at = hash & mask_;
  for (; slots_[at].id != kNoToken; at = (at + 1) & mask_) {
    if (slots_[at].tag == tag && texts[static_cast<size_t>(slots_[at].id)] == text) return;
  }
  slots_[at] = {tag, id};
}

int32_t TextIndex::Find(std::string_view text, const std::vector<std::string_view>& texts) const {
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  const uint32_t tag = static_cast<uint32_t>(hash >> 32);
  for (size_t at = hash & mask_; slots_[at].id != kNoToken; at = (at + 1) & mask_) {
    if (slots_[at].tag == tag && texts[static_cast<size_t>(slots_[at].id)] == text) {
      return slots_[at].id;
    }
  }
  return kNoToken;
}

Result<Vocab> Vocab::Load(const Gguf& gguf) {
  Vocab vocab;
  ASSIGN_OR_RETURN(vocab.texts_, gguf.Strings("tokenizer.ggml.tokens"));
  if (vocab.texts_.empty()) {
    return Status(StatusCode::kCorrupt, "no tokenizer.ggml.tokens: expected the vocabulary there");
  }
  if (vocab.texts_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return Status(StatusCode::kCorrupt, "tokenizer.ggml.tokens has " +
                                            std::to_string(vocab.texts_.size()) +
                                            " entries, expected less than 2^31");
  }
  RETURN_IF_ERROR(vocab.LoadTypes(gguf));
  RETURN_IF_ERROR(vocab.LoadScores(gguf));
  vocab.IndexTexts();
  return vocab;
}

Status Vocab::LoadTypes(const Gguf& gguf) {
  types_.assign(texts_.size(), TokenType::kNormal);
  ASSIGN_OR_RETURN(const std::vector<int64_t> types, gguf.Integers("tokenizer.ggml.token_type"));
  if (types.empty()) return Status();
  if (types.size() < texts_.size()) {
    return Status(StatusCode::kCorrupt, "tokenizer.ggml.token_type has " +
                                            std::to_string(types.size()) + " entries, expected " +
                                            std::to_string(texts_.size()) + ", one per token");
  }
  has_types_ = true;
  for (size_t i = 0; i < texts_.size(); ++i) {
    // Other numbers say nothing we know: such a token is plain text.
    if (types[i] >= 1 && types[i] <= 6) types_[i] = static_cast<TokenType>(types[i]);
  }
  return Status();
}

Status Vocab::LoadScores(const Gguf& gguf) {
  ASSIGN_OR_RETURN(scores_, gguf.Floats("tokenizer.ggml.scores"));
  if (!scores_.empty() && scores_.size() < texts_.size()) {
    return Status(StatusCode::kCorrupt, "tokenizer.ggml.scores has " +
                                            std::to_string(scores_.size()) + " entries, expected " +
                                            std::to_string(texts_.size()) + ", one per token");
  }
  // A score that is no number would break the order of the merges.
  for (float& score : scores_) {
    if (std::isnan(score)) score = std::numeric_limits<float>::lowest();
  }
  return Status();
}

void Vocab::IndexTexts() {
  index_.Reserve(texts_.size());
  byte_tokens_.fill(kNoToken);
  for (size_t i = 0; i < texts_.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (texts_[i].empty() || texts_[i].size() > kMaxMatchedBytes) continue;
    longest_token_bytes_ = std::max(longest_token_bytes_, texts_[i].size());
    index_.Insert(texts_[i], id, texts_);
    const int byte = ByteOf(id);
    if (byte >= 0 && byte_tokens_[static_cast<size_t>(byte)] == kNoToken) {
      byte_tokens_[static_cast<size_t>(byte)] = id;
    }
  }
}

int Vocab::ByteOf(int32_t id) const {
  if (has_types_ && type(id) != TokenType::kByte) return -1;
  return ParseByteToken(text(id));
}

int32_t Vocab::FindPlain(std::string_view text) const {
  const int32_t id = Find(text);
  if (id == kNoToken) return kNoToken;
  const TokenType type = this->type(id);
  const bool plain =
      type == TokenType::kNormal || type == TokenType::kUserDefined || type == TokenType::kUnused;
  return plain ? id : kNoToken;
}

int32_t Vocab::SpecialFromFile(const Gguf& gguf, std::string_view name) const {
  const std::string key = "tokenizer.ggml." + std::string(name) + "_token_id";
  // A special id of a wrong type or out of range is as good as none: the vocabulary still works.
  const Result<std::optional<uint64_t>> id = gguf.U64(key);
  if (!id.ok() || !id->has_value() || **id >= texts_.size()) return kNoToken;
  return static_cast<int32_t>(**id);
}

}  // namespace sluice
