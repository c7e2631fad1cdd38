#include "src/text/grammar/frame_sets.h"

#include <algorithm>

namespace sluice::grammar {
namespace {

uint64_t Mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  return x;
}

}  // namespace

uint64_t HashOf(const Frame& f) { return Mix(Mix(uint64_t{f.node} << 32 | f.count) + f.below + 1); }

void FrameSets::Clear() {
  frames_.clear();
  begins_ = {0};
  hashes_.clear();
  marks_.clear();
  slots_.assign(256, UINT32_MAX);
  Intern({});
}

SetId FrameSets::Intern(std::span<const Frame> frames) {
  uint64_t hash = frames.size();
  for (const Frame& f : frames) hash = Mix(hash + HashOf(f));
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at] != UINT32_MAX; at = (at + 1) & (slots_.size() - 1)) {
    const SetId id = slots_[at];
    if (hashes_[id] == hash && std::ranges::equal(this->at(id), frames)) return id;
  }
  const SetId id = static_cast<SetId>(size());
  slots_[at] = id;
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  begins_.push_back(static_cast<uint32_t>(frames_.size()));
  hashes_.push_back(hash);
  uint8_t marks = 0;
  for (const Frame& f : frames) marks |= static_cast<uint8_t>(f.node < 2 ? 1 << f.node : 0);
  marks_.push_back(marks);
  if (2 * size() > slots_.size()) Grow();
  return id;
}

void FrameSets::Grow() {
  slots_.assign(2 * slots_.size(), UINT32_MAX);
  for (SetId id = 0; id < hashes_.size(); ++id) {
    size_t at = hashes_[id] & (slots_.size() - 1);
    while (slots_[at] != UINT32_MAX) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = id;
  }
}

bool FrameBag::Add(const Frame& frame) {
  if (2 * frames_.size() >= slots_.size()) {
    slots_.assign(2 * slots_.size(), 0);
    for (size_t i = 0; i < frames_.size(); ++i) {
      size_t at = HashOf(frames_[i]) & (slots_.size() - 1);
      while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = static_cast<uint32_t>(i + 1);
    }
  }
  size_t at = HashOf(frame) & (slots_.size() - 1);
  for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
    if (frames_[slots_[at] - 1] == frame) return false;
  }
  frames_.push_back(frame);
  slots_[at] = static_cast<uint32_t>(frames_.size());
  return true;
}

void FrameBag::Clear() {
  if (!frames_.empty()) std::fill(slots_.begin(), slots_.end(), 0);
  frames_.clear();
  if (slots_.size() > 4096) slots_.assign(64, 0);
}

}  // namespace sluice::grammar
