// The tokens of a vocabulary in the order of a walk through the trie of their
// bytes. One per tokenizer, made when a model is loaded; it also keeps the
// masks of the grammars that were used last. Immutable but for those, any thread.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_VOCABULARY_H_
#define SLUICE_SRC_TEXT_GRAMMAR_VOCABULARY_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/grammar/automaton.h"
#include "src/text/tokenizer.h"

namespace sluice {

namespace grammar {
class TokenMasks;
}

class GrammarVocabulary {
 public:
  explicit GrammarVocabulary(const Tokenizer& tokenizer);

  // Nodes in depth-first order, the root (no bytes) left out.
  struct Node {
    uint32_t end;          // one past the last node below
    uint32_t first_token;  // tokens that are the bytes up to here; up to those of the next node
    uint16_t depth;        // 1: a first byte
    uint8_t byte;
    bool plain_below;  // all bytes of the nodes below are IsPlain
  };
  // Bytes of words, which many states of grammars do not tell apart.
  static bool IsPlain(uint8_t byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == ' ';
  }
  size_t node_count() const { return nodes_.size() - 1; }
  const Node& node(size_t i) const { return nodes_[i]; }
  // Of the nodes in [first, end).
  std::span<const int32_t> tokens(size_t first, size_t end) const {
    return {tokens_.data() + nodes_[first].first_token, tokens_.data() + nodes_[end].first_token};
  }
  // Of tokens that text may consist of; empty for all others.
  std::string_view piece(int32_t id) const {
    const size_t i = static_cast<size_t>(id);
    return i + 1 < begins_.size()
               ? std::string_view(bytes_).substr(begins_[i], begins_[i + 1] - begins_[i])
               : std::string_view();
  }
  const std::vector<int32_t>& ends() const { return ends_; }  // tokens that end a text
  size_t size() const { return begins_.size() - 1; }
  size_t words() const { return (size() + 63) / 64; }
  size_t longest() const { return longest_; }  // bytes of the longest piece

  // The masks of `automaton`, of which `source` is the text: the same text gets the same ones.
  static std::shared_ptr<grammar::TokenMasks> MasksOf(
      const std::shared_ptr<const GrammarVocabulary>& vocabulary, const std::string& source,
      const std::shared_ptr<const grammar::Automaton>& automaton);

 private:
  void BuildTrie();

  std::string bytes_;
  std::vector<uint32_t> begins_;  // of the pieces in bytes_
  std::vector<Node> nodes_;       // and one more
  std::vector<int32_t> tokens_;
  std::vector<int32_t> ends_;
  size_t longest_ = 0;
  struct Kept {
    std::string source;
    std::shared_ptr<grammar::TokenMasks> masks;
  };
  mutable std::mutex mutex_;
  mutable std::list<Kept> kept_;  // guarded by mutex_; last used first
};

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_GRAMMAR_VOCABULARY_H_
