// A byte trie of tokens: finds those that start at a place of a text. Holds the
// special tokens, which are cut out of a text before anything else, and the
// pieces of UGM vocabularies. Built once at load; then any thread.
#ifndef SLUICE_SRC_TEXT_TOKEN_TRIE_H_
#define SLUICE_SRC_TEXT_TOKEN_TRIE_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice {

// Nodes in one array. The children of a node hang in a list, those met first in front, which in
// vocabularies sorted by frequency are the likely ones; the root, met at every byte of every
// text, has a table.
class TokenTrie {
 public:
  TokenTrie() { root_.fill(-1); }
  // The first id of a text wins.
  void Add(std::string_view text, int32_t id);

  // Nodes on the way down; -1 is nowhere.
  int32_t Root(char byte) const { return root_[static_cast<uint8_t>(byte)]; }
  int32_t Child(int32_t node, char byte) const {
    return Find(nodes_[static_cast<size_t>(node)].child, static_cast<uint8_t>(byte));
  }
  // Of the token that ends at the node; -1 if none does.
  int32_t Id(int32_t node) const { return nodes_[static_cast<size_t>(node)].id; }

  struct Match {
    size_t begin;
    size_t bytes;  // 0: none
    int32_t id;
  };
  // The longest token that starts at `at`.
  Match Longest(std::string_view text, size_t at) const;
  // The leftmost match at or after `from`, and there the longest, as the automata of the
  // reference tokenizers choose.
  Match Next(std::string_view text, size_t from) const;

 private:
  struct Node {
    uint8_t byte;
    int32_t id = -1;
    int32_t child = -1;
    int32_t sibling = -1;
  };
  int32_t Find(int32_t first, uint8_t byte) const {
    while (first >= 0 && nodes_[static_cast<size_t>(first)].byte != byte) {
      first = nodes_[static_cast<size_t>(first)].sibling;
    }
    return first;
  }

  std::array<int32_t, 256> root_;
  std::vector<Node> nodes_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_TOKEN_TRIE_H_
