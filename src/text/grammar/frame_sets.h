// Sets of stack frames, each kept once and known by a number. A state of a
// grammar is such a set (the positions that the text so far leads to), and so
// is what lies under a frame (all frames that its rule returns to): together
// they hold any number of stacks in little room. One thread at a time.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_FRAME_SETS_H_
#define SLUICE_SRC_TEXT_GRAMMAR_FRAME_SETS_H_

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::grammar {

using SetId = uint32_t;
inline constexpr SetId kEmptySet = 0;

struct Frame {
  uint32_t node;
  uint32_t count;  // elements done of the repetition that the node is in
  SetId below;     // where its rule returns to
  auto operator<=>(const Frame&) const = default;
};
uint64_t HashOf(const Frame& frame);

class FrameSets {
 public:
  FrameSets() { Clear(); }
  void Clear();
  // Sorted and without doubles. What frames refer to was interned before them.
  SetId Intern(std::span<const Frame> frames);
  std::span<const Frame> at(SetId id) const {
    return {frames_.data() + begins_[id], frames_.data() + begins_[id + 1]};
  }
  // Is there a frame of `node`, one of the first two?
  bool has_node(SetId id, uint32_t node) const { return marks_[id] >> node & 1; }
  size_t size() const { return begins_.size() - 1; }
  size_t bytes() const {
    return frames_.size() * sizeof(Frame) + hashes_.size() * sizeof(uint64_t) +
           (begins_.size() + slots_.size()) * sizeof(uint32_t);
  }

 private:
  void Grow();
  std::vector<Frame> frames_;
  std::vector<uint32_t> begins_;
  std::vector<SetId> slots_;  // open addressing, at most half full
  std::vector<uint64_t> hashes_;
  std::vector<uint8_t> marks_;  // bit n: a frame of node n
};

// Frames in the order they were added, each once.
class FrameBag {
 public:
  bool Add(const Frame& frame);  // false: was there
  void Clear();
  size_t size() const { return frames_.size(); }
  const Frame& operator[](size_t i) const { return frames_[i]; }

 private:
  std::vector<Frame> frames_;
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(64, 0);  // index + 1
};

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_FRAME_SETS_H_
