#include "src/engine/dry_breakers.h"

namespace sluice {

std::vector<std::vector<int32_t>> DryBreakers(const Tokenizer& tokenizer,
                                              std::span<const std::string> texts) {
  std::vector<std::vector<int32_t>> breakers;
  const auto contains_any = [&](const std::string& piece) {
    for (const std::string& text : texts) {
      if (!text.empty() && piece.find(text) != std::string::npos) return true;
    }
    return false;
  };
  for (size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto token = static_cast<int32_t>(id);
    if (contains_any(tokenizer.Piece(token))) breakers.push_back({token});
  }
  for (const std::string& text : texts) {
    auto ids = tokenizer.Encode(text, {});
    if (ids.size() > 1) breakers.push_back(std::move(ids));
  }
  return breakers;
}

}  // namespace sluice
