// The part of ECMAScript's regular expressions that describes a language (no
// look-around, back references, word boundaries): the `pattern` of a JSON schema,
// and an answer that is to match one as a whole. Used by json_schema.cc and
// Grammar::FromRegex; stateless.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_REGEX_H_
#define SLUICE_SRC_TEXT_GRAMMAR_REGEX_H_

#include <memory>
#include <string_view>

#include "src/base/status.h"
#include "src/text/grammar/automaton.h"
#include "src/text/grammar/json_text.h"

namespace sluice::grammar {

// The inside of a JSON string whose text matches somewhere, or as ^ and $ say. What is not known is
// kInvalidArgument: "pattern: ...".
Result<Expressions::Id> ReadPattern(std::string_view pattern, Expressions& expressions,
                                    JsonText& json);

// The texts that match from their first to their last character, with or without ^ and $.
// kInvalidArgument as above, or: no text matches, too large.
Result<std::shared_ptr<const Automaton>> CompileRegex(std::string_view pattern);

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_REGEX_H_
