#include "src/text/grammar/automaton.h"

#include <algorithm>
#include <unordered_map>

#include "src/text/grammar/utf8_ranges.h"

namespace sluice::grammar {
namespace {

using Id = Expressions::Id;
using Kind = Expressions::Kind;
using MoveKind = Automaton::MoveKind;

Status Refuse(std::string message) {
  return Status(StatusCode::kInvalidArgument, "grammar: " + std::move(message));
}

// Which rules are written out where they are called: small ones that do not come back to
// themselves. Then a token that runs through several of them needs no stack.
std::vector<bool> FindInlined(const Expressions& expressions) {
  const size_t count = expressions.rules().size();
  std::vector<std::vector<uint32_t>> calls(count);
  for (uint32_t rule = 0; rule < count; ++rule) {
    std::vector<Id> todo;
    if (expressions.rules()[rule].body >= 0) {
      todo.push_back(static_cast<Id>(expressions.rules()[rule].body));
    }
    while (!todo.empty()) {
      const Id id = todo.back();
      todo.pop_back();
      const Expressions::Expression& e = expressions.at(id);
      if (e.kind == Kind::kRule) {
        calls[rule].push_back(e.first);
      } else if (e.kind != Kind::kLiteral && e.kind != Kind::kClass) {
        const auto children = expressions.children(id);
        todo.insert(todo.end(), children.begin(), children.end());
      }
    }
  }
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(count, kNew);
  std::vector<bool> inlined(count, true);
  std::vector<size_t> size(count, 0);
  struct Open {
    uint32_t rule;
    size_t next;
  };
  std::vector<Open> stack;
  for (uint32_t first = 0; first < count; ++first) {
    if (state[first] == kNew) stack.push_back({first, 0});
    while (!stack.empty()) {
      Open& top = stack.back();
      const uint32_t rule = top.rule;
      state[rule] = kOpen;
      if (top.next < calls[rule].size()) {
        const uint32_t callee = calls[rule][top.next];
        if (state[callee] == kNew) {
          stack.push_back({callee, 0});
          continue;
        }
        ++top.next;
        if (state[callee] == kOpen || !inlined[callee]) inlined[rule] = false;
        size[rule] = std::min(size[rule] + size[callee], size_t{1} << 24);
        continue;
      }
      const int64_t body = expressions.rules()[rule].body;
      if (body >= 0) size[rule] += expressions.at(static_cast<Id>(body)).size;
      if (size[rule] > kInlineExpressions) inlined[rule] = false;
      state[rule] = kDone;
      stack.pop_back();
    }
  }
  return inlined;
}

class Builder {
 public:
  Builder(const Expressions& expressions, const Where& where)
      : e_(expressions),
        where_(where),
        nullable_(expressions.Nullable()),
        productive_(expressions.Productive()),
        inlined_(FindInlined(expressions)) {}

  Result<std::shared_ptr<const Automaton>> Build(uint32_t root) {
    nodes_.resize(kFirstNode);
    const int64_t body = e_.rules()[root].body;
    if (body >= 0 && !productive_[static_cast<size_t>(body)]) {
      return Refuse("no text can ever match it: every way through it goes on for ever");
    }
    RuleOf(root);
    for (size_t rule = 0; rule < bodies_.size(); ++rule) {
      const uint32_t start = NewNode(kNoCounter), end = NewNode(kNoCounter);
      starts_.push_back(start);
      nodes_[end].final = true;
      tasks_.push_back({bodies_[rule], start, end, kNoCounter});
      while (!tasks_.empty()) {
        const Task task = tasks_.back();
        tasks_.pop_back();
        if (productive_[task.expression]) RETURN_IF_ERROR(Connect(task));
        if (nodes_.size() > kMaxNodes) {
          return Refuse("too large: expected at most " + std::to_string(kMaxNodes) + " states");
        }
      }
    }
    ShortenMoves();
    Pack();
    RETURN_IF_ERROR(RankRules());
    return std::shared_ptr<const Automaton>(std::make_shared<Automaton>(std::move(out_)));
  }

 private:
  struct Task {
    Id expression;
    uint32_t from, to, counter;
  };
  struct OpenNode {
    uint32_t counter = kNoCounter;
    bool final = false;
    std::vector<Automaton::Edge> edges;
    std::vector<Automaton::Move> moves;
    std::vector<uint32_t> call_offsets;  // of its calls, in their order
  };

  uint32_t NewNode(uint32_t counter) {
    nodes_.emplace_back();
    nodes_.back().counter = counter;
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  void AddMove(uint32_t from, uint32_t to) {
    nodes_[from].moves.push_back({MoveKind::kEmpty, false, to, 0});
  }
  void AddEdge(uint32_t from, ByteRange bytes, uint32_t to) {
    nodes_[from].edges.push_back({bytes.low, bytes.high, to});
  }
  void AddCall(const Task& task, uint32_t rule, bool passes, uint32_t offset) {
    nodes_[task.from].moves.push_back({MoveKind::kCall, passes, task.to, rule});
    nodes_[task.from].call_offsets.push_back(offset);
  }

  uint32_t RuleOf(uint32_t rule) {
    return RuleOfBody(static_cast<Id>(e_.rules()[rule].body), rule);
  }
  uint32_t RuleOfBody(Id body, uint32_t named) {
    const auto [at, added] = rule_of_body_.try_emplace(body, static_cast<uint32_t>(bodies_.size()));
    if (added) {
      bodies_.push_back(body);
      named_.push_back(named);
    }
    return at->second;
  }

  // Only adds what leaves `from` and what enters `to`, so that alternatives can share both.
  Status Connect(const Task& task) {
    const Expressions::Expression& e = e_.at(task.expression);
    switch (e.kind) {
      case Kind::kLiteral:
        ConnectLiteral(task);
        return Status();
      case Kind::kClass:
        ConnectClass(task);
        return Status();
      case Kind::kSequence:
        ConnectSequence(task);
        return Status();
      case Kind::kChoice:
        for (const Id child : e_.children(task.expression)) {
          tasks_.push_back({child, task.from, task.to, task.counter});
        }
        return Status();
      case Kind::kRepeat:
        ConnectRepeat(task);
        return Status();
      case Kind::kMembers:
        ConnectMembers(task);
        return Status();
      case Kind::kRule:
        return ConnectRule(task);
    }
    return Status();
  }

  void ConnectLiteral(const Task& task) {
    const std::string_view bytes = e_.bytes(task.expression);
    if (bytes.empty()) return AddMove(task.from, task.to);
    uint32_t at = task.from;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const uint32_t next = i + 1 == bytes.size() ? task.to : NewNode(task.counter);
      const uint8_t byte = static_cast<uint8_t>(bytes[i]);
      AddEdge(at, {byte, byte}, next);
      at = next;
    }
  }

  void ConnectClass(const Task& task) {
    struct Suffix {
      ByteRange bytes;
      uint32_t target, node;
    };
    std::vector<Suffix> suffixes;  // the same last bytes are one node
    const auto before = [&](ByteRange bytes, uint32_t target) {
      for (const Suffix& s : suffixes) {
        if (s.bytes.low == bytes.low && s.bytes.high == bytes.high && s.target == target) {
          return s.node;
        }
      }
      const uint32_t node = NewNode(task.counter);
      AddEdge(node, bytes, target);
      suffixes.push_back({bytes, target, node});
      return node;
    };
    std::vector<ByteSequence> sequences;
    for (const CodeRange& r : e_.ranges(task.expression)) {
      sequences.clear();
      AppendUtf8Sequences(r, sequences);
      for (const ByteSequence& s : sequences) {
        uint32_t target = task.to;
        for (size_t i = s.length; i-- > 1;) target = before(s.bytes[i], target);
        AddEdge(task.from, s.bytes[0], target);
      }
      if (suffixes.size() > 64) suffixes.clear();  // the search stays short
    }
  }

  void ConnectSequence(const Task& task) {
    const auto children = e_.children(task.expression);
    if (children.empty()) return AddMove(task.from, task.to);
    uint32_t at = task.from;
    for (size_t i = 0; i < children.size(); ++i) {
      const uint32_t next = i + 1 == children.size() ? task.to : NewNode(task.counter);
      tasks_.push_back({children[i], at, next, task.counter});
      at = next;
    }
  }

  void ConnectRepeat(const Task& task) {
    const Expressions::Expression& e = e_.at(task.expression);
    const Id child = e_.children(task.expression)[0];
    if (e.min == 0) AddMove(task.from, task.to);
    if (e.max == 0 || !productive_[child]) return;
    if (e.max == 1) {
      tasks_.push_back({child, task.from, task.to, task.counter});
    } else if (e.max == kNoMaximum && (e.min <= 1 || nullable_[child])) {
      const uint32_t start = NewNode(task.counter), end = NewNode(task.counter);
      AddMove(task.from, start);
      tasks_.push_back({child, start, end, task.counter});
      AddMove(end, start);
      AddMove(end, task.to);
    } else if (!nullable_[child] && e.max != kNoMaximum &&
               uint64_t{e.max} * e_.at(child).size <= kUnrolledExpressions) {
      uint32_t at = task.from;
      for (uint32_t i = 0; i < e.max; ++i) {
        if (i >= e.min && i > 0) AddMove(at, task.to);
        const uint32_t next = i + 1 == e.max ? task.to : NewNode(task.counter);
        tasks_.push_back({child, at, next, task.counter});
        at = next;
      }
    } else if (task.counter != kNoCounter) {
      // One count to a stack frame: a repetition within a counted one is a rule of its own.
      AddCall(task, RuleOfBody(task.expression, kNoCounter), nullable_[task.expression], 0);
    } else {
      ConnectCounted(task, e, child);
    }
  }

  void ConnectCounted(const Task& task, const Expressions::Expression& e, Id child) {
    const uint32_t counter = static_cast<uint32_t>(out_.counters.size());
    const bool nullable = nullable_[child];
    out_.counters.push_back({nullable ? 0 : e.min, e.max});
    const uint32_t start = NewNode(counter), end = NewNode(counter);
    AddMove(task.from, start);
    if (nullable) {
      // Elements that match nothing need no counting: they fill up what is missing.
      AddMove(task.from, task.to);
      AddCall({child, start, end, counter}, RuleOfBody(child, kNoCounter), false, 0);
    } else {
      tasks_.push_back({child, start, end, counter});
    }
    nodes_[end].moves.push_back({MoveKind::kCount, false, start, task.to});
  }

  // Two rails, one before the first member and one after it; each member is there once.
  void ConnectMembers(const Task& task) {
    const auto children = e_.children(task.expression);
    uint32_t none = task.from, some = kEndNode;
    for (size_t i = 1; i < children.size(); ++i) {
      if (!productive_[children[i]]) continue;
      const bool optional = e_.optional(task.expression, i);
      const uint32_t entry = NewNode(task.counter), next_some = NewNode(task.counter);
      if (none != kEndNode) AddMove(none, entry);
      if (some != kEndNode) {
        tasks_.push_back({children[0], some, entry, task.counter});
        if (optional) AddMove(some, next_some);
      }
      tasks_.push_back({children[i], entry, next_some, task.counter});
      if (none != kEndNode && optional) {
        const uint32_t next_none = NewNode(task.counter);
        AddMove(none, next_none);
        none = next_none;
      } else {
        none = kEndNode;
      }
      some = next_some;
    }
    if (none != kEndNode) AddMove(none, task.to);
    if (some != kEndNode) AddMove(some, task.to);
  }

  Status ConnectRule(const Task& task) {
    const Expressions::Expression& e = e_.at(task.expression);
    const Expressions::RuleInfo& rule = e_.rules()[e.first];
    const Id body = static_cast<Id>(rule.body);
    if (inlined_[e.first] && inlined_size_ + e_.at(body).size < kMaxInlined) {
      inlined_size_ += e_.at(body).size;
      tasks_.push_back({body, task.from, task.to, task.counter});
    } else {
      AddCall(task, RuleOf(e.first), nullable_[body], e.offset);
    }
    return Status();
  }

  // Nodes that only pass on are jumped over.
  void ShortenMoves() {
    const auto resolve = [&](uint32_t node) {
      for (int i = 0; i < 64; ++i) {
        const OpenNode& n = nodes_[node];
        if (!n.edges.empty() || n.moves.size() != 1 || n.moves[0].kind != MoveKind::kEmpty) break;
        node = n.moves[0].target;
      }
      return node;
    };
    for (OpenNode& n : nodes_) {
      for (Automaton::Edge& e : n.edges) e.target = resolve(e.target);
      for (Automaton::Move& m : n.moves) {
        m.target = resolve(m.target);
        if (m.kind == MoveKind::kCount) m.other = resolve(m.other);
      }
    }
    for (uint32_t& start : starts_) start = resolve(start);
  }

  void Pack() {
    std::array<bool, 257> begins{};
    begins[0] = true;
    for (const OpenNode& n : nodes_) {
      out_.nodes.push_back({static_cast<uint32_t>(out_.edges.size()),
                            static_cast<uint32_t>(out_.moves.size()), n.counter, n.final});
      out_.edges.insert(out_.edges.end(), n.edges.begin(), n.edges.end());
      out_.moves.insert(out_.moves.end(), n.moves.begin(), n.moves.end());
      for (const Automaton::Edge& e : n.edges) begins[e.low] = begins[e.high + 1] = true;
    }
    out_.nodes.push_back({static_cast<uint32_t>(out_.edges.size()),
                          static_cast<uint32_t>(out_.moves.size()), kNoCounter, false});
    for (size_t byte = 0; byte < 256; ++byte) {
      if (begins[byte]) out_.class_byte.push_back(static_cast<uint8_t>(byte));
      out_.byte_class[byte] = static_cast<uint8_t>(out_.class_byte.size() - 1);
    }
    for (const uint32_t start : starts_) out_.rules.push_back({start, 0});
  }

  // The rules that `rule` calls before it has matched a byte, with the offsets of the calls.
  std::vector<std::pair<uint32_t, uint32_t>> LeftCalls(uint32_t rule, std::vector<bool>& seen) {
    std::vector<uint32_t> reached = {starts_[rule]};
    std::vector<std::pair<uint32_t, uint32_t>> calls;
    seen[starts_[rule]] = true;
    const auto reach = [&](uint32_t node) {
      if (!seen[node]) reached.push_back(node);
      seen[node] = true;
    };
    for (size_t i = 0; i < reached.size(); ++i) {
      const OpenNode& n = nodes_[reached[i]];
      size_t call = 0;
      for (const Automaton::Move& m : n.moves) {
        if (m.kind == MoveKind::kEmpty) reach(m.target);
        if (m.kind != MoveKind::kCall) continue;
        calls.emplace_back(m.other, n.call_offsets[call++]);
        if (m.passes) reach(m.target);
      }
    }
    return calls;
  }

  // Depth first over those calls: a way back is left recursion, else the order of finishing
  // ranks the rules.
  Status RankRules() {
    const size_t count = bodies_.size();
    std::vector<bool> seen(nodes_.size(), false);
    std::vector<std::vector<std::pair<uint32_t, uint32_t>>> calls(count);
    for (uint32_t rule = 0; rule < count; ++rule) calls[rule] = LeftCalls(rule, seen);
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> state(count, kNew);
    std::vector<std::pair<uint32_t, size_t>> stack;
    uint32_t rank = static_cast<uint32_t>(count);
    for (uint32_t first = 0; first < count; ++first) {
      if (state[first] == kNew) stack.emplace_back(first, 0);
      while (!stack.empty()) {
        auto& [rule, next] = stack.back();
        state[rule] = kOpen;
        if (next == calls[rule].size()) {
          state[rule] = kDone;
          out_.rules[rule].rank = --rank;
          stack.pop_back();
          continue;
        }
        const auto [callee, offset] = calls[rule][next++];
        if (state[callee] == kOpen) return LeftRecursion(callee, offset);
        if (state[callee] == kNew) stack.emplace_back(callee, 0);
      }
    }
    return Status();
  }

  Status LeftRecursion(uint32_t rule, uint32_t offset) const {
    const std::string name =
        named_[rule] == kNoCounter ? "a repetition" : "rule " + e_.rules()[named_[rule]].name;
    return Refuse(where_(offset) + ": " + name +
                  " comes back to itself before any text (left recursion); expected something "
                  "in front of it, or a repetition instead");
  }

  const Expressions& e_;
  const Where& where_;
  const std::vector<bool> nullable_, productive_, inlined_;
  size_t inlined_size_ = 0;
  std::vector<OpenNode> nodes_;
  std::vector<Task> tasks_;
  std::vector<Id> bodies_;        // of the rules of the automaton
  std::vector<uint32_t> named_;   // beside them: the rule of the source, or kNoCounter
  std::vector<uint32_t> starts_;  // beside them
  std::unordered_map<Id, uint32_t> rule_of_body_;
  Automaton out_;
};

}  // namespace

Result<std::shared_ptr<const Automaton>> BuildAutomaton(const Expressions& expressions,
                                                        uint32_t root, const Where& where) {
  if (expressions.full()) {
    return Refuse("too large: expected at most " + std::to_string(kMaxRules) + " rules and " +
                  std::to_string(kMaxExpressions) + " expressions");
  }
  for (const Expressions::RuleInfo& rule : expressions.rules()) {
    if (rule.body < 0) {
      return Refuse(where(rule.offset) + ": rule " + rule.name + " is not defined");
    }
  }
  return Builder(expressions, where).Build(root);
}

}  // namespace sluice::grammar
