#include "src/text/grammar/token_mask.h"

#include <algorithm>
#include <bit>

#include "src/text/grammar/limits.h"

namespace sluice::grammar {
namespace {

void SetBit(Mask& mask, int32_t id) {
  mask[static_cast<size_t>(id) / 64] |= uint64_t{1} << (static_cast<size_t>(id) % 64);
}

}  // namespace

template <class Key, class Value>
std::shared_ptr<const Value> TokenMasks::Lru<Key, Value>::Find(const Key& key) {
  const auto at = entries.find(key);
  if (at == entries.end()) return nullptr;
  ages.splice(ages.begin(), ages, at->second.age);
  return at->second.value;
}

template <class Key, class Value>
void TokenMasks::Lru<Key, Value>::Insert(const Key& key, std::shared_ptr<const Value> value) {
  ages.push_front(key);
  entries[key] = {std::move(value), ages.begin()};
}

template <class Key, class Value>
std::shared_ptr<const Value> TokenMasks::Lru<Key, Value>::DropOldest() {
  const auto at = entries.find(ages.back());
  std::shared_ptr<const Value> value = std::move(at->second.value);
  entries.erase(at);
  ages.pop_back();
  return value;
}

TokenMasks::TokenMasks(std::shared_ptr<const Automaton> automaton,
                       const GrammarVocabulary& vocabulary)
    : vocabulary_(vocabulary),
      pushdown_(std::move(automaton)),
      path_(vocabulary.longest() + 1, kEmptySet) {}

void TokenMasks::Open(Position* position) {
  const std::lock_guard lock(mutex_);
  position->state = pushdown_.start();
  positions_.insert(position);
}

void TokenMasks::Close(Position* position) {
  const std::lock_guard lock(mutex_);
  positions_.erase(position);
}

void TokenMasks::Accept(Position* position, int32_t id) {
  const std::lock_guard lock(mutex_);
  MakeRoom();
  position->state = pushdown_.Walk(position->state, vocabulary_.piece(id));
}

std::shared_ptr<const Mask> TokenMasks::Allowed(const Position& position) {
  const std::lock_guard lock(mutex_);
  MakeRoom();
  if (auto known = masks_.Find(position.state)) return known;
  auto mask = std::make_shared<const Mask>(MakeMask(position.state));
  masks_.Insert(position.state, mask);
  return mask;
}

void TokenMasks::MakeRoom() {
  const size_t mask_bytes = vocabulary_.words() * sizeof(uint64_t);
  while (masks_.ages.size() > 1 && masks_.ages.size() * mask_bytes > kMaxMaskBytes / 2) {
    masks_.DropOldest();
  }
  while (tops_.ages.size() > 1 && top_bytes_ > kMaxMaskBytes / 2) {
    top_bytes_ -= tops_.DropOldest()->bytes();
  }
  if (pushdown_.bytes() <= state_bytes_limit_) return;
  std::vector<SetId*> live;
  for (Position* position : positions_) live.push_back(&position->state);
  pushdown_.Compact(live);
  masks_ = {};  // their states have other numbers now
  // If nearly all of it is in use, the next time should not come at once.
  state_bytes_limit_ = std::max(kMaxStateBytes, 2 * pushdown_.bytes());
}

template <class Visit>
void TokenMasks::WalkTrie(SetId state, size_t first, size_t end, Visit visit) {
  if (first == end || state == kEmptySet) return;
  path_[vocabulary_.node(first).depth - 1u] = state;
  for (size_t i = first; i < end && work() < work_end_;) {
    const GrammarVocabulary::Node& node = vocabulary_.node(i);
    ++steps_;
    const SetId next = pushdown_.Step(path_[node.depth - 1u], node.byte);
    if (next == kEmptySet) {
      i = node.end;
      continue;
    }
    path_[node.depth] = next;
    const bool whole =
        node.plain_below && !pushdown_.may_return(next) && pushdown_.StaysOnPlain(next);
    const size_t after = whole ? node.end : i + 1;
    if (!visit(i, after, next)) return;
    i = after;
  }
}

// Of all counts after which the same can follow for as long as any token lasts, the same one.
uint64_t TokenMasks::CountAlike(const Frame& frame) const {
  const uint32_t counter = pushdown_.automaton().nodes[frame.node].counter;
  if (counter == kNoCounter) return frame.count;
  const Automaton::Counter& c = pushdown_.automaton().counters[counter];
  const uint64_t reach = vocabulary_.longest() + 1;  // an element has at least one byte
  if (frame.count + reach <= c.min) return 0;
  if (frame.count > c.min && frame.count + reach <= c.max) return c.min;
  return frame.count;
}

std::shared_ptr<const TokenMasks::Top> TokenMasks::TopOf(const Frame& frame) {
  const uint64_t count = CountAlike(frame);
  const uint64_t key = uint64_t{frame.node} << 32 | count;
  if (auto known = tops_.Find(key)) return known;
  const uint64_t start = work();
  auto top = MakeTop(frame.node, static_cast<uint32_t>(count));
  // One that was cut short by the work of others before it is made again another time.
  if (work() < work_end_ || work() - start > kMaxMaskWork / 2) {
    top_bytes_ += top->bytes();
    tops_.Insert(key, top);
  }
  return top;
}

std::shared_ptr<const TokenMasks::Top> TokenMasks::MakeTop(uint32_t node, uint32_t count) {
  auto top = std::make_shared<Top>();
  top->mask.resize(vocabulary_.words());
  size_t fit = 0;
  WalkTrie(pushdown_.Above(node, count), 0, vocabulary_.node_count(),
           [&](size_t i, size_t after, SetId state) {
             for (const int32_t id : vocabulary_.tokens(i, after)) {
               SetBit(top->mask, id);
               ++fit;
             }
             if (pushdown_.may_return(state) && vocabulary_.node(i).end > i + 1) {
               top->exits.push_back(static_cast<uint32_t>(i));
             }
             return true;
           });
  if (fit * sizeof(int32_t) < vocabulary_.words() * sizeof(uint64_t)) {
    top->ids.reserve(fit);
    for (size_t word = 0; word < top->mask.size(); ++word) {
      for (uint64_t bits = top->mask[word]; bits != 0; bits &= bits - 1) {
        top->ids.push_back(static_cast<int32_t>(64 * word) + std::countr_zero(bits));
      }
    }
    top->mask = Mask();
  }
  top->exits.shrink_to_fit();
  return top;
}

void TokenMasks::AddPosition(const Frame& frame, Mask& mask) {
  const std::shared_ptr<const Top> top = TopOf(frame);
  for (size_t i = 0; i < top->mask.size(); ++i) mask[i] |= top->mask[i];
  for (const int32_t id : top->ids) SetBit(mask, id);
  if (top->exits.empty()) return;
  const SetId returned = pushdown_.Returned(frame.below);
  for (const uint32_t exit : top->exits) {
    WalkTrie(returned, exit + 1, vocabulary_.node(exit).end, [&](size_t i, size_t after, SetId) {
      for (const int32_t id : vocabulary_.tokens(i, after)) SetBit(mask, id);
      return true;
    });
  }
}

Mask TokenMasks::MakeMask(SetId state) {
  Mask mask(vocabulary_.words(), 0);
  work_end_ = work() + kMaxMaskWork;
  const std::vector<Frame> frames(pushdown_.frames(state).begin(), pushdown_.frames(state).end());
  for (const Frame& f : frames) {
    if (f.node >= kFirstNode) AddPosition(f, mask);
  }
  const auto empty = [&] {
    return std::all_of(mask.begin(), mask.end(), [](uint64_t word) { return word == 0; });
  };
  const bool all_seen = work() < work_end_;
  if (!all_seen && empty()) AddFirstFit(state, mask);
  if (pushdown_.can_end(state) || empty()) {
    for (const int32_t id : vocabulary_.ends()) SetBit(mask, id);
    if (vocabulary_.size() > 0 && empty()) SetBit(mask, 0);
  }
  return mask;
}

// The search for all was given up before it found any: one will do.
void TokenMasks::AddFirstFit(SetId state, Mask& mask) {
  work_end_ = work() + kMaxMaskWork;
  WalkTrie(state, 0, vocabulary_.node_count(), [&](size_t i, size_t after, SetId) {
    for (const int32_t id : vocabulary_.tokens(i, after)) SetBit(mask, id);
    return vocabulary_.tokens(i, after).empty();
  });
}

}  // namespace sluice::grammar
