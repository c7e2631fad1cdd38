// The `pattern` of a JSON schema: the part of ECMAScript's regular expressions
// that describes a language (no look-around, back references, word
// boundaries). Used by json_schema.cc; stateless.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_REGEX_H_
#define SLUICE_SRC_TEXT_GRAMMAR_REGEX_H_

#include <string_view>

#include "src/base/status.h"
#include "src/text/grammar/json_text.h"

namespace sluice::grammar {

// The inside of a JSON string whose text matches somewhere, or as ^ and $ say. What is not known is
// kInvalidArgument: "pattern: ...".
Result<Expressions::Id> ReadPattern(std::string_view pattern, Expressions& expressions,
                                    JsonText& json);

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_REGEX_H_
