#include "src/text/chat_format.h"

#include <optional>
#include <utility>

#include "src/base/printable.h"
#include "src/text/chat_template.h"

namespace sluice {

ChatFormat::ChatFormat(jinja::Template compiled) : template_(std::move(compiled)) {
  // Some templates make a control token of the role: '<|' + message['role'] + '|>'. These roles are
  // words of this program, which nobody else can write.
  options_.frame_roles = {"system", "developer", "user", "assistant", "tool"};
}

Result<ChatFormat> ChatFormat::Detect(const Gguf& gguf) {
  ASSIGN_OR_RETURN(const std::string source, ChatTemplateOf(gguf, false));
  Result<ChatFormat> format = FromTemplate(source);
  if (!format.ok()) {
    return format.status().Within("tokenizer.chat_template").Within(Printable(gguf.path(), 200));
  }
  return format;
}

Result<ChatFormat> ChatFormat::FromTemplate(std::string_view source) {
  ASSIGN_OR_RETURN(jinja::Template compiled, jinja::Template::Parse(source));
  return ChatFormat(std::move(compiled));
}

Result<std::vector<ChatPart>> ChatFormat::Render(ChatVariables variables, std::string_view bos,
                                                 std::string_view eos) const {
  boost::json::object all = std::move(variables.extra);
  all["messages"] = std::move(variables.messages);
  all["tools"] = nullptr;
  if (!variables.tools.empty()) all["tools"] = std::move(variables.tools);
  if (!all.contains("documents")) all["documents"] = nullptr;
  all["add_generation_prompt"] = variables.add_generation_prompt;
  // Both are frame, so nobody else may set them.
  for (const auto& [name, text] : {std::pair("bos_token", bos), std::pair("eos_token", eos)}) {
    all.erase(name);
    if (!text.empty()) all[name] = text;
  }
  return template_.Render(all, options_);
}

Result<std::vector<ChatPart>> ChatFormat::Render(ChatVariables variables,
                                                 const Tokenizer& tokenizer) const {
  const auto text = [&](std::optional<int32_t> id) {
    return id.has_value() ? tokenizer.text(*id) : std::string_view();
  };
  return Render(std::move(variables), text(tokenizer.bos()), text(tokenizer.eos()));
}

Result<std::vector<int32_t>> ChatFormat::Encode(const Tokenizer& tokenizer,
                                                std::span<const ChatMessage> messages,
                                                bool add_generation_prompt) const {
  ChatVariables variables;
  variables.messages = ToMessages(messages);
  variables.add_generation_prompt = add_generation_prompt;
  ASSIGN_OR_RETURN(const std::vector<ChatPart> parts, Render(std::move(variables), tokenizer));
  return EncodeChat(tokenizer, parts);
}

boost::json::array ToMessages(std::span<const ChatMessage> messages) {
  boost::json::array turns;
  for (const ChatMessage& m : messages) {
    turns.push_back(boost::json::object{{"role", m.role}, {"content", m.content}});
  }
  return turns;
}

std::vector<int32_t> EncodeChat(const Tokenizer& tokenizer, std::span<const ChatPart> parts) {
  std::vector<Tokenizer::Part> views;
  for (const ChatPart& part : parts) views.push_back({part.text, part.frame});
  return tokenizer.EncodeParts(views, false);
}

}  // namespace sluice
