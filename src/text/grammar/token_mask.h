// Which tokens fit a state of a grammar. What depends on one position alone is
// worked out once for all stacks it can have: the tokens that stay within its
// rule, and the places in the trie where the rule ends and its callers go on.
// A mask joins those of its positions and follows the callers from those places.
// Shared by the sequences of one grammar and vocabulary; any thread.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_TOKEN_MASK_H_
#define SLUICE_SRC_TEXT_GRAMMAR_TOKEN_MASK_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "src/text/grammar/pushdown.h"
#include "src/text/grammar/vocabulary.h"

namespace sluice::grammar {

using Mask = std::vector<uint64_t>;

class TokenMasks {
 public:
  // The vocabulary must outlive it.
  TokenMasks(std::shared_ptr<const Automaton> automaton, const GrammarVocabulary& vocabulary);

  // Where one sequence is. It must be closed.
  struct Position {
    SetId state = kEmptySet;
  };
  void Open(Position* position);
  void Close(Position* position);
  std::shared_ptr<const Mask> Allowed(const Position& position);
  void Accept(Position* position, int32_t id);

 private:
  // Of a node and a count, over a caller that is not known.
  struct Top {
    std::vector<int32_t> ids;     // tokens that fit, if they are few
    Mask mask;                    // else as bits
    std::vector<uint32_t> exits;  // trie nodes with others below, after which the rule may end
    size_t bytes() const {
      return sizeof(Top) + ids.capacity() * sizeof(int32_t) + mask.capacity() * sizeof(uint64_t) +
             exits.capacity() * sizeof(uint32_t);
    }
  };

  uint64_t CountAlike(const Frame& frame) const;
  std::shared_ptr<const Top> TopOf(const Frame& frame);
  std::shared_ptr<const Top> MakeTop(uint32_t node, uint32_t count);
  Mask MakeMask(SetId state);
  void AddPosition(const Frame& frame, Mask& mask);
  void AddFirstFit(SetId state, Mask& mask);
  // Calls visit(trie node, end of nodes, state) for all nodes in [first, end) that fit after
  // `state`, one by one or with all below them where that makes no difference, until the work for
  // this mask is used up or visit returns false.
  template <class Visit>
  void WalkTrie(SetId state, size_t first, size_t end, Visit visit);
  uint64_t work() const { return steps_ + pushdown_.work(); }
  void MakeRoom();

  const GrammarVocabulary& vocabulary_;
  std::mutex mutex_;  // guards all below
  Pushdown pushdown_;
  uint64_t steps_ = 0, work_end_ = 0;
  std::set<Position*> positions_;
  std::vector<SetId> path_;  // of a walk: the state at each depth
  template <class Key, class Value>
  struct Lru {
    struct Entry {
      std::shared_ptr<const Value> value;
      typename std::list<Key>::iterator age;
    };
    std::unordered_map<Key, Entry> entries;
    std::list<Key> ages;  // last used first

    std::shared_ptr<const Value> Find(const Key& key);
    void Insert(const Key& key, std::shared_ptr<const Value> value);
    std::shared_ptr<const Value> DropOldest();
  };
  Lru<uint64_t, Top> tops_;
  Lru<SetId, Mask> masks_;
  size_t top_bytes_ = 0;
  size_t state_bytes_limit_ = kMaxStateBytes;
};

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_TOKEN_MASK_H_
