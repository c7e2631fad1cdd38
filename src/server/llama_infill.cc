#include "src/server/llama_infill.h"

#include <boost/json/array.hpp>
#include <string_view>

#include "src/server/fields.h"

namespace sluice {

namespace json = boost::json;

namespace {

constexpr size_t kMostFiles = 1024;

struct Family {
  const char *prefix, *suffix, *middle;
  const char *repository, *file;  // null: none
};
// Where the model cards of the families say how to ask for the middle.
constexpr Family kFamilies[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>",
     "<|file_sep|>"},  // Qwen Coder, CodeGemma
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"},  // StarCoder 2
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", nullptr, nullptr},             // SantaCoder
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81hole\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     nullptr, nullptr},  // DeepSeek Coder
    {"\xE2\x96\x81<PRE>", "\xE2\x96\x81<SUF>", "\xE2\x96\x81<MID>", nullptr,
     nullptr},  // Code Llama
    {"<PRE>", "<SUF>", "<MID>", nullptr, nullptr},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", nullptr, nullptr},  // GLM
};

std::optional<int32_t> Find(const Tokenizer& tokenizer, const char* text) {
  return text == nullptr ? std::nullopt : tokenizer.SpecialId(text);
}

void Append(std::vector<int32_t>* ids, const Tokenizer& tokenizer, std::string_view text) {
  if (text.empty()) return;
  const std::vector<int32_t> more = tokenizer.Encode(text, {});
  ids->insert(ids->end(), more.begin(), more.end());
}

}  // namespace

Result<InfillText> ReadInfill(const json::object& body) {
  InfillText text;
  Fields fields(body);
  text.prefix = fields.String("input_prefix");
  text.suffix = fields.String("input_suffix");
  text.prompt = fields.String("prompt");
  const json::array* files = fields.Array("input_extra");
  RETURN_IF_ERROR(fields.status());
  if (text.prefix.empty() && text.suffix.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "input_prefix: expected a text there or in input_suffix, found none");
  }
  if (files == nullptr) return text;
  if (files->size() > kMostFiles) {
    return Status(StatusCode::kInvalidArgument,
                  "input_extra: expected at most " + std::to_string(kMostFiles) + " files");
  }
  for (const json::value& value : *files) {
    const json::object* file = value.if_object();
    if (file == nullptr) {
      return Status(StatusCode::kInvalidArgument, "input_extra: expected objects with a text");
    }
    Fields of_file(*file);
    text.files.emplace_back(of_file.String("filename", "file"), of_file.String("text"));
    RETURN_IF_ERROR(of_file.status().Within("input_extra"));
  }
  return text;
}

std::optional<InfillTokens> FindInfillTokens(const Tokenizer& tokenizer) {
  for (const Family& family : kFamilies) {
    const std::optional<int32_t> prefix = Find(tokenizer, family.prefix);
    const std::optional<int32_t> suffix = Find(tokenizer, family.suffix);
    const std::optional<int32_t> middle = Find(tokenizer, family.middle);
    if (!prefix || !suffix || !middle) continue;
    return InfillTokens{*prefix, *suffix, *middle, Find(tokenizer, family.repository),
                        Find(tokenizer, family.file)};
  }
  return std::nullopt;
}

Result<std::vector<int32_t>> InfillPrompt(const InfillText& text, const Tokenizer& tokenizer) {
  const std::optional<InfillTokens> tokens = FindInfillTokens(tokenizer);
  if (!tokens) {
    return Status(StatusCode::kUnsupported,
                  "this model cannot fill in text: its vocabulary has no tokens for prefix, suffix "
                  "and middle");
  }
  std::vector<int32_t> ids;
  if (tokenizer.adds_bos() && tokenizer.bos()) ids.push_back(*tokenizer.bos());
  if (!text.files.empty() && tokens->repository) {
    ids.push_back(*tokens->repository);
    Append(&ids, tokenizer, "project\n");
  }
  for (const auto& [name, content] : text.files) {
    if (tokens->file) {
      ids.push_back(*tokens->file);
      Append(&ids, tokenizer, name + "\n");
    }
    Append(&ids, tokenizer, content);
  }
  if (!text.files.empty() && tokens->file) {
    ids.push_back(*tokens->file);
    Append(&ids, tokenizer, "filename\n");
  }
  ids.push_back(tokens->prefix);
  Append(&ids, tokenizer, text.prefix);
  ids.push_back(tokens->suffix);
  Append(&ids, tokenizer, text.suffix);
  ids.push_back(tokens->middle);
  Append(&ids, tokenizer, text.prompt);
  return ids;
}

}  // namespace sluice
