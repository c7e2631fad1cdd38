// Ranges of characters as ranges of UTF-8 bytes. Used when an automaton is
// built; stateless.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_UTF8_RANGES_H_
#define SLUICE_SRC_TEXT_GRAMMAR_UTF8_RANGES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "src/text/grammar/expressions.h"

namespace sluice::grammar {

struct ByteRange {
  uint8_t low, high;
};
// All characters whose i-th byte is in bytes[i].
struct ByteSequence {
  uint8_t length;
  std::array<ByteRange, 4> bytes;
};
// Appends sequences that together are the UTF-8 of `range`, which has no surrogates in it.
void AppendUtf8Sequences(const CodeRange& range, std::vector<ByteSequence>& out);

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_UTF8_RANGES_H_
