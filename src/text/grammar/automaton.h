// A grammar compiled: one network of byte edges per rule, with calls between
// the rules. Characters have become UTF-8 bytes, small rules are written out
// where they are called, counted repetitions are counters. Immutable, any thread.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_AUTOMATON_H_
#define SLUICE_SRC_TEXT_GRAMMAR_AUTOMATON_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/text/grammar/expressions.h"

namespace sluice::grammar {

// Two nodes without edges that stand for what is below the known stack.
inline constexpr uint32_t kEndNode = 0;      // here the text may end
inline constexpr uint32_t kUnknownNode = 1;  // here the caller, whoever it is, goes on
inline constexpr uint32_t kFirstNode = 2;
inline constexpr uint32_t kNoCounter = UINT32_MAX;

struct Automaton {
  struct Edge {
    uint8_t low, high;
    uint32_t target;
  };
  enum class MoveKind : uint8_t {
    kEmpty,  // to target
    kCall,   // the rule `other`, then target
    kCount,  // one element done: again to target, or out to `other`
  };
  struct Move {
    MoveKind kind;
    bool passes;  // kCall: the rule may match nothing, so it need not be entered
    uint32_t target, other;
  };
  struct Node {
    uint32_t first_edge, first_move;  // up to those of the next node
    uint32_t counter;                 // which its count belongs to
    bool final;                       // the rule ends here; nothing goes on
  };
  // Elements that match nothing are never counted, so an element takes at least one byte.
  struct Counter {
    uint32_t min, max;
  };
  struct Rule {
    uint32_t start;
    uint32_t rank;  // callers that call it at their start come first
  };

  std::vector<Node> nodes;  // and one more
  std::vector<Edge> edges;
  std::vector<Move> moves;
  std::vector<Counter> counters;
  std::vector<Rule> rules;  // 0 is the root
  // Bytes that no edge tells apart are one class.
  std::array<uint8_t, 256> byte_class;
  std::vector<uint8_t> class_byte;  // one byte of each

  std::span<const Edge> edges_of(uint32_t node) const {
    return {edges.data() + nodes[node].first_edge, edges.data() + nodes[node + 1].first_edge};
  }
  std::span<const Move> moves_of(uint32_t node) const {
    return {moves.data() + nodes[node].first_move, moves.data() + nodes[node + 1].first_move};
  }
};

// `where` says in words where an offset of the source is, such as "line 3, column 7".
using Where = std::function<std::string(uint32_t offset)>;
// kInvalidArgument: a rule that is not defined, left recursion, no text matches, too large.
Result<std::shared_ptr<const Automaton>> BuildAutomaton(const Expressions& expressions,
                                                        uint32_t root, const Where& where);

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_AUTOMATON_H_
