#include "src/text/grammar/json_schema.h"

#include "src/text/grammar/json_text.h"

namespace sluice::grammar {

std::shared_ptr<const Automaton> CompileJsonObject() {
  Expressions expressions;
  JsonText json(expressions);
  const uint32_t root = expressions.AddRule("root");
  expressions.Define(root, json.AnyObject());
  auto automaton =
      BuildAutomaton(expressions, root, [](uint32_t) { return std::string("JSON object"); });
  return *std::move(automaton);  // of nothing from outside
}

Result<std::shared_ptr<const Automaton>> CompileJsonSchema(const boost::json::value&) {
  return Status(StatusCode::kInvalidArgument, "json_schema: not yet");
}

}  // namespace sluice::grammar
