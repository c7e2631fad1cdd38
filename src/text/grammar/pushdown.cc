#include "src/text/grammar/pushdown.h"

#include <algorithm>
#include <functional>

#include "src/text/grammar/vocabulary.h"

namespace sluice::grammar {

using MoveKind = Automaton::MoveKind;

Pushdown::Pushdown(std::shared_ptr<const Automaton> automaton)
    : automaton_(std::move(automaton)),
      classes_(automaton_->class_byte.size()),
      steps_(classes_, kNotKnown),
      returns_(automaton_->rules.size()),
      rule_of_rank_(automaton_->rules.size()) {
  for (uint32_t rule = 0; rule < automaton_->rules.size(); ++rule) {
    rule_of_rank_[automaton_->rules[rule].rank] = rule;
  }
}

SetId Pushdown::Start() {
  const Frame end{kEndNode, 0, kEmptySet};
  bag_.Clear();
  Add({automaton_->rules[0].start, 0, sets_.Intern({&end, 1})});
  return Close();
}

SetId Pushdown::Above(uint32_t node, uint32_t count) {
  const Frame unknown{kUnknownNode, 0, kEmptySet};
  const Frame top{node, count, sets_.Intern({&unknown, 1})};
  return sets_.Intern({&top, 1});
}

SetId Pushdown::Returned(SetId below) {
  if (below < returned_.size() && returned_[below] != kNotKnown) return returned_[below];
  bag_.Clear();
  for (const Frame& f : sets_.at(below)) Add(f);
  const SetId state = Close();
  if (below >= returned_.size()) returned_.resize(sets_.size(), kNotKnown);
  return returned_[below] = state;
}

SetId Pushdown::MakeStep(SetId state, uint32_t byte_class) {
  const uint8_t byte = automaton_->class_byte[byte_class];
  bag_.Clear();
  for (const Frame& f : sets_.at(state)) {
    const auto edges = automaton_->edges_of(f.node);
    work_ += edges.size();
    for (const Automaton::Edge& e : edges) {
      if (e.low <= byte && byte <= e.high) Add({e.target, f.count, f.below});
    }
  }
  const SetId next = bag_.size() == 0 ? kEmptySet : Close();
  if (state >= rows_.size()) rows_.resize(std::max(sets_.size(), 2 * rows_.size()), 0);
  if (rows_[state] == 0) {
    rows_[state] = static_cast<uint32_t>(steps_.size() / classes_);
    steps_.resize(steps_.size() + classes_, kNotKnown);
    work_ += classes_ / 8;
  }
  return steps_[rows_[state] * classes_ + byte_class] = next;
}

bool Pushdown::StaysOnPlain(SetId state) {
  if (state >= on_plain_.size()) on_plain_.resize(sets_.size(), kUnasked);
  if (on_plain_[state] == kUnasked) {
    bool stays = true;
    for (int byte = 0; stays && byte < 256; ++byte) {
      const uint8_t b = static_cast<uint8_t>(byte);
      if (GrammarVocabulary::IsPlain(b)) stays = Step(state, b) == state;
    }
    on_plain_[state] = stays ? kStays : kLeaves;
  }
  return on_plain_[state] == kStays;
}

void Pushdown::Add(const Frame& frame) {
  ++work_;
  if (bag_.size() < kMaxClosure) bag_.Add(frame);
}

// A call of `rule`: it returns to this frame, or if nothing is left to do there, to those below.
void Pushdown::Called(uint32_t rule, const Frame& to) {
  const uint32_t rank = automaton_->rules[rule].rank;
  std::vector<Frame>& returns = returns_[rank];
  if (returns.empty()) {
    called_.push_back(rank);
    std::push_heap(called_.begin(), called_.end(), std::greater<>());
  }
  if (automaton_->nodes[to.node].final) {
    const auto below = sets_.at(to.below);
    returns.insert(returns.end(), below.begin(), below.end());
    work_ += below.size();
  } else {
    returns.push_back(to);
  }
}

// Where one position leads without a byte. A rule that was entered in this step and ends at once
// does not return: its caller has passed it by already, if it may match nothing.
void Pushdown::Follow(const Frame& frame, bool entered) {
  if (automaton_->nodes[frame.node].final) {
    if (entered) return;
    for (const Frame& f : sets_.at(frame.below)) Add(f);
    return;
  }
  for (const Automaton::Move& m : automaton_->moves_of(frame.node)) {
    ++work_;
    const Frame next{m.target, frame.count, frame.below};
    if (m.kind == MoveKind::kEmpty) {
      Add(next);
    } else if (m.kind == MoveKind::kCall) {
      Called(m.other, next);
      if (m.passes) Add(next);
    } else {
      const Automaton::Counter& c = automaton_->counters[automaton_->nodes[frame.node].counter];
      const uint32_t done = frame.count + 1;
      if (done >= c.min) Add({m.other, 0, frame.below});
      if (c.max == kNoMaximum) {
        Add({m.target, std::min(done, c.min), frame.below});
      } else if (done < c.max) {
        Add({m.target, done, frame.below});
      }
    }
  }
}

// Callers before what they call: when a rule is entered, all that call it now are known.
void Pushdown::EnterCalled() {
  while (!called_.empty()) {
    std::pop_heap(called_.begin(), called_.end(), std::greater<>());
    const uint32_t rank = called_.back();
    called_.pop_back();
    std::vector<Frame>& returns = returns_[rank];
    std::sort(returns.begin(), returns.end());
    returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
    work_ += returns.size();
    const SetId below = sets_.Intern(returns);
    returns.clear();
    size_t next = bag_.size();
    Add({automaton_->rules[rule_of_rank_[rank]].start, 0, below});
    for (; next < bag_.size(); ++next) Follow(Frame(bag_[next]), true);
  }
}

SetId Pushdown::Close() {
  for (size_t i = 0; i < bag_.size(); ++i) Follow(Frame(bag_[i]), false);
  EnterCalled();
  scratch_.clear();
  for (size_t i = 0; i < bag_.size(); ++i) {
    const Frame& f = bag_[i];
    if (f.node < kFirstNode || !automaton_->edges_of(f.node).empty()) scratch_.push_back(f);
  }
  std::sort(scratch_.begin(), scratch_.end());
  return sets_.Intern(scratch_);
}

void Pushdown::Compact(std::span<SetId* const> live) {
  std::vector<bool> keep(sets_.size(), false);
  for (const SetId* state : live) keep[*state] = true;
  for (SetId id = static_cast<SetId>(sets_.size()); id-- > 0;) {
    if (!keep[id]) continue;
    for (const Frame& f : sets_.at(id)) keep[f.below] = true;  // an older set
  }
  FrameSets kept;
  std::vector<SetId> renamed(sets_.size(), kEmptySet);
  for (SetId id = 0; id < sets_.size(); ++id) {
    if (!keep[id]) continue;
    scratch_.assign(sets_.at(id).begin(), sets_.at(id).end());
    for (Frame& f : scratch_) f.below = renamed[f.below];
    std::sort(scratch_.begin(), scratch_.end());
    renamed[id] = kept.Intern(scratch_);
  }
  for (SetId* state : live) *state = renamed[*state];
  sets_ = std::move(kept);
  rows_.clear();
  returned_.clear();
  on_plain_.clear();
  steps_.assign(classes_, kNotKnown);
}

}  // namespace sluice::grammar
