// Which tools a request offers and whether it wants one called. Stateless, any thread.
#ifndef SLUICE_SRC_SERVER_OPENAI_TOOLS_H_
#define SLUICE_SRC_SERVER_OPENAI_TOOLS_H_

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <string>

#include "src/server/fields.h"

namespace sluice {

struct ToolPlan {
  boost::json::array tools;  // what the model is shown; empty: none
  bool forced = false;       // the answer is a call, or several
  std::string only;          // the one that is forced; empty: any
  bool parallel = true;
};

// tools, tool_choice, parallel_tool_calls, and the deprecated functions, function_call. With a tool
// named, that one alone is forced; the model is still shown all of them.
ToolPlan ReadTools(Fields* fields);

// What a forced answer is held to: {"name": ..., "arguments": {...}} of one of the tools, or an
// array of them. Every family reads that, whatever marks it was trained to write.
boost::json::value ForcedCallSchema(const ToolPlan& plan);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OPENAI_TOOLS_H_
