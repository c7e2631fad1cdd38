// A template's source cut into text, and the tokens inside its tags.
#ifndef SLUICE_SRC_TEXT_JINJA_LEXER_H_
#define SLUICE_SRC_TEXT_JINJA_LEXER_H_

#include <string>
#include <string_view>
#include <vector>

#include "src/text/jinja/value.h"

namespace sluice::jinja {

enum class TokenKind : uint8_t {
  kText,      // outside tags, blanks already taken off as the tags around say
  kOpen,      // {{
  kClose,     // }}
  kOpenTag,   // {%
  kCloseTag,  // %}
  kName,
  kString,  // text: with its escapes resolved
  kInt,
  kFloat,
  kOperator,  // text: one of + - * ** / // % ~ ( ) [ ] { } . , : | ; = == != < <= > >=
  kEnd,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;
  Int integer = 0;
  double number = 0;
};

// Always ends with kEnd.
Result<std::vector<Token>> Tokenize(std::string_view source);

// An error at a line, as all of this folder look: "line 3: ...".
Status ErrorAt(int line, StatusCode code, const std::string& what);

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_LEXER_H_
