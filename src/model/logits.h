// Next-token logits, and with them the largest of each block of 32: the workers that
// multiply the output matrix note it while a tile is in their caches, so that picking
// the best few of a large vocabulary reads the 3 % of it that can matter.
#ifndef SLUICE_SRC_MODEL_LOGITS_H_
#define SLUICE_SRC_MODEL_LOGITS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace sluice {

constexpr size_t kLogitBlock = 32;

inline size_t LogitBlocks(size_t vocab) { return (vocab + kLogitBlock - 1) / kLogitBlock; }

// Where a pass writes them.
struct LogitsOut {
  float* values = nullptr;   // [rows][vocab]
  float* largest = nullptr;  // [rows][LogitBlocks(vocab)]; null: not wanted
};

// The largest number of each block; NaN is none, a block of nothing else has -infinity.
inline void LargestOfBlocks(std::span<const float> values, float* largest) {
  for (size_t at = 0; at < values.size(); at += kLogitBlock) {
    float most = -std::numeric_limits<float>::infinity();
    const size_t end = std::min(at + kLogitBlock, values.size());
    for (size_t i = at; i < end; ++i) most = values[i] > most ? values[i] : most;
    *largest++ = most;
  }
}

// One row of them.
struct Logits {
  std::span<float> values;    // [vocab]
  std::span<float> no_above;  // [LogitBlocks(vocab)]: no value of the block is above it

  void Set(int32_t id, float value) const {
    values[static_cast<size_t>(id)] = value;
    float& bound = no_above[static_cast<size_t>(id) / kLogitBlock];
    bound = value > bound ? value : bound;
  }
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_LOGITS_H_
