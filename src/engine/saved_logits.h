// A text's log-probabilities in the file that llama-perplexity calls the base of a
// KL divergence, so that its judgement of any model can start from our exact logits:
//   "_logits_", window, vocab, windows (int32 each), the windows' tokens (int32), then for each
//   scored position: step, lowest (float32), and per token of the vocabulary (rounded up to an
//   even number) a uint16 u: ln p = lowest + step * u. What is e^-16 of the most likely token or
//   less has u = 0.
#ifndef SLUICE_SRC_ENGINE_SAVED_LOGITS_H_
#define SLUICE_SRC_ENGINE_SAVED_LOGITS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/atomic_file.h"
#include "src/base/status.h"

namespace sluice {

class SavedLogits {
 public:
  // `tokens` [windows * window], as the model sees them.
  static Result<std::unique_ptr<SavedLogits>> Create(const std::string& path, size_t vocab,
                                                     size_t window,
                                                     std::span<const int32_t> tokens);
  // The next scored position's logits [vocab].
  Status Add(std::span<const float> logits);
  Status Commit() { return file_->Commit(); }

 private:
  SavedLogits() = default;
  std::unique_ptr<AtomicFile> file_;
  uint64_t end_ = 0;
  std::vector<uint16_t> row_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_SAVED_LOGITS_H_
