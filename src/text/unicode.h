// Characters for the tokenizers: UTF-8 that may be bad, classes as the regular
// expressions of the reference tokenizers mean them, normal forms in linear
// time. Stateless; any thread.
#ifndef SLUICE_SRC_TEXT_UNICODE_H_
#define SLUICE_SRC_TEXT_UNICODE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

inline constexpr uint32_t kReplacement = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

struct DecodedChar {
  uint32_t code;   // kReplacement if bad
  uint8_t length;  // bytes, >= 1; of a bad sequence: its maximal subpart (Unicode 3.9, table 3-8)
  bool valid;      // well formed
  bool cut_off;    // not valid, but more bytes could still make it so
};
// The character at `at` (< text.size()).
DecodedChar DecodeChar(std::string_view text, size_t at);
void AppendUtf8(uint32_t code, std::string& out);

// Bytes that can never become a character, and at the end the unfinished ones, as U+FFFD.
bool IsUtf8(std::string_view text);
std::string ReplaceBadUtf8(std::string_view text);

// Bit set of one character's classes.
enum CharClass : uint16_t {
  kLetter = 1 << 0,       // \p{L}
  kMark = 1 << 1,         // \p{M}
  kNumber = 1 << 2,       // \p{N}
  kPunctuation = 1 << 3,  // \p{P}
  kSymbol = 1 << 4,       // \p{S}
  kSpace = 1 << 5,        // \s: White_Space
  kNewline = 1 << 6,      // \r \n
  kUpperish = 1 << 7,     // Lu Lt Lm Lo M: may open a word of gpt-4o
  kLowerish = 1 << 8,     // Ll Lm Lo M: may go on in it
  kNonspacing = 1 << 9,   // Mn
  kHidden = 1 << 10,      // Cc Cf Co
  kDecimal = 1 << 11,     // Nd
};
uint16_t ClassOf(uint32_t code);
bool IsHan(uint32_t code);

// Canonical composition and decomposition of valid UTF-8. utf8proc's own loop sorts marks by
// swapping neighbours, quadratic in a run of them; these sort each run at once.
std::string Nfc(std::string_view text);
std::vector<uint32_t> Nfd(std::string_view text);

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_UNICODE_H_
