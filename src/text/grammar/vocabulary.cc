#include "src/text/grammar/vocabulary.h"

#include <algorithm>

#include "src/text/grammar/limits.h"
#include "src/text/grammar/token_mask.h"

namespace sluice {

GrammarVocabulary::GrammarVocabulary(const Tokenizer& tokenizer) {
  for (size_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
    if (tokenizer.IsEnd(id)) {
      ends_.push_back(id);
      continue;
    }
    const TokenType type = tokenizer.type(id);
    if (type != TokenType::kNormal && type != TokenType::kByte && type != TokenType::kUserDefined) {
      continue;
    }
    const std::string piece = tokenizer.Piece(id);
    if (piece.size() > grammar::kMaxPieceBytes) continue;
    bytes_ += piece;
    longest_ = std::max(longest_, piece.size());
  }
  begins_.push_back(static_cast<uint32_t>(bytes_.size()));
  BuildTrie();
}

void GrammarVocabulary::BuildTrie() {
  for (size_t i = 0; i < size(); ++i) {
    if (!piece(static_cast<int32_t>(i)).empty()) tokens_.push_back(static_cast<int32_t>(i));
  }
  std::sort(tokens_.begin(), tokens_.end(), [&](int32_t a, int32_t b) {
    const int order = piece(a).compare(piece(b));
    return order != 0 ? order < 0 : a < b;
  });
  std::vector<uint32_t> path;  // the node of each byte of the piece before
  std::string_view before;
  const auto close_to = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
    }
  };
  for (size_t t = 0; t < tokens_.size(); ++t) {
    const std::string_view text = piece(tokens_[t]);
    size_t shared = 0;
    while (shared < before.size() && shared < text.size() && before[shared] == text[shared]) {
      ++shared;
    }
    close_to(shared);
    while (path.size() < text.size()) {
      // Tokens of nodes on the way come before: those of this piece start here or further down.
      nodes_.push_back({0, static_cast<uint32_t>(t), static_cast<uint16_t>(path.size() + 1),
                        static_cast<uint8_t>(text[path.size()]), false});
      path.push_back(static_cast<uint32_t>(nodes_.size() - 1));
    }
    before = text;
  }
  close_to(0);
  nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), 0, 0, false});
  std::vector<uint32_t> others = {0};  // nodes before that are not plain
  for (const Node& node : nodes_) others.push_back(others.back() + !IsPlain(node.byte));
  for (size_t i = 0; i < node_count(); ++i) {
    nodes_[i].plain_below = others[nodes_[i].end] == others[i + 1];
  }
}

std::shared_ptr<grammar::TokenMasks> GrammarVocabulary::MasksOf(
    const std::shared_ptr<const GrammarVocabulary>& vocabulary, const std::string& source,
    const std::shared_ptr<const grammar::Automaton>& automaton) {
  const GrammarVocabulary& v = *vocabulary;
  const std::lock_guard lock(v.mutex_);
  const auto at = std::find_if(v.kept_.begin(), v.kept_.end(),
                               [&](const Kept& kept) { return kept.source == source; });
  if (at != v.kept_.end()) {
    v.kept_.splice(v.kept_.begin(), v.kept_, at);
  } else {
    v.kept_.push_front({source, std::make_shared<grammar::TokenMasks>(automaton, v)});
    if (v.kept_.size() > grammar::kKeptGrammars) v.kept_.pop_back();
  }
  return v.kept_.front().masks;
}

}  // namespace sluice
