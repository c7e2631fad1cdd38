#include "src/server/chat_prompt.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "src/base/printable.h"
#include "src/server/chat_output.h"

namespace sluice {
namespace {

namespace json = boost::json;

// Put behind the last message's content when that is to be continued: what the template writes
// after it is the end of a turn.
constexpr std::string_view kContinueMark = "[[the answer goes on here]]";

Status Bad(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

std::string_view StringOr(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                : std::string_view();
}

bool Mentions(std::string_view source, std::string_view word) {
  return source.find(word) != std::string_view::npos;
}

// How a message is brought into the form that templates read. Templates differ in whether a call's
// arguments are an object or its text, and in whether the content of a message with calls may be
// none: the next form is tried where a template refuses one.
struct Form {
  bool object_arguments, null_content;
};
constexpr Form kForms[] = {{true, true}, {false, true}, {true, false}, {false, false}};

// Text parts of a content array: a line each, but one after the other where the template itself
// would read the parts so.
Result<std::string> JoinParts(const json::array& parts, bool lines, const std::string& where) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string here = where + "[" + std::to_string(i) + "]";
    if (i > 0 && lines) text += '\n';
    if (parts[i].is_string()) {
      text += std::string_view(parts[i].get_string());
      continue;
    }
    if (!parts[i].is_object()) return Bad(here + ": expected a content part, an object with type");
    const json::object& part = parts[i].get_object();
    const std::string_view type = StringOr(part, "type");
    if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal") {
      return Bad(here + ": a part of type \"" + Printable(type) +
                 "\", but this model reads text only; send parts of type \"text\"");
    }
    const json::value* value = part.if_contains(type == "refusal" ? "refusal" : "text");
    if (value == nullptr || !value->is_string()) return Bad(here + ".text: expected a string");
    text += std::string_view(value->get_string());
  }
  return text;
}

Result<json::object> ReadToolCall(const json::value& value, const Form& form,
                                  const std::string& where) {
  if (!value.is_object()) return Bad(where + ": expected a tool call, an object with function");
  json::object call = value.get_object();
  if (!call.contains("type")) call["type"] = "function";
  json::value* function = call.if_contains("function");
  if (function == nullptr || !function->is_object()) {
    return Bad(where + ".function: expected an object with name and arguments");
  }
  json::object& body = function->get_object();
  if (StringOr(body, "name").empty()) return Bad(where + ".function.name: expected a string");
  json::value& arguments = body["arguments"];
  if (arguments.is_null()) arguments = json::object();
  if (!arguments.is_string() && !arguments.is_object()) {
    return Bad(where + ".function.arguments: expected JSON text or an object");
  }
  if (form.object_arguments && arguments.is_string()) {
    boost::system::error_code error;
    const std::string_view text = arguments.get_string();
    json::value parsed = text.empty() ? json::value(json::object()) : json::parse(text, error);
    if (!error && parsed.is_object()) arguments = std::move(parsed);
  } else if (!form.object_arguments && arguments.is_object()) {
    arguments = json::serialize(arguments);
  }
  return call;
}

// The deprecated form of one call.
void TakeUpFunctionCall(json::object& message) {
  const json::value* call = message.if_contains("function_call");
  if (call != nullptr && call->is_object() && !message.contains("tool_calls")) {
    json::object function = call->get_object();
    message["tool_calls"] = json::array{json::object{{"type", "function"}, {"function", function}}};
  }
  message.erase("function_call");
}

class MessageReader {
 public:
  MessageReader(std::string_view source, const Form& form) : source_(source), form_(form) {}

  Result<json::object> Read(const json::value& value, const std::string& where) {
    if (!value.is_object()) return Bad(where + ": expected an object with role and content");
    json::object message = value.get_object();
    RETURN_IF_ERROR(ReadRole(message, where));
    TakeUpFunctionCall(message);
    RETURN_IF_ERROR(ReadCalls(message, where));
    RETURN_IF_ERROR(ReadContent(message, where));
    ReadReasoning(message);
    return message;
  }
  // Whether another form could make a difference.
  bool several_forms() const { return several_forms_; }

 private:
  Status ReadRole(json::object& message, const std::string& where) {
    const std::string role(StringOr(message, "role"));
    if (role.empty() || role.size() > 64) {
      return Bad(where + ".role: expected system, user, assistant or tool");
    }
    if (role == "developer" && !Mentions(source_, "developer")) message["role"] = "system";
    if (role == "function") message["role"] = "tool";
    return Status();
  }

  Status ReadCalls(json::object& message, const std::string& where) {
    json::value* calls = message.if_contains("tool_calls");
    if (calls == nullptr) return Status();
    const bool empty = calls->is_null() || (calls->is_array() && calls->get_array().empty());
    if (empty) {
      message.erase("tool_calls");
      return Status();
    }
    if (!calls->is_array()) return Bad(where + ".tool_calls: expected an array");
    json::array& list = calls->get_array();
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string here = where + ".tool_calls[" + std::to_string(i) + "]";
      ASSIGN_OR_RETURN(list[i], ReadToolCall(list[i], form_, here));
    }
    several_forms_ = true;
    return Status();
  }

  Status ReadContent(json::object& message, const std::string& where) {
    const bool calls = message.contains("tool_calls");
    const bool assistant = StringOr(message, "role") == "assistant";
    const bool absent = !message.contains("content");
    json::value& content = message["content"];
    if (content.is_array()) {
      const bool reads_parts = Mentions(source_, "'text'") || Mentions(source_, "\"text\"");
      ASSIGN_OR_RETURN(content, JoinParts(content.get_array(), !reads_parts, where + ".content"));
    } else if (content.is_null()) {
      if (absent && !assistant) return Bad(where + ".content: missing; expected a string");
      if (!calls || !form_.null_content) content = "";
    } else if (!content.is_string()) {
      return Bad(where + ".content: expected a string, an array of parts or null");
    }
    return Status();
  }

  // Clients say reasoning_content or reasoning; templates read one of three names.
  void ReadReasoning(json::object& message) {
    std::string_view said = StringOr(message, "reasoning_content");
    if (said.empty()) said = StringOr(message, "reasoning");
    const std::string reasoning(said);
    message.erase("reasoning"), message.erase("reasoning_content");
    if (reasoning.empty()) return;
    message["reasoning_content"] = reasoning;
    if (Mentions(source_, "'reasoning'")) message["reasoning"] = reasoning;
    const bool both = message.contains("tool_calls") && !StringOr(message, "content").empty();
    if (Mentions(source_, "message.thinking") && !both) message["thinking"] = reasoning;
  }

  std::string_view source_;
  const Form form_;
  bool several_forms_ = false;
};

Status CheckTools(const json::array& tools) {
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string where = "tools[" + std::to_string(i) + "]";
    if (!tools[i].is_object()) return Bad(where + ": expected an object with type and function");
    const json::value* function = tools[i].get_object().if_contains("function");
    if (function == nullptr || !function->is_object() ||
        StringOr(function->get_object(), "name").empty()) {
      return Bad(where + ".function: expected an object with name and parameters");
    }
  }
  return Status();
}

// Cuts the prompt where the last message's content ends.
Status CutAtMark(std::vector<ChatPart>& parts) {
  std::string all;
  for (const ChatPart& part : parts) all += part.text;
  size_t keep = all.rfind(kContinueMark);
  if (keep == std::string::npos) {
    return Bad("continue_final_message: the chat template does not write the last message's text");
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].text.size() >= keep) {
      parts[i].text.resize(keep);
      parts.resize(i + 1);
      break;
    }
    keep -= parts[i].text.size();
  }
  return Status();
}

Result<ChatVariables> ReadVariables(MessageReader& reader, const json::array& messages,
                                    const ChatPromptOptions& options) {
  ChatVariables variables;
  for (size_t i = 0; i < messages.size(); ++i) {
    ASSIGN_OR_RETURN(json::object message,
                     reader.Read(messages[i], "messages[" + std::to_string(i) + "]"));
    variables.messages.push_back(std::move(message));
  }
  if (options.tools != nullptr) variables.tools = *options.tools;
  variables.add_generation_prompt = options.add_generation_prompt;
  variables.extra = options.extra;
  if (!options.continue_final_message) return variables;
  variables.add_generation_prompt = false;
  json::object& last = variables.messages.back().get_object();
  if (!last["content"].is_string()) return Bad("continue_final_message: the last message has none");
  const std::string_view text = last["content"].get_string();
  last["content"] = std::string(text).append(kContinueMark);
  return variables;
}

}  // namespace

Result<ChatPrompt> RenderChat(const ChatFormat& format, std::string_view source,
                              const Tokenizer& tokenizer, const json::array& messages,
                              const ChatPromptOptions& options) {
  if (messages.empty()) return Bad("messages: expected at least one");
  if (options.tools != nullptr) {
    RETURN_IF_ERROR(CheckTools(*options.tools));
    if (!options.tools->empty() && !TemplateKnowsTools(source)) {
      return Status(StatusCode::kUnsupported,
                    "tools: this model's chat template knows no tools; leave them out, or use a "
                    "model trained to call tools");
    }
  }
  Status refused;
  for (const Form& form : kForms) {
    MessageReader reader(source, form);
    ASSIGN_OR_RETURN(ChatVariables variables, ReadVariables(reader, messages, options));
    Result<std::vector<ChatPart>> parts = format.Render(std::move(variables), tokenizer);
    if (parts.ok()) {
      if (options.continue_final_message) RETURN_IF_ERROR(CutAtMark(*parts));
      ChatPrompt prompt;
      prompt.ids = EncodeChat(tokenizer, *parts);
      for (const ChatPart& part : *parts) prompt.text += part.text;
      if (prompt.ids.empty()) return Bad("messages: the chat template makes no text of them");
      return prompt;
    }
    if (refused.ok()) refused = parts.status().Within("chat template");
    if (!reader.several_forms()) break;
  }
  return refused;
}

Result<ChatPrompt> RenderChat(const ServedModel& model, const json::array& messages,
                              const ChatPromptOptions& options) {
  if (model.chat() == nullptr) {
    return Status(StatusCode::kUnsupported, model.chat_status().message());
  }
  return RenderChat(*model.chat(), model.chat_source(), model.tokenizer(), messages, options);
}

}  // namespace sluice
