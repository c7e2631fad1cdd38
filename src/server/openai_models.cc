#include "src/server/openai_models.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <utility>

#include "src/base/printable.h"
#include "src/file/summary.h"
#include "src/server/chat_prompt.h"
#include "src/server/fields.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

namespace json = boost::json;

// llama-server's numbers.
int VocabularyType(std::string_view model) {
  if (model == "llama") return 1;
  if (model == "gpt2") return 2;
  if (model == "bert") return 3;
  if (model == "t5") return 4;
  return 0;
}

json::object MetaOf(const ServedModel& model) {
  uint64_t parameters = 0;
  for (const ClassSummary& s : SummariseClasses(model.runner().model().gguf())) {
    parameters += s.parameters;
  }
  const Config& config = model.config();
  return {{"vocab_type", VocabularyType(model.tokenizer().model())},
          {"n_vocab", config.vocab},
          {"n_ctx_train", config.context},
          {"n_ctx", model.context()},
          {"n_embd", config.dim},
          {"n_params", parameters},
          {"size", model.entry().bytes}};
}

// `root`, which vLLM's clients need, is what the model is a version of: itself.
json::object ModelObject(const std::string& id, const ModelEntry& entry,
                         const ServedModel* loaded) {
  json::object model = {{"id", id},
                        {"object", "model"},
                        {"created", entry.modified_s},
                        {"owned_by", "sluice"},
                        {"root", entry.name},
                        {"parent", nullptr},
                        {"max_model_len", nullptr},
                        {"permission", json::array()}};
  if (loaded != nullptr) {
    model["max_model_len"] = loaded->context();
    model["meta"] = MetaOf(*loaded);
  }
  return model;
}

void AddIds(const Fields& fields, json::object* answer, const std::vector<int32_t>& ids,
            const Tokenizer& tokenizer) {
  const json::value* wanted = fields.Find("return_token_strs");
  if (wanted == nullptr || !wanted->is_bool() || !wanted->get_bool()) return;
  json::array texts;
  for (const int32_t id : ids) texts.push_back(json::string(ReplaceBadUtf8(tokenizer.Piece(id))));
  (*answer)["token_strs"] = std::move(texts);
}

Result<json::object> TokenizeAsLlama(const ServedModel& model, Fields& fields) {
  const std::string content = fields.String("content");
  const bool pieces = fields.Bool("with_pieces", false);
  Tokenizer::EncodeOptions options;
  options.add_special = fields.Bool("add_special", false);
  options.parse_special = fields.Bool("parse_special", true);
  RETURN_IF_ERROR(fields.status());
  json::array tokens;
  for (const int32_t id : model.tokenizer().Encode(content, options)) {
    if (!pieces) {
      tokens.push_back(id);
      continue;
    }
    const std::string piece = model.tokenizer().Piece(id);
    json::value shown = json::string(piece);
    if (!IsUtf8(piece)) {
      json::array bytes;
      for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
      shown = std::move(bytes);
    }
    tokens.push_back(json::object{{"id", id}, {"piece", std::move(shown)}});
  }
  return json::object{{"tokens", std::move(tokens)}};
}

Result<std::vector<int32_t>> EncodeForVllm(const ServedModel& model, Fields& fields) {
  if (!fields.Has("messages")) {
    Tokenizer::EncodeOptions options;
    options.add_special = fields.Bool("add_special_tokens", true);
    options.parse_special = true;
    const std::string prompt = fields.String("prompt");
    RETURN_IF_ERROR(fields.status());
    return model.tokenizer().Encode(prompt, options);
  }
  ChatPromptOptions options;
  options.continue_final_message = fields.Bool("continue_final_message", false);
  options.add_generation_prompt =
      fields.Bool("add_generation_prompt", !options.continue_final_message);
  if (const json::object* extra = fields.Object("chat_template_kwargs")) options.extra = *extra;
  options.tools = fields.Array("tools");
  const json::array* messages = fields.Array("messages");
  RETURN_IF_ERROR(fields.status());
  Result<ChatPrompt> prompt = RenderChat(model, *messages, options);
  if (!prompt.ok()) {
    fields.Fail("messages", prompt.status().message());
    return prompt.status();
  }
  return std::move(prompt->ids);
}

}  // namespace

json::object ListModels(const ModelHost& host) {
  const std::vector<LoadedModel> loaded = host.Loaded();
  const auto find = [&](const ModelEntry& entry) -> const ServedModel* {
    for (const LoadedModel& one : loaded) {
      if (one.model->entry().path == entry.path) return one.model.get();
    }
    return nullptr;
  };
  json::array data;
  const std::vector<ModelEntry> entries = host.List();
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::vector<std::string> names =
        i == 0 ? host.names() : std::vector<std::string>{entries[i].name};
    for (const std::string& name : names) {
      data.push_back(ModelObject(name, entries[i], find(entries[i])));
    }
  }
  return {{"object", "list"}, {"data", std::move(data)}};
}

Result<json::object> DescribeModel(const ModelHost& host, const std::string& name) {
  const json::object all = ListModels(host);
  for (const json::value& model : all.at("data").as_array()) {
    if (model.as_object().at("id").as_string() == name) return model.as_object();
  }
  return Status(StatusCode::kNotFound, "model '" + Printable(name, 200) +
                                           "' not found; GET /v1/models lists those there "
                                           "are");
}

Result<json::object> Tokenize(const ServedModel& model, const json::object& body,
                              std::string* param) {
  Fields fields(body);
  const auto answer = [&]() -> Result<json::object> {
    if (!fields.Has("prompt") && !fields.Has("messages")) {
      if (!body.contains("content")) {
        fields.Fail("prompt", "missing; expected prompt, messages or content");
        return fields.status();
      }
      return TokenizeAsLlama(model, fields);
    }
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, EncodeForVllm(model, fields));
    json::object out = {{"count", ids.size()},
                        {"max_model_len", model.context()},
                        {"tokens", json::array(ids.begin(), ids.end())}};
    AddIds(fields, &out, ids, model.tokenizer());
    return out;
  };
  Result<json::object> out = answer();
  *param = fields.param();
  return out;
}

Result<json::object> Detokenize(const ServedModel& model, const json::object& body,
                                std::string* param) {
  Fields fields(body);
  const json::array* tokens = fields.Array("tokens");
  if (tokens == nullptr) fields.Fail("tokens", "missing; expected an array of token ids");
  std::vector<int32_t> ids;
  const size_t vocab = model.tokenizer().vocab_size();
  if (fields.status().ok()) {
    for (const json::value& id : *tokens) {
      if (!id.is_int64() || id.get_int64() < 0 || static_cast<size_t>(id.get_int64()) >= vocab) {
        fields.Fail("tokens", "expected token ids from 0 to " + std::to_string(vocab - 1));
        break;
      }
      ids.push_back(static_cast<int32_t>(id.get_int64()));
    }
  }
  *param = fields.param();
  if (!fields.status().ok()) return fields.status();
  const std::string text = model.tokenizer().Decode(ids, false);
  return json::object{{"content", text}, {"prompt", text}};
}

}  // namespace sluice
