// SentencePiece's compiled normalisation rules: a double array of input
// prefixes, each with a replacement. Used by the UGM tokenizer; any thread.
#ifndef SLUICE_SRC_TEXT_CHARSMAP_H_
#define SLUICE_SRC_TEXT_CHARSMAP_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "src/base/status.h"

namespace sluice {

class Charsmap {
 public:
  Charsmap() = default;  // no rules
  // `blob` (tokenizer.ggml.precompiled_charsmap) must outlive the map: a u32 size in bytes, the
  // double array of that size, the NUL-terminated replacements.
  static Result<Charsmap> Parse(std::span<const uint8_t> blob);

  struct Rule {
    size_t bytes = 0;  // of the prefix it replaces; 0: no rule applies
    std::string_view replacement;
  };
  // The rule of the longest prefix of `text`. Whatever the blob holds, it reads inside it.
  Rule Longest(std::string_view text) const;

 private:
  uint32_t Unit(uint32_t index) const;  // 0 outside

  std::span<const uint8_t> units_;  // 4 bytes each
  std::string_view replacements_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_CHARSMAP_H_
