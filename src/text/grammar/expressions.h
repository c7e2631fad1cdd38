// A grammar as its author wrote it: rules made of literals, character classes,
// sequences, choices and repetitions. GBNF and JSON schemas are read into this;
// automaton.h compiles it. Trees in one array, children before parents, so
// that no pass over them recurses. One thread.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_EXPRESSIONS_H_
#define SLUICE_SRC_TEXT_GRAMMAR_EXPRESSIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/grammar/limits.h"

namespace sluice::grammar {

struct CodeRange {
  uint32_t low, high;  // code points, both included
};
inline constexpr uint32_t kMaxCode = 0x10FFFF;
inline constexpr uint32_t kNoMaximum = UINT32_MAX;

// Sorted, apart, without surrogates.
std::vector<CodeRange> Normalised(std::vector<CodeRange> ranges);
std::vector<CodeRange> Complement(std::vector<CodeRange> ranges);

class Expressions {
 public:
  using Id = uint32_t;
  enum class Kind : uint8_t { kLiteral, kClass, kSequence, kChoice, kRepeat, kRule, kMembers };
  struct Expression {
    Kind kind;
    uint32_t first = 0;  // into children(), ranges() or the bytes; of kRule: the rule
    uint32_t count = 0;
    uint32_t min = 0, max = 0;  // of kRepeat
    uint32_t size = 1;          // expressions in the tree below, a literal's bytes included
    uint32_t offset = 0;        // of kRule: where it stands in the source
  };

  // An Id is used in one place only, the one it is given to next.
  Id Literal(std::string_view bytes);
  Id Empty() { return Literal(""); }
  Id Class(std::vector<CodeRange> ranges);  // no ranges: nothing matches
  Id Never() { return Class({}); }
  Id Sequence(std::span<const Id> parts);
  Id Choice(std::span<const Id> parts);  // no parts: nothing matches
  Id Repeat(Id part, uint32_t min, uint32_t max);
  Id Optional(Id part) { return Repeat(part, 0, 1); }
  Id Rule(uint32_t rule, uint32_t offset = 0);
  // The parts in their order with `separator` between those that are there; any part of which
  // `optional` is true may be left out.
  Id Members(Id separator, std::span<const Id> parts, std::span<const bool> optional);
  Id Sequence(std::initializer_list<Id> parts) { return Sequence(std::span(parts)); }
  Id Choice(std::initializer_list<Id> parts) { return Choice(std::span(parts)); }

  uint32_t AddRule(std::string name, uint32_t offset = 0);
  void Define(uint32_t rule, Id body) { rules_[rule].body = static_cast<int64_t>(body); }

  struct RuleInfo {
    std::string name;
    uint32_t offset;    // where it was first named
    int64_t body = -1;  // -1: not defined
  };
  const std::vector<RuleInfo>& rules() const { return rules_; }
  size_t size() const { return all_.size(); }
  // Readers stop and refuse when it is.
  bool full() const { return all_.size() > kMaxExpressions || rules_.size() > kMaxRules; }
  const Expression& at(Id id) const { return all_[id]; }
  std::string_view bytes(Id id) const {
    return std::string_view(bytes_).substr(all_[id].first, all_[id].count);
  }
  std::span<const CodeRange> ranges(Id id) const {
    return std::span(ranges_).subspan(all_[id].first, all_[id].count);
  }
  // Of kMembers the separator comes first.
  std::span<const Id> children(Id id) const {
    return std::span(children_).subspan(all_[id].first, all_[id].count);
  }
  bool optional(Id id, size_t child) const { return optional_[all_[id].first + child]; }

  // For every expression: does it match the empty text; does it match any text at all.
  std::vector<bool> Nullable() const { return Spread(false); }
  std::vector<bool> Productive() const { return Spread(true); }

 private:
  Id Add(Expression expression);
  Id AddParent(Expression expression, std::span<const Id> children);
  std::vector<bool> Spread(bool productive) const;
  bool HoldsAtOnce(const Expression& e, bool productive) const;

  std::vector<Expression> all_;
  std::vector<Id> children_;
  std::vector<bool> optional_;  // beside children_
  std::string bytes_;
  std::vector<CodeRange> ranges_;
  std::vector<RuleInfo> rules_;
};

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_EXPRESSIONS_H_
