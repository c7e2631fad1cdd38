// A string that knows where its bytes come from, and the characters in it.
// Valid UTF-8 always: what comes in was repaired before. Plain data.
#ifndef SLUICE_SRC_TEXT_JINJA_TEXT_H_
#define SLUICE_SRC_TEXT_JINJA_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/jinja/jinja.h"
#include "src/text/unicode.h"

namespace sluice::jinja {

class Text {
 public:
  // Bytes up to `end` are content or frame; neighbours differ.
  struct Run {
    size_t end;
    bool content;
  };

  Text() = default;
  explicit Text(std::string_view bytes, bool content = false) { Append(bytes, content); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  const std::vector<Run>& runs() const { return runs_; }

  void Append(std::string_view bytes, bool content);
  void Append(const Text& other, size_t from, size_t to);  // bytes [from, to) of other
  void Append(const Text& other) { Append(other, 0, other.size()); }
  void AppendChar(uint32_t code, bool content);
  Text Sub(size_t from, size_t to) const;
  bool ContentAt(size_t at) const;  // false past the end
  void Reserve(size_t bytes) { bytes_.reserve(bytes); }

 private:
  std::string bytes_;
  std::vector<Run> runs_;
};

// Calls `take(code, from, to, content)` for each character.
template <class Take>
void ForEachChar(const Text& text, Take take) {
  size_t run = 0;
  for (size_t at = 0; at < text.size();) {
    while (text.runs()[run].end <= at) ++run;
    const DecodedChar c = DecodeChar(text.bytes(), at);
    take(c.code, at, at + c.length, text.runs()[run].content);
    at += c.length;
  }
}

bool IsAscii(std::string_view bytes);
size_t CountChars(std::string_view bytes);
// Byte offset of character `index`; the end if there are fewer.
size_t OffsetOf(std::string_view bytes, size_t index);
// Where `needle` starts at or after `from`; npos. In linear time.
size_t Find(std::string_view text, std::string_view needle, size_t from = 0);
size_t FindLast(std::string_view text, std::string_view needle);

// Python's idea of characters.
bool IsSpace(uint32_t code);      // str.isspace, what strip() and split() take away
bool IsLineBreak(uint32_t code);  // str.splitlines
bool IsUpper(uint32_t code);
bool IsLower(uint32_t code);
bool IsTitle(uint32_t code);
bool IsCased(uint32_t code);
bool IsAlpha(uint32_t code);
bool IsNumeric(uint32_t code);
bool IsDigit(uint32_t code);
bool IsDecimal(uint32_t code);
bool IsPrintable(uint32_t code);
bool IsNameStart(uint32_t code);  // of an identifier
bool IsNameChar(uint32_t code);
int DecimalValue(uint32_t code);  // of a decimal digit of any script, else -1

Text Upper(const Text& text);
Text Lower(const Text& text);
Text Capitalize(const Text& text);  // first character upper (title) case, the others lower
Text TitleWords(const Text& text);  // str.title()
Text SwapCase(const Text& text);
Text CaseFold(const Text& text);
std::string Lower(std::string_view text);
Text Strip(const Text& text, std::string_view chars, bool left, bool right);  // "": blanks
// & < > " ' as HTML writes them.
Text EscapeHtml(const Text& text);

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_TEXT_H_
