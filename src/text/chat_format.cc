#include "src/text/chat_format.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <utility>

#include "src/base/printable.h"
#include "src/text/chat_template.h"

namespace sluice {

ChatFormat::ChatFormat(jinja::Template compiled) : template_(std::move(compiled)) {
  // Some templates make a control token of the role: '<|' + message['role'] + '|>'. These roles are
  // words of this program, which nobody else can write.
  options_.frame_roles = {"system", "user", "assistant"};
}

Result<ChatFormat> ChatFormat::Detect(const Gguf& gguf) {
  ASSIGN_OR_RETURN(const std::string source, ChatTemplateOf(gguf, false));
  Result<ChatFormat> format = FromTemplate(source);
  if (!format.ok()) return format.status().Within(Printable(gguf.path(), 200));
  return format;
}

Result<ChatFormat> ChatFormat::FromTemplate(std::string_view source) {
  Result<jinja::Template> compiled = jinja::Template::Parse(source);
  if (!compiled.ok()) return compiled.status().Within("tokenizer.chat_template");
  return ChatFormat(*std::move(compiled));
}

Result<std::vector<ChatPart>> ChatFormat::Render(std::span<const ChatMessage> messages,
                                                 bool add_generation_prompt, std::string_view bos,
                                                 std::string_view eos) const {
  boost::json::array turns;
  for (const ChatMessage& m : messages) {
    turns.push_back(boost::json::object{{"role", m.role}, {"content", m.content}});
  }
  boost::json::object variables{{"messages", std::move(turns)},
                                {"tools", nullptr},
                                {"documents", nullptr},
                                {"add_generation_prompt", add_generation_prompt}};
  if (!bos.empty()) variables["bos_token"] = bos;
  if (!eos.empty()) variables["eos_token"] = eos;
  return template_.Render(variables, options_);
}

Result<std::vector<int32_t>> ChatFormat::Encode(const Tokenizer& tokenizer,
                                                std::span<const ChatMessage> messages,
                                                bool add_generation_prompt) const {
  const auto text = [&](std::optional<int32_t> id) {
    return id.has_value() ? tokenizer.text(*id) : std::string_view();
  };
  ASSIGN_OR_RETURN(
      const std::vector<ChatPart> parts,
      Render(messages, add_generation_prompt, text(tokenizer.bos()), text(tokenizer.eos())));
  std::vector<Tokenizer::Part> views;
  for (const ChatPart& part : parts) views.push_back({part.text, part.frame});
  return tokenizer.EncodeParts(views, false);
}

}  // namespace sluice
