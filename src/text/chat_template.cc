#include "src/text/chat_template.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/printable.h"
#include "src/text/unicode.h"

namespace sluice {

Result<std::string> ChatTemplateOf(const Gguf& gguf, bool with_tools) {
  if (with_tools) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> named,
                     gguf.String("tokenizer.chat_template.tool_use"));
    if (named.has_value()) return std::string(*named);
  }
  for (const char* key : {"tokenizer.chat_template", "tokenizer.chat_template.default"}) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> source, gguf.String(key));
    if (source.has_value()) return std::string(*source);
  }
  return Status(StatusCode::kNotFound,
                Printable(std::filesystem::path(gguf.path()).filename().string(), 200) +
                    ": no tokenizer.chat_template, so this is a base model, which continues text "
                    "and holds no conversation; complete with it, or take an instruction-tuned "
                    "model or (serve) --chat-template FILE");
}

void AddTokenVariables(const Gguf& gguf, boost::json::object& variables) {
  const Result<std::vector<std::string_view>> tokens = gguf.Strings("tokenizer.ggml.tokens");
  if (!tokens.ok()) return;
  for (const std::string name : {"bos", "eos"}) {
    const auto id = gguf.U64("tokenizer.ggml." + name + "_token_id");
    if (!id.ok() || !id->has_value() || **id >= tokens->size()) continue;
    variables[name + "_token"] = ReplaceBadUtf8((*tokens)[**id]);
  }
}

}  // namespace sluice
