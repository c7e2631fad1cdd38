#include "src/server/openai_responses.h"

#include <utility>

#include "src/server/openai_chat.h"
#include "src/server/random_id.h"

namespace sluice {
namespace {

namespace json = boost::json;

Status Bad(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

json::object TextPart(const std::string& text) {
  return {{"type", "output_text"}, {"text", text}, {"annotations", json::array()}};
}

// A function call belongs to the assistant's turn before it, if there is one.
void AddCall(const Fields& item, json::array* messages) {
  json::object call = {{"id", item.Find("call_id") ? *item.Find("call_id") : json::value("")},
                       {"type", "function"},
                       {"function", json::object()}};
  for (const char* key : {"name", "arguments"}) {
    if (item.Has(key)) call["function"].as_object()[key] = *item.Find(key);
  }
  const bool joins =
      !messages->empty() && Fields(messages->back().as_object()).String("role") == "assistant";
  if (!joins) messages->push_back(json::object{{"role", "assistant"}, {"content", nullptr}});
  json::value& calls = messages->back().as_object()["tool_calls"];
  if (!calls.is_array()) calls = json::array();
  calls.get_array().push_back(std::move(call));
}

Status AddItem(const json::value& value, const std::string& where, json::array* messages) {
  const json::object* object = value.if_object();
  if (object == nullptr) return Bad(where + ": expected an object");
  Fields item(*object);
  const std::string type = item.String("type", "message");
  if (type == "message") {
    if (!item.Has("role")) return Bad(where + ".role: missing");
    json::object message = {{"role", *item.Find("role")}};
    if (item.Has("content")) message["content"] = *item.Find("content");
    messages->push_back(std::move(message));
  } else if (type == "function_call") {
    AddCall(item, messages);
  } else if (type == "function_call_output") {
    json::object message = {{"role", "tool"}};
    if (item.Has("call_id")) message["tool_call_id"] = *item.Find("call_id");
    if (item.Has("output")) message["content"] = *item.Find("output");
    messages->push_back(std::move(message));
  } else if (type != "reasoning") {  // what was thought before is not shown to models again
    return Bad(where + ": items of type \"" + type + "\" are not available here");
  }
  return item.status();
}

Status ReadInput(Fields* fields, json::array* messages) {
  if (fields->Has("instructions")) {
    messages->push_back(
        json::object{{"role", "system"}, {"content", fields->String("instructions")}});
  }
  const json::value* input = fields->Find("input");
  if (input == nullptr) return Bad("input: missing; expected text or a list of messages");
  if (input->is_string()) {
    messages->push_back(json::object{{"role", "user"}, {"content", *input}});
    return Status();
  }
  if (!input->is_array()) return Bad("input: expected text or a list of messages");
  const json::array& items = input->get_array();
  for (size_t i = 0; i < items.size(); ++i) {
    RETURN_IF_ERROR(AddItem(items[i], "input[" + std::to_string(i) + "]", messages));
  }
  return Status();
}

// What the chat request calls it, as the client wrote it.
std::string ParamOf(const std::string& param) {
  if (param == "messages") return "input";
  if (param == "max_completion_tokens") return "max_output_tokens";
  if (param == "response_format") return "text.format";
  if (param == "reasoning_effort") return "reasoning.effort";
  return param;
}

}  // namespace

Result<json::object> ResponsesToChat(const json::object& body, std::string* param) {
  Fields fields(body);
  for (const char* key : {"previous_response_id", "conversation", "prompt"}) {
    if (fields.Has(key)) {
      fields.Fail(key, "no responses are stored here; send the whole conversation as input");
    }
  }
  if (fields.Has("prompt_logprobs")) {
    fields.Fail("prompt_logprobs", "not available here; /v1/chat/completions has them");
  }
  if (fields.Bool("background", false)) {
    fields.Fail("background", "no responses are stored here to be fetched later");
  }
  json::object chat = body;
  for (const char* key : {"input", "instructions", "max_output_tokens", "text", "reasoning", "n",
                          "max_tokens", "max_completion_tokens", "logprobs", "top_logprobs"}) {
    chat.erase(key);
  }
  json::array messages;
  if (const Status read = ReadInput(&fields, &messages); !read.ok()) {
    *param = fields.status().ok() ? "input" : fields.param();
    return read;
  }
  chat["messages"] = std::move(messages);
  if (fields.Has("max_output_tokens")) {
    chat["max_completion_tokens"] = *fields.Find("max_output_tokens");
  }
  if (const json::object* text = fields.Object("text")) {
    if (const json::value* format = text->if_contains("format")) chat["response_format"] = *format;
  }
  if (const json::object* reasoning = fields.Object("reasoning")) {
    if (const json::value* effort = reasoning->if_contains("effort")) {
      chat["reasoning_effort"] = *effort;
    }
  }
  *param = fields.param();
  if (!fields.status().ok()) return fields.status();
  return chat;
}

Result<OpenAiRequest> ParseResponses(const ServedModel& model, const json::object& body,
                                     std::string* param) {
  ASSIGN_OR_RETURN(const json::object chat, ResponsesToChat(body, param));
  Result<OpenAiRequest> request = ParseChat(model, chat, param);
  *param = ParamOf(*param);
  if (request.ok()) request->answer.id = RandomId("resp_", 24);
  return request;
}

ResponsesAnswer::ResponsesAnswer(AnswerOptions options, const json::object& body,
                                 std::shared_ptr<Exchange> exchange)
    : OpenAiAnswer(std::move(options), std::move(exchange)),
      output_(this->options().output),
      request_(body) {}

void ResponsesAnswer::AddToken(size_t choice, const TokenDelta& token) {
  if (token.text.empty()) return;
  const ChatDelta delta = output_.Push(token.text);
  if (!delta.reasoning.empty()) this->choice(choice).reasoning_tokens = this->choice(choice).tokens;
  Take(ShownDelta(delta, options()));
}

void ResponsesAnswer::EndChoice(size_t) {
  Take(ShownDelta(output_.Finish(), options()));
  if (items_.empty() && open_ == Item::kNone) OpenItem(Item::kMessage, nullptr);
  CloseItem();
}

void ResponsesAnswer::Take(const ChatDelta& delta) {
  Append(Item::kReasoning, delta.reasoning);
  Append(Item::kMessage, delta.content);
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (!call.name.empty()) OpenItem(Item::kCall, &call);
    Append(Item::kCall, call.arguments);
  }
}

void ResponsesAnswer::Append(Item kind, const std::string& text) {
  if (text.empty()) return;
  if (open_ != kind) OpenItem(kind, nullptr);
  text_ += text;
  if (kind == Item::kCall) {
    EmitOfItem("response.function_call_arguments.delta", {{"delta", text}});
    return;
  }
  const bool message = kind == Item::kMessage;
  EmitOfItem(message ? "response.output_text.delta" : "response.reasoning_text.delta",
             {{"content_index", 0}, {"delta", text}});
}

void ResponsesAnswer::OpenItem(Item kind, const ToolCallDelta* call) {
  CloseItem();
  open_ = kind;
  text_.clear();
  if (call != nullptr) call_ = *call;
  item_id_ = RandomId(kind == Item::kMessage ? "msg_" : kind == Item::kCall ? "fc_" : "rs_", 24);
  Emit("response.output_item.added",
       {{"output_index", items_.size()}, {"item", ItemObject("in_progress")}});
  if (kind == Item::kMessage) {
    EmitOfItem("response.content_part.added", {{"content_index", 0}, {"part", TextPart("")}});
  }
}

void ResponsesAnswer::CloseItem() {
  if (open_ == Item::kNone) return;
  if (open_ == Item::kMessage) {
    EmitOfItem("response.output_text.done", {{"content_index", 0}, {"text", text_}});
    EmitOfItem("response.content_part.done", {{"content_index", 0}, {"part", TextPart(text_)}});
  } else if (open_ == Item::kReasoning) {
    EmitOfItem("response.reasoning_text.done", {{"content_index", 0}, {"text", text_}});
  } else {
    EmitOfItem("response.function_call_arguments.done",
               {{"name", call_.name}, {"arguments", text_}});
  }
  json::object item = ItemObject("completed");
  Emit("response.output_item.done", {{"output_index", items_.size()}, {"item", item}});
  items_.push_back(std::move(item));
  open_ = Item::kNone;
}

json::object ResponsesAnswer::ItemObject(const char* status) const {
  const bool done = std::string_view(status) == "completed";
  if (open_ == Item::kCall) {
    return {{"id", item_id_},      {"type", "function_call"}, {"status", status},
            {"call_id", call_.id}, {"name", call_.name},      {"arguments", done ? text_ : ""}};
  }
  json::array content;
  if (open_ == Item::kReasoning) {
    if (done) content.push_back(json::object{{"type", "reasoning_text"}, {"text", text_}});
    return {{"id", item_id_},
            {"type", "reasoning"},
            {"summary", json::array()},
            {"content", std::move(content)}};
  }
  if (done) content.push_back(TextPart(text_));
  return {{"id", item_id_},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

void ResponsesAnswer::EmitOfItem(const char* name, json::object fields) {
  fields["item_id"] = item_id_;
  fields["output_index"] = items_.size();
  Emit(name, std::move(fields));
}

void ResponsesAnswer::Emit(const char* name, json::object fields) {
  if (!options().stream) return;
  if (!std::exchange(begun_, true)) {
    Emit("response.created", {{"response", Response("in_progress")}});
    Emit("response.in_progress", {{"response", Response("in_progress")}});
  }
  fields["type"] = name;
  fields["sequence_number"] = sequence_number_++;
  SendEvent(name, fields);
}

json::object ResponsesAnswer::Response(const char* status) const {
  json::object response = {{"id", options().id},
                           {"object", "response"},
                           {"created_at", options().created},
                           {"status", status},
                           {"model", options().model},
                           {"output", items_},
                           {"error", nullptr},
                           {"incomplete_details", nullptr},
                           {"previous_response_id", nullptr},
                           {"store", false},
                           {"truncation", "disabled"},
                           {"parallel_tool_calls", options().parallel_tool_calls},
                           {"tool_choice", "auto"},
                           {"tools", json::array()},
                           {"metadata", json::object()},
                           {"usage", nullptr}};
  for (const char* key : {"instructions", "max_output_tokens", "temperature", "top_p", "tools",
                          "tool_choice", "metadata", "reasoning", "text", "user"}) {
    const json::value* said = request_.if_contains(key);
    if (said != nullptr && !said->is_null()) response[key] = *said;
    response.emplace(key, nullptr);
  }
  return response;
}

void ResponsesAnswer::EndStream() {
  const bool cut = std::string_view(FinishName(0, false)) == "length";
  json::object response = Response(cut ? "incomplete" : "completed");
  if (cut) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  const json::object usage = Usage();
  json::object details = {{"reasoning_tokens", 0}};
  if (usage.contains("completion_tokens_details")) {
    details = usage.at("completion_tokens_details").as_object();
  }
  response["usage"] = {{"input_tokens", usage.at("prompt_tokens")},
                       {"input_tokens_details", usage.at("prompt_tokens_details")},
                       {"output_tokens", usage.at("completion_tokens")},
                       {"output_tokens_details", std::move(details)},
                       {"total_tokens", usage.at("total_tokens")}};
  if (!options().stream) return RespondJson(exchange(), response);
  Emit(cut ? "response.incomplete" : "response.completed", {{"response", std::move(response)}});
  exchange().End();
}

void ResponsesAnswer::EndWhole() { EndStream(); }

void ResponsesAnswer::OnError(const Status& status) {
  if (!streaming()) return OpenAiAnswer::OnError(status);
  Emit("error", {{"code", "server_error"}, {"message", status.message()}, {"param", nullptr}});
  exchange().End();
}

}  // namespace sluice
