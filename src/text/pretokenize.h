// Cuts a text into the words inside which BPE merges: one hand-written scanner
// for each regular expression of the reference tokenizers, linear in the text
// whatever it holds. Used by the BPE tokenizer; any thread.
#ifndef SLUICE_SRC_TEXT_PRETOKENIZE_H_
#define SLUICE_SRC_TEXT_PRETOKENIZE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice {

struct TextChar {
  uint32_t code;
  uint32_t offset;   // in bytes
  uint16_t classes;  // CharClass bits
};

// The characters [begin, end) of a text; a rule sees no others, as if the rest did not exist.
struct TextSpan {
  const TextChar* chars;
  size_t begin;
  size_t end;
  uint16_t Classes(size_t i) const { return i < end ? chars[i].classes : 0; }
  uint32_t Code(size_t i) const { return i < end ? chars[i].code : 0xFFFFFFFFu; }
};

// One expression. Returns the end of its match that starts exactly at `at`, or `at` if there is
// none. Tried at each character that no earlier match took, so a failing call must be short.
using PreRule = size_t (*)(const TextSpan& text, size_t at);

// What a value of tokenizer.ggml.pre means.
struct PreTokenizer {
  std::string_view name;
  std::span<const PreRule> rules;  // one after another, each on the pieces of the one before
  bool whole_words = false;        // a word that is a token is not merged up from its bytes
  bool add_bos = false;            // where the file does not say
  bool nfc = false;                // the reference normalises first
  bool bytes = true;               // GPT-2's map of bytes to characters; false: as SPM writes them
};

// Null if no family of that name is known.
const PreTokenizer* FindPreTokenizer(std::string_view name);

// Byte offsets of the ends of the words of `text` (valid UTF-8, less than 2^32 bytes).
void SplitWords(const PreTokenizer& pre, std::string_view text, std::vector<uint32_t>& ends);

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_PRETOKENIZE_H_
