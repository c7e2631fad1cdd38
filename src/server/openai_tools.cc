#include "src/server/openai_tools.h"

#include <boost/json/object.hpp>
#include <string_view>
#include <utility>

#include "src/base/printable.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr size_t kMostTools = 128;
constexpr int64_t kMostCalls = 16;

std::string_view NameOf(const json::value& tool) {
  const json::value* function = tool.as_object().if_contains("function");
  return function->as_object().at("name").as_string();
}

// Each in the form {"type": "function", "function": {...}}; Responses and the deprecated functions
// leave the inner object out.
void ReadToolList(Fields* fields, json::array* tools) {
  const char* key = fields->Has("tools") ? "tools" : "functions";
  const json::array* list = fields->Array(key);
  if (list == nullptr) return;
  if (list->size() > kMostTools) return fields->Fail(key, "expected at most 128 tools");
  for (const json::value& value : *list) {
    const json::object* tool = value.if_object();
    if (tool == nullptr) return fields->Fail(key, "expected objects with type and function");
    Fields outer(*tool);
    const std::string type = outer.String("type", "function");
    if (type != "function") {
      return fields->Fail(key, "a tool of type \"" + Printable(type) +
                                   "\", but only functions can be offered here");
    }
    const json::object* function = outer.Has("function") ? outer.Object("function") : tool;
    if (function == nullptr || Fields(*function).String("name").empty()) {
      return fields->Fail(key, "expected a function with a name");
    }
    json::object inner = *function;
    inner.erase("type");
    tools->push_back(json::object{{"type", "function"}, {"function", std::move(inner)}});
  }
}

void ReadChoice(Fields* fields, ToolPlan* plan) {
  const char* key = fields->Has("tool_choice") ? "tool_choice" : "function_call";
  const json::value* choice = fields->Find(key);
  if (choice == nullptr) return;
  if (choice->is_string()) {
    const std::string_view word = choice->get_string();
    if (word == "none") {
      plan->tools.clear();
    } else if (word == "required" || word == "any") {
      plan->forced = true;
    } else if (word != "auto") {
      fields->Fail(key, "expected none, auto, required or a named function");
    }
  } else if (const json::object* named = choice->if_object()) {
    const Fields outer(*named);
    const json::value* function = outer.Find("function");
    const json::object* inner =
        function != nullptr && function->is_object() ? function->if_object() : named;
    plan->only = Fields(*inner).String("name");
    plan->forced = true;
    if (plan->only.empty()) return fields->Fail(key, "expected the name of a function");
  } else {
    return fields->Fail(key, "expected none, auto, required or a named function");
  }
  if (!plan->forced) return;
  if (plan->tools.empty()) return fields->Fail(key, "there are no tools to call");
  bool known = plan->only.empty();
  for (const json::value& tool : plan->tools) known = known || NameOf(tool) == plan->only;
  if (!known) fields->Fail(key, "no tool is named \"" + Printable(plan->only) + "\"");
}

// References inside a tool's parameters count from the whole schema's root.
void MoveDefinitions(json::object* parameters, json::object* root) {
  for (const char* key : {"$defs", "definitions"}) {
    json::value* definitions = parameters->if_contains(key);
    if (definitions == nullptr || !definitions->is_object()) continue;
    json::value& all = (*root)[key];
    if (!all.is_object()) all = json::object();
    for (const auto& entry : definitions->get_object()) all.get_object().insert(entry);
    parameters->erase(key);
  }
}

json::object CallSchema(const json::object& function, json::object* root) {
  json::object parameters = {{"type", "object"}};
  const json::value* said = function.if_contains("parameters");
  if (said != nullptr && said->is_object() && !said->get_object().empty()) {
    parameters = said->get_object();
  }
  if (!parameters.contains("type")) parameters["type"] = "object";
  MoveDefinitions(&parameters, root);
  return {{"type", "object"},
          {"properties", {{"name", {{"const", function.at("name")}}}, {"arguments", parameters}}},
          {"required", json::array{"name", "arguments"}},
          {"additionalProperties", false}};
}

}  // namespace

ToolPlan ReadTools(Fields* fields) {
  ToolPlan plan;
  ReadToolList(fields, &plan.tools);
  if (fields->status().ok()) ReadChoice(fields, &plan);
  plan.parallel = fields->Bool("parallel_tool_calls", true);
  return plan;
}

json::value ForcedCallSchema(const ToolPlan& plan) {
  json::object root;
  json::array calls;
  for (const json::value& tool : plan.tools) {
    if (!plan.only.empty() && NameOf(tool) != plan.only) continue;
    calls.push_back(CallSchema(tool.as_object().at("function").as_object(), &root));
  }
  json::object call = calls.size() == 1 ? std::move(calls[0].as_object())
                                        : json::object{{"anyOf", std::move(calls)}};
  if (plan.only.empty() && plan.parallel) {
    call = json::object{
        {"type", "array"}, {"items", std::move(call)}, {"minItems", 1}, {"maxItems", kMostCalls}};
  }
  for (auto& entry : root) call.insert(entry);
  return call;
}

}  // namespace sluice
