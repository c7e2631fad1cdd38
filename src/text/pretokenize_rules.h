// The regular expressions behind the pre-tokenizers, as scanners. Each comment
// gives the expression; they differ in details that change ids. Used by
// pretokenize.cc only.
#ifndef SLUICE_SRC_TEXT_PRETOKENIZE_RULES_H_
#define SLUICE_SRC_TEXT_PRETOKENIZE_RULES_H_

#include <cstddef>

#include "src/text/pretokenize.h"

namespace sluice {

// '(s|t|re|ve|m|ll|d), lower case only.
// | ?\p{L}+ | ?\p{N}+ | ?[^\s\p{L}\p{N}]+ | \s+(?!\S) | \s+
size_t Gpt2Words(const TextSpan& text, size_t at);

// The variations of the expressions that came after GPT-2's.
struct WordStyle {
  bool contractions = true;  // (?i:'s|'t|'re|'ve|'m|'ll|'d) is an alternative of its own
  bool marks = false;        // a word is [\p{L}\p{M}]+, and marks are no punctuation
  bool cased = false;        // a word is upper case, then lower case (gpt-4o, tekken)
  bool suffix = false;       // ... and keeps its contraction
  bool han = false;          // Han runs stand alone and are no part of words (kimi)
  int max_digits = 3;        // \p{N}{1,max_digits}
  bool newlines = true;      // punctuation takes the newlines after it
  bool slashes = false;      // ... and slashes: [\r\n/]*
};
// contractions | [^\r\n\p{L}\p{N}]?<word> | \p{N}{1,k} | ?[^\s\p{L}\p{N}]+[\r\n]*
// | \s*[\r\n]+ | \s+(?!\S) | \s+
size_t Words(const TextSpan& text, size_t at, const WordStyle& style);
template <WordStyle kStyle>
size_t WordRule(const TextSpan& text, size_t at) {
  return Words(text, at, kStyle);
}

// [ascii punctuation][A-Za-z]+ | [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ | ?[\p{P}\p{S}]+[\r\n]*
// | \s*[\r\n]+ | \s+(?!\S) | \s+
size_t DeepseekWords(const TextSpan& text, size_t at);
// \s?[the letters deepseek-llm knows]+
size_t DeepseekLetters(const TextSpan& text, size_t at);
// \s?[!-/:-~ and their full-width forms, quotes, U+3000-3002]+
size_t DeepseekPunctuation(const TextSpan& text, size_t at);
size_t SpacePunctuation(const TextSpan& text, size_t at);  // \s?\p{P}+
size_t SpaceLetters(const TextSpan& text, size_t at);      // \s?\p{L}+
size_t Newline(const TextSpan& text, size_t at);           // [\r\n]
size_t TrailingSpaces(const TextSpan& text, size_t at);    // \s+$
size_t HanAndKana(const TextSpan& text, size_t at);        // [U+4E00-9FA5 U+3040-30FF]+
size_t HanToHangul(const TextSpan& text, size_t at);       // [U+4E00-9FA5 U+0800-4E00 U+AC00-D7FF]+

size_t OneNumber(const TextSpan& text, size_t at);           // \p{N}
size_t NumberRun(const TextSpan& text, size_t at);           // \p{N}+
size_t ThreeNumbers(const TextSpan& text, size_t at);        // \p{N}{1,3}
size_t ThreeAsciiDigits(const TextSpan& text, size_t at);    // [0-9][0-9][0-9]
size_t FalconPunctuation(const TextSpan& text, size_t at);   // [\p{P}$+<=>^~|`]+
size_t DefaultPunctuation(const TextSpan& text, size_t at);  // [\p{P}$+<=>^~|]+
size_t BloomWords(const TextSpan& text, size_t at);          // ?[^(\s|.,!?...)]+
size_t LinesAndBreaks(const TextSpan& text, size_t at);      // [^\n]+ | \n+

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_PRETOKENIZE_RULES_H_
