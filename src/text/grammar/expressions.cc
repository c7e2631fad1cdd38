#include "src/text/grammar/expressions.h"

#include <algorithm>

namespace sluice::grammar {

std::vector<CodeRange> Normalised(std::vector<CodeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.low < b.low; });
  std::vector<CodeRange> out;
  const auto append = [&](uint32_t low, uint32_t high) {
    if (low > high) return;
    if (!out.empty() && low <= out.back().high + 1) {
      out.back().high = std::max(out.back().high, high);
    } else {
      out.push_back({low, high});
    }
  };
  for (const CodeRange& r : ranges) {
    append(r.low, std::min(r.high, uint32_t{0xD7FF}));
    append(std::max(r.low, uint32_t{0xE000}), std::min(r.high, kMaxCode));
  }
  return out;
}

std::vector<CodeRange> Complement(std::vector<CodeRange> ranges) {
  std::vector<CodeRange> out;
  uint32_t next = 0;
  for (const CodeRange& r : Normalised(std::move(ranges))) {
    if (r.low > next) out.push_back({next, r.low - 1});
    next = r.high + 1;
  }
  if (next <= kMaxCode) out.push_back({next, kMaxCode});
  return Normalised(std::move(out));
}

Expressions::Id Expressions::Add(Expression expression) {
  all_.push_back(expression);
  return static_cast<Id>(all_.size() - 1);
}

Expressions::Id Expressions::AddParent(Expression e, std::span<const Id> children) {
  e.first = static_cast<uint32_t>(children_.size());
  e.count = static_cast<uint32_t>(children.size());
  for (const Id child : children) {
    e.size = std::min(e.size + all_[child].size, uint32_t{1} << 24);
    children_.push_back(child);
  }
  optional_.resize(children_.size(), false);
  return Add(e);
}

Expressions::Id Expressions::Literal(std::string_view bytes) {
  Expression e{.kind = Kind::kLiteral};
  e.first = static_cast<uint32_t>(bytes_.size());
  e.count = static_cast<uint32_t>(bytes.size());
  e.size = 1 + e.count;
  bytes_ += bytes;
  return Add(e);
}

Expressions::Id Expressions::Class(std::vector<CodeRange> ranges) {
  ranges = Normalised(std::move(ranges));
  Expression e{.kind = Kind::kClass};
  e.first = static_cast<uint32_t>(ranges_.size());
  e.count = static_cast<uint32_t>(ranges.size());
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  return Add(e);
}

Expressions::Id Expressions::Sequence(std::span<const Id> parts) {
  return parts.size() == 1 ? parts[0] : AddParent({.kind = Kind::kSequence}, parts);
}

Expressions::Id Expressions::Choice(std::span<const Id> parts) {
  return parts.size() == 1 ? parts[0] : AddParent({.kind = Kind::kChoice}, parts);
}

Expressions::Id Expressions::Repeat(Id part, uint32_t min, uint32_t max) {
  if (min == 1 && max == 1) return part;
  const auto simple = [](uint32_t low, uint32_t high) {
    return low <= 1 && (high == 1 || high == kNoMaximum);
  };
  Expression& e = all_[part];
  if (e.kind == Kind::kRepeat && simple(e.min, e.max) && simple(min, max)) {
    e.min = std::min(e.min, min);  // (x+)? is x*: such rows may be long, and need no depth
    e.max = std::max(e.max, max);
    return part;
  }
  return AddParent({.kind = Kind::kRepeat, .min = min, .max = max}, std::span(&part, 1));
}

Expressions::Id Expressions::Rule(uint32_t rule, uint32_t offset) {
  return Add({.kind = Kind::kRule, .first = rule, .offset = offset});
}

Expressions::Id Expressions::Members(Id separator, std::span<const Id> parts,
                                     std::span<const bool> optional) {
  std::vector<Id> children = {separator};
  children.insert(children.end(), parts.begin(), parts.end());
  const Id id = AddParent({.kind = Kind::kMembers}, children);
  for (size_t i = 0; i < parts.size(); ++i) optional_[all_[id].first + 1 + i] = optional[i];
  return id;
}

uint32_t Expressions::AddRule(std::string name, uint32_t offset) {
  rules_.push_back({std::move(name), offset});
  return static_cast<uint32_t>(rules_.size() - 1);
}

bool Expressions::HoldsAtOnce(const Expression& e, bool productive) const {
  switch (e.kind) {
    case Kind::kLiteral:
      return productive || e.count == 0;
    case Kind::kClass:
      return productive && e.count > 0;
    case Kind::kRepeat:
      return e.min == 0;
    default:
      return false;  // what a parent needs is counted
  }
}

// From what holds at once upwards: linear in the expressions, however the rules call each other.
std::vector<bool> Expressions::Spread(bool productive) const {
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> parent(all_.size(), kNone), body_of(all_.size(), kNone);
  std::vector<uint32_t> needs(all_.size(), 1);  // children that must hold first
  std::vector<bool> counts(all_.size(), true);  // towards its parent
  std::vector<std::vector<Id>> calls(rules_.size());
  std::vector<Id> now;
  for (Id id = 0; id < all_.size(); ++id) {
    const Expression& e = all_[id];
    if (e.kind == Kind::kRule) calls[e.first].push_back(id);
    const bool has_children =
        e.kind != Kind::kRule && e.kind != Kind::kLiteral && e.kind != Kind::kClass;
    if (has_children) {
      for (size_t i = 0; i < e.count; ++i) {
        const Id child = children_[e.first + i];
        parent[child] = id;
        if (e.kind == Kind::kMembers) counts[child] = i > 0 && !optional_[e.first + i];
      }
    }
    if (e.kind == Kind::kSequence) needs[id] = e.count;
    if (e.kind == Kind::kMembers) {
      needs[id] = 0;
      for (size_t i = 1; i < e.count; ++i) needs[id] += !optional_[e.first + i];
    }
    if (needs[id] == 0 || HoldsAtOnce(e, productive)) now.push_back(id);
  }
  for (uint32_t rule = 0; rule < rules_.size(); ++rule) {
    if (rules_[rule].body >= 0) body_of[static_cast<size_t>(rules_[rule].body)] = rule;
  }
  std::vector<bool> holds(all_.size(), false);
  while (!now.empty()) {
    const Id id = now.back();
    now.pop_back();
    if (holds[id]) continue;
    holds[id] = true;
    const uint32_t up = parent[id];
    if (up != kNone && counts[id] && needs[up] > 0 && --needs[up] == 0) now.push_back(up);
    if (body_of[id] != kNone) {
      now.insert(now.end(), calls[body_of[id]].begin(), calls[body_of[id]].end());
    }
  }
  return holds;
}

}  // namespace sluice::grammar
