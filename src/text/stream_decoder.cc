#include "src/text/tokenizer.h"
#include "src/text/unicode.h"

namespace sluice {

std::string StreamDecoder::Push(int32_t id) {
  const TokenType type = tokenizer_.type(id);
  const bool special = type == TokenType::kControl || type == TokenType::kUnknown;
  if (special && skip_special_) return std::string();
  const std::string piece = tokenizer_.Piece(id);
  if (piece.empty()) return std::string();
  // Only a blank that came from a blank mark is the family's; one the user typed stays.
  const bool drop = at_start_ && tokenizer_.drops_leading_blank() && type == TokenType::kNormal &&
                    piece[0] == ' ';
  at_start_ = false;
  pending_.append(piece, drop ? 1 : 0);

  size_t whole = 0;  // bytes of pending_ that may leave
  while (whole < pending_.size()) {
    const DecodedChar c = DecodeChar(pending_, whole);
    if (c.cut_off) break;
    whole += c.length;
  }
  std::string out = ReplaceBadUtf8(std::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return out;
}

std::string StreamDecoder::Flush() {
  std::string out = ReplaceBadUtf8(pending_);
  pending_.clear();
  return out;
}

}  // namespace sluice
