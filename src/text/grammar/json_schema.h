// JSON schemas to automata: what a schema allows, written as JSON. Called
// through Grammar::FromJsonSchema; stateless.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_JSON_SCHEMA_H_
#define SLUICE_SRC_TEXT_GRAMMAR_JSON_SCHEMA_H_

#include <boost/json/value.hpp>
#include <memory>

#include "src/base/status.h"
#include "src/text/grammar/automaton.h"

namespace sluice::grammar {

// kInvalidArgument with the path of what is wrong or cannot be kept.
Result<std::shared_ptr<const Automaton>> CompileJsonSchema(const boost::json::value& schema);
std::shared_ptr<const Automaton> CompileJsonObject();  // any object

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_JSON_SCHEMA_H_
