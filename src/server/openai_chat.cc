#include "src/server/openai_chat.h"

#include <algorithm>
#include <utility>

#include "src/server/chat_prompt.h"
#include "src/server/openai_prompt_logprobs.h"
#include "src/server/random_id.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr size_t kPromptEnd = 64;  // characters of the prompt's end: more than any mark

json::array BytesOf(const std::string& piece) {
  json::array bytes;
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

json::object LogprobOf(const std::string& piece, float logprob) {
  return {
      {"token", ShownPiece(piece)}, {"logprob", ShownLogprob(logprob)}, {"bytes", BytesOf(piece)}};
}

void ReadLogprobs(Fields* fields, OpenAiRequest* request) {
  const bool wanted = fields->Bool("logprobs", false);
  const auto top = static_cast<int>(fields->Int("top_logprobs", 0, 0, 20));
  if (top > 0 && !wanted) fields->Fail("top_logprobs", "needs logprobs to be true");
  request->answer.logprobs = wanted ? top : -1;
  request->call.options.logprobs = request->answer.logprobs;
}

ChatPromptOptions ReadPromptOptions(const ToolPlan& tools, Fields* fields) {
  ChatPromptOptions options;
  if (!tools.tools.empty()) options.tools = &tools.tools;
  options.continue_final_message = fields->Bool("continue_final_message", false);
  options.add_generation_prompt =
      fields->Bool("add_generation_prompt", !options.continue_final_message);
  if (options.continue_final_message && options.add_generation_prompt) {
    fields->Fail("continue_final_message", "cannot go together with add_generation_prompt");
  }
  if (const json::object* extra = fields->Object("chat_template_kwargs")) options.extra = *extra;
  for (const char* name : {"reasoning_effort", "documents"}) {
    const json::value* value = fields->Find(name);
    if (value != nullptr && !options.extra.contains(name)) options.extra[name] = *value;
  }
  if (fields->Has("chat_template")) {
    fields->Fail("chat_template", "the template is the server's; see --chat-template-file");
  }
  return options;
}

void AddShownTokens(const std::vector<int32_t>& ids, Request* request) {
  std::vector<int32_t>& shown = request->shown_tokens;
  shown.insert(shown.end(), ids.begin(), ids.end());
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
}

}  // namespace

Status PrepareChat(const ServedModel& model, const json::array& messages, const ToolPlan& tools,
                   std::shared_ptr<const Grammar> grammar, const char* messages_key, Fields* fields,
                   OpenAiRequest* request) {
  const ChatPromptOptions prompt_options = ReadPromptOptions(tools, fields);
  const std::string reasoning = fields->String("reasoning_format", "auto");
  AnswerOptions& answer = request->answer;
  answer.show_reasoning = fields->Bool("include_reasoning", true);
  if (tools.forced && grammar != nullptr) {
    fields->Fail("tool_choice", "a forced call and a grammar for the answer exclude each other");
  }
  RETURN_IF_ERROR(fields->status());

  Result<ChatPrompt> prompt = RenderChat(model, messages, prompt_options);
  if (!prompt.ok()) {
    const std::string& message = prompt.status().message();
    const bool about_tools = message.starts_with("tools");
    fields->Fail(about_tools ? "tools" : messages_key, message);  // remembered as the param
    return prompt.status();
  }
  request->call.prompts = {std::move(prompt->ids)};
  if (Status fit = FitPrompts(model, fields, &request->call); !fit.ok()) {
    fields->Fail(messages_key, fit.message());
    return fit;
  }
  answer.prompts = request->call.prompts;
  RETURN_IF_ERROR(WantPromptLogprobs(fields, request));

  ChatOutputOptions& output = answer.output;
  output.template_source = model.chat_source();
  const std::string& text = prompt->text;
  output.prompt_end = text.substr(text.size() - std::min(text.size(), kPromptEnd));
  output.reasoning = reasoning != "none" && TemplateMarksReasoning(model.chat_source());
  output.tools = !tools.tools.empty();
  output.tool_list = tools.tools;
  output.only_calls = tools.forced;
  answer.parallel_tool_calls = tools.parallel;
  AddShownTokens(ChatMarkIds(model.tokenizer(), output), &request->call.options);
  if (tools.forced) {
    Result<std::shared_ptr<const Grammar>> calls = Grammar::FromJsonSchema(ForcedCallSchema(tools));
    if (!calls.ok()) {
      fields->Fail("tools", calls.status().message());
      return fields->status();
    }
    grammar = *std::move(calls);
  }
  Constrain(model, std::move(grammar), ConstraintStart(output), &request->call);
  return Status();
}

Result<OpenAiRequest> ParseChat(const ServedModel& model, const json::object& body,
                                std::string* param) {
  OpenAiRequest request;
  Fields fields(body);
  ReadOpenAiRequest(model, SIZE_MAX, &fields, &request);
  ReadLogprobs(&fields, &request);
  ReadPromptLogprobs(&fields, &request);
  const ToolPlan tools = ReadTools(&fields);
  const std::shared_ptr<const Grammar> grammar = ReadGrammar(&fields);
  const json::array* messages = fields.Array("messages");
  if (messages == nullptr) fields.Fail("messages", "missing; expected an array of messages");
  Status status = fields.status();
  if (status.ok()) {
    status = PrepareChat(model, *messages, tools, grammar, "messages", &fields, &request);
  }
  *param = fields.param();
  if (!status.ok()) return status;
  request.answer.id = RandomId("chatcmpl-", 24);
  return request;
}

ChatDelta ShownDelta(ChatDelta delta, const AnswerOptions& options) {
  if (!options.show_reasoning) delta.reasoning.clear();
  if (!options.parallel_tool_calls) {
    std::erase_if(delta.tool_calls, [](const ToolCallDelta& call) { return call.index > 0; });
  }
  return delta;
}

ChatAnswer::ChatAnswer(AnswerOptions options, std::shared_ptr<Exchange> exchange)
    : OpenAiAnswer(std::move(options), std::move(exchange)), messages_(choices()) {
  set_chunk_object("chat.completion.chunk");
  for (Message& message : messages_) {
    message.output = std::make_unique<ChatOutput>(this->options().output);
  }
}

void ChatAnswer::AddToken(size_t choice, const TokenDelta& token) {
  Message& message = messages_[choice];
  ChatDelta delta;
  if (!token.text.empty()) delta = message.output->Push(token.text);
  if (!delta.reasoning.empty()) this->choice(choice).reasoning_tokens = this->choice(choice).tokens;
  delta = ShownDelta(std::move(delta), options());
  if (options().logprobs >= 0 && token.id >= 0) {
    json::object entry = LogprobOf(token.piece, token.logprob);
    json::array top;
    for (const TokenLogprob& other : token.top) {
      top.push_back(LogprobOf(options().piece(other.id), other.logprob));
    }
    entry["top_logprobs"] = std::move(top);
    message.logprobs.push_back(std::move(entry));
  }
  if (!options().stream) return Take(message, delta);
  const bool shown =
      !delta.empty() || !message.logprobs.empty() || (options().return_token_ids && token.id >= 0);
  if (shown) SendDelta(choice, delta);
}

void ChatAnswer::Take(Message& message, const ChatDelta& delta) {
  message.content += delta.content;
  message.reasoning += delta.reasoning;
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (call.index >= message.calls.size()) {
      message.calls.push_back(json::object{{"id", call.id},
                                           {"type", "function"},
                                           {"function", {{"name", call.name}, {"arguments", ""}}}});
    }
    json::object& function = message.calls[call.index].as_object()["function"].as_object();
    json::string& arguments = function["arguments"].as_string();
    arguments.append(call.arguments);
  }
}

void ChatAnswer::SendDelta(size_t choice, const ChatDelta& delta) {
  Message& message = messages_[choice];
  json::object out;
  const bool first = !message.sent;
  if (first) out["role"] = "assistant";
  if (!delta.reasoning.empty()) out["reasoning_content"] = delta.reasoning;
  if (!delta.content.empty() || (first && delta.reasoning.empty())) {
    out["content"] = delta.content;
    if (delta.content.empty() && !delta.tool_calls.empty()) out["content"] = nullptr;
  }
  if (!delta.tool_calls.empty()) {
    json::array calls;
    for (const ToolCallDelta& call : delta.tool_calls) {
      json::object entry = {{"index", call.index}};
      json::object function;
      if (!call.name.empty()) {
        entry["id"] = call.id;
        entry["type"] = "function";
        function["name"] = call.name;
      }
      function["arguments"] = call.arguments;
      entry["function"] = std::move(function);
      calls.push_back(std::move(entry));
    }
    out["tool_calls"] = std::move(calls);
  }
  json::object entry = {{"index", choice},
                        {"delta", std::move(out)},
                        {"logprobs", TakeLogprobs(message)},
                        {"finish_reason", nullptr}};
  AddIds(choice, entry);
  message.sent = true;
  SendChunk("chat.completion.chunk", {std::move(entry)}, choice, false);
}

json::value ChatAnswer::TakeLogprobs(Message& message) {
  if (options().logprobs < 0) return nullptr;
  return json::object{{"content", std::exchange(message.logprobs, json::array())}};
}

void ChatAnswer::AddIds(size_t choice, json::object& out) {
  if (!options().return_token_ids) return;
  Message& message = messages_[choice];
  const std::vector<int32_t>& ids = this->choice(choice).ids;
  out["token_ids"] = json::array(ids.begin() + static_cast<ptrdiff_t>(message.ids_sent), ids.end());
  message.ids_sent = ids.size();
}

void ChatAnswer::EndChoice(size_t choice) {
  Message& message = messages_[choice];
  ChatDelta rest = message.output->Finish();
  if (!rest.reasoning.empty()) this->choice(choice).reasoning_tokens = this->choice(choice).tokens;
  rest = ShownDelta(std::move(rest), options());
  if (!options().stream) return Take(message, rest);
  if (!rest.empty() || !message.sent) SendDelta(choice, rest);
  json::object entry = {{"index", choice},
                        {"delta", json::object()},
                        {"logprobs", nullptr},
                        {"finish_reason", FinishName(choice, message.output->tool_calls() > 0)}};
  SendChunk("chat.completion.chunk", {std::move(entry)}, choice, last_choice());
}

void ChatAnswer::FillBody(json::object& body) {
  body = Frame("chat.completion");
  json::array list;
  for (size_t i = 0; i < choices(); ++i) {
    Message& m = messages_[i];
    json::object message = {{"role", "assistant"}, {"content", m.content}, {"refusal", nullptr}};
    if (!m.reasoning.empty()) message["reasoning_content"] = m.reasoning;
    const bool called = !m.calls.empty();
    if (called && m.content.empty()) message["content"] = nullptr;
    if (called) message["tool_calls"] = std::move(m.calls);
    json::object entry = {{"index", i},
                          {"message", std::move(message)},
                          {"logprobs", TakeLogprobs(m)},
                          {"finish_reason", FinishName(i, called)}};
    AddIds(i, entry);
    list.push_back(std::move(entry));
  }
  body["choices"] = std::move(list);
  if (options().prompt_logprobs >= 0) {
    body["prompt_logprobs"] = std::move(choice(0).prompt_logprobs);
  }
  if (options().return_token_ids) {
    const std::vector<int32_t>& prompt = options().prompts[0];
    body["prompt_token_ids"] = json::array(prompt.begin(), prompt.end());
  }
}

}  // namespace sluice
