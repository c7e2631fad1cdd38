// One forward pass's input: rows (tokens) of one or more sequences. Rows of a
// sequence are consecutive and in position order. Built by the engine thread;
// read by every worker.
#ifndef SLUICE_SRC_MODEL_BATCH_H_
#define SLUICE_SRC_MODEL_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

class KvSequence;

struct BatchSegment {
  KvSequence* kv = nullptr;  // pages for these positions are reserved
  size_t first_row = 0;      // in the batch
  size_t rows = 0;
  int32_t first_position = 0;  // of first_row
};

struct Batch {
  std::span<const int32_t> tokens;         // [rows] ids < vocab
  std::span<const BatchSegment> segments;  // cover the rows in order
  std::span<const int32_t> logit_rows;     // rows whose next-token logits are wanted, ascending
  // Rows whose state after the final norm is wanted, ascending: what embeddings are made of.
  std::span<const int32_t> hidden_rows = {};
  size_t rows() const { return tokens.size(); }
};

// Of a row of the batch.
inline int32_t PositionOf(const BatchSegment& s, size_t row) {
  return s.first_position + static_cast<int32_t>(row - s.first_row);
}
inline const BatchSegment& SegmentOf(const Batch& batch, size_t row) {
  size_t i = 0;
  while (row >= batch.segments[i].first_row + batch.segments[i].rows) ++i;
  return batch.segments[i];
}

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_BATCH_H_
