// Reads grammars as llama.cpp writes them (GBNF): rules `name ::= ...` of
// literals, character classes, groups, choices and repetitions; the rule `root`
// is the whole text. Called through Grammar::FromGbnf; stateless.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_GBNF_H_
#define SLUICE_SRC_TEXT_GRAMMAR_GBNF_H_

#include <memory>
#include <string_view>

#include "src/base/status.h"
#include "src/text/grammar/automaton.h"

namespace sluice::grammar {

// kInvalidArgument with line and column.
Result<std::shared_ptr<const Automaton>> CompileGbnf(std::string_view source);

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_GBNF_H_
