// Logits of a test's own, with their blocks.
#ifndef SLUICE_TESTS_ENGINE_LOGIT_ROW_H_
#define SLUICE_TESTS_ENGINE_LOGIT_ROW_H_

#include <utility>
#include <vector>

#include "src/model/logits.h"

namespace sluice {

struct LogitRow {
  explicit LogitRow(std::vector<float> logits)
      : values(std::move(logits)), largest(LogitBlocks(values.size())) {
    LargestOfBlocks(values, largest.data());
  }
  operator Logits() { return {values, largest}; }

  std::vector<float> values, largest;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_ENGINE_LOGIT_ROW_H_
