// Follows a text through an automaton, byte by byte: all ways at once, each
// step from one state to one state and remembered, so that what is walked often
// costs a table look-up. token_mask.h walks vocabularies with it and holds its
// lock. One thread at a time.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_PUSHDOWN_H_
#define SLUICE_SRC_TEXT_GRAMMAR_PUSHDOWN_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/text/grammar/automaton.h"
#include "src/text/grammar/frame_sets.h"

namespace sluice::grammar {

class Pushdown {
 public:
  explicit Pushdown(std::shared_ptr<const Automaton> automaton);

  SetId start() { return Start(); }
  // A state that knows only its topmost frame: where its rule ends, kUnknownNode is in the state.
  SetId Above(uint32_t node, uint32_t count);
  // Where those rules go on that `below` returns to.
  SetId Returned(SetId below);
  // kEmptySet: no text goes on so.
  SetId Step(SetId state, uint8_t byte) {
    const uint32_t byte_class = automaton_->byte_class[byte];
    const uint32_t row = state < rows_.size() ? rows_[state] : 0;
    const SetId next = row == 0 ? kNotKnown : steps_[row * classes_ + byte_class];
    return next != kNotKnown ? next : MakeStep(state, byte_class);
  }
  SetId Walk(SetId state, std::string_view bytes) {
    for (const char c : bytes) state = Step(state, static_cast<uint8_t>(c));
    return state;
  }

  // Do all plain bytes lead from `state` to itself?
  bool StaysOnPlain(SetId state);

  std::span<const Frame> frames(SetId state) const { return sets_.at(state); }
  bool can_end(SetId state) const { return sets_.has_node(state, kEndNode); }
  bool may_return(SetId state) const { return sets_.has_node(state, kUnknownNode); }
  const Automaton& automaton() const { return *automaton_; }

  // Grows with what is done, to put bounds on it.
  uint64_t work() const { return work_; }
  size_t bytes() const { return sets_.bytes() + (steps_.size() + rows_.size()) * sizeof(SetId); }
  // Forgets all states but `live`, which get new numbers.
  void Compact(std::span<SetId* const> live);

 private:
  static constexpr SetId kNotKnown = UINT32_MAX;
  SetId Start();
  SetId MakeStep(SetId state, uint32_t byte_class);
  SetId Close();
  void Add(const Frame& frame);
  void Follow(const Frame& frame, bool entered);
  void EnterCalled();
  void Called(uint32_t rule, const Frame& returns_to);

  const std::shared_ptr<const Automaton> automaton_;
  const size_t classes_;
  FrameSets sets_;
  std::vector<uint32_t> rows_;  // of a state: its row in steps_; 0: none
  std::vector<SetId> steps_;    // rows of one state per byte class; row 0 is not used
  enum : uint8_t { kUnasked, kLeaves, kStays };
  std::vector<uint8_t> on_plain_;  // of a state
  std::vector<SetId> returned_;    // of a set; kNotKnown
  FrameBag bag_;
  std::vector<std::vector<Frame>> returns_;  // of each rule called in this step, by rank
  std::vector<uint32_t> called_;             // their ranks, a heap
  std::vector<uint32_t> rule_of_rank_;
  std::vector<Frame> scratch_;
  uint64_t work_ = 0;
};

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_PUSHDOWN_H_
