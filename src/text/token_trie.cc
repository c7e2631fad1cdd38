#include "src/text/token_trie.h"

namespace sluice {

void TokenTrie::Add(std::string_view text, int32_t id) {
  if (text.empty()) return;
  int32_t node = -1;
  for (const char c : text) {
    const uint8_t byte = static_cast<uint8_t>(c);
    // The link that leads, or will lead, to the next node.
    int32_t* link = node < 0 ? &root_[byte] : &nodes_[static_cast<size_t>(node)].child;
    while (*link >= 0 && nodes_[static_cast<size_t>(*link)].byte != byte) {
      link = &nodes_[static_cast<size_t>(*link)].sibling;
    }
    if (*link < 0) {
      *link = static_cast<int32_t>(nodes_.size());
      node = *link;
      nodes_.push_back({.byte = byte});
    } else {
      node = *link;
    }
  }
  if (nodes_[static_cast<size_t>(node)].id < 0) nodes_[static_cast<size_t>(node)].id = id;
}

TokenTrie::Match TokenTrie::Longest(std::string_view text, size_t at) const {
  Match best{at, 0, -1};
  int32_t node = Root(text[at]);
  for (size_t end = at + 1; node >= 0; ++end) {
    if (Id(node) >= 0) best = {at, end - at, Id(node)};
    if (end >= text.size()) break;
    node = Child(node, text[end]);
  }
  return best;
}

TokenTrie::Match TokenTrie::Next(std::string_view text, size_t from) const {
  for (size_t at = from; at < text.size(); ++at) {
    const Match match = Longest(text, at);
    if (match.bytes > 0) return match;
  }
  return {text.size(), 0, -1};
}

}  // namespace sluice
