#include "src/server/llama_request.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "src/base/printable.h"
#include "src/server/fields.h"
#include "src/server/llama_deadline.h"
#include "src/server/llama_infill.h"
#include "src/server/sampling_fields.h"
#include "src/text/grammar/grammar.h"

namespace sluice {

namespace json = boost::json;

namespace {

constexpr size_t kMostPrompts = 1024, kMostFields = 256;
constexpr int64_t kMostProbs = 100;

Status Refuse(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

bool IsPiece(const json::value& value) { return value.is_string() || value.is_int64(); }

// A list of numbers, and of texts between them, is one prompt; one of texts alone is as many.
bool IsOnePrompt(const json::array& array) {
  return !array.empty() && std::all_of(array.begin(), array.end(), IsPiece) &&
         std::any_of(array.begin(), array.end(), [](const auto& v) { return v.is_int64(); });
}

Status AppendPiece(const json::value& piece, const ServedModel& model, std::vector<int32_t>* ids) {
  if (piece.is_string()) {
    const std::vector<int32_t> more = model.tokenizer().Encode(
        piece.get_string(), {.add_special = ids->empty(), .parse_special = true});
    ids->insert(ids->end(), more.begin(), more.end());
    return Status();
  }
  const int64_t id = piece.get_int64();
  if (id < 0 || static_cast<size_t>(id) >= model.vocab()) {
    return Refuse("prompt: expected token ids from 0 to " + std::to_string(model.vocab() - 1) +
                  ", found " + std::to_string(id));
  }
  ids->push_back(static_cast<int32_t>(id));
  return Status();
}

Result<std::vector<int32_t>> OnePrompt(const json::value& prompt, const ServedModel& model) {
  std::vector<int32_t> ids;
  if (prompt.is_string()) {
    RETURN_IF_ERROR(AppendPiece(prompt, model, &ids));
  } else if (const json::array* array = prompt.if_array(); array && IsOnePrompt(*array)) {
    for (const json::value& piece : *array) RETURN_IF_ERROR(AppendPiece(piece, model, &ids));
  } else {
    return Refuse("prompt: expected a text, token ids, a mix of both, or a list of such prompts");
  }
  // A text that writes BOS itself does not get another.
  const std::optional<int32_t> bos = model.tokenizer().bos();
  if (bos && ids.size() > 1 && ids[0] == *bos && ids[1] == *bos) ids.erase(ids.begin());
  if (ids.empty()) return Refuse("prompt: expected at least one token, found none");
  return ids;
}

Status RefuseWhatIsNotOffered(Fields& fields) {
  if (fields.Int("mirostat", 0, 0, 2) != 0) return Refuse("mirostat: not offered, expected 0");
  for (const char* key : {"lora", "image_data", "multimodal_data"}) {
    const json::array* list = fields.Array(key);
    if (list != nullptr && !list->empty()) return Refuse(std::string(key) + ": not offered");
  }
  return fields.status();
}

Result<std::shared_ptr<const Grammar>> ReadGrammar(Fields& fields) {
  const std::string gbnf = fields.String("grammar");
  RETURN_IF_ERROR(fields.status());
  const json::value* schema = fields.Find("json_schema");
  if (schema != nullptr && !gbnf.empty()) {
    return Refuse("grammar: expected either grammar or json_schema, found both");
  }
  if (schema == nullptr && gbnf.empty()) return std::shared_ptr<const Grammar>();
  Result<std::shared_ptr<const Grammar>> grammar =
      schema != nullptr ? Grammar::FromJsonSchema(*schema) : Grammar::FromGbnf(gbnf);
  if (!grammar.ok()) return grammar.status().Within(schema ? "json_schema" : "grammar");
  return grammar;
}

// Everything but the prompts.
class SettingsReader {
 public:
  SettingsReader(const json::object& body, const std::shared_ptr<ServedModel>& model)
      : fields_(body), model_(model) {}

  Result<LlamaRequest> Read() {
    Request& request = out_.call.options;
    ReadSampling(model_->tokenizer(), model_->vocab(), &fields_, &request);
    const int64_t limit = fields_.Int("max_tokens", -1, INT32_MIN, INT32_MAX);
    const int64_t predict = fields_.Int("n_predict", limit, INT32_MIN, INT32_MAX);
    request.max_tokens = predict < 0 ? SIZE_MAX : static_cast<size_t>(predict);
    request.sinks =
        static_cast<size_t>(std::max<int64_t>(0, fields_.Int("n_keep", 0, INT32_MIN, INT32_MAX)));
    request.use_cache = fields_.Bool("cache_prompt", true);
    ReadAnswer();
    RETURN_IF_ERROR(fields_.status());
    RETURN_IF_ERROR(RefuseWhatIsNotOffered(fields_));
    RETURN_IF_ERROR(Constrain());
    ReadSettings();
    return std::move(out_);
  }

 private:
  void ReadAnswer() {
    LlamaAnswerOptions& answer = out_.answer;
    answer.model = model_->name();
    answer.stream = fields_.Bool("stream", false);
    answer.return_tokens = fields_.Bool("return_tokens", false);
    answer.return_progress = fields_.Bool("return_progress", false);
    answer.ceiling = fields_.Bool("ceiling", false);
    answer.timings_per_token = fields_.Bool("timings_per_token", false);
    answer.response_fields = fields_.Strings("response_fields", kMostFields);
    answer.id_slot = std::max<int64_t>(0, fields_.Int("id_slot", -1, INT32_MIN, INT32_MAX));
    answer.piece = [model = model_](int32_t id) { return model->tokenizer().Piece(id); };
    const int64_t probs = fields_.Int("n_probs", 0, 0, kMostProbs);
    answer.probs = probs > 0;
    if (probs > 0) out_.call.options.logprobs = static_cast<int>(probs);
    if (probs > 0 && fields_.Bool("post_sampling_probs", false)) {
      fields_.Fail("post_sampling_probs",
                   "not offered: probabilities are the model's own, before the sampler");
    }
  }

  Status Constrain() {
    ASSIGN_OR_RETURN(const std::shared_ptr<const Grammar> grammar, ReadGrammar(fields_));
    const int64_t limit_ms = fields_.Int("t_max_predict_ms", 0, INT32_MIN, INT32_MAX);
    RETURN_IF_ERROR(fields_.status());
    Request& request = out_.call.options;
    if (limit_ms <= 0) {
      out_.call.grammar = grammar;
      return Status();
    }
    if (request.ignore_eos) {
      return Refuse("t_max_predict_ms: ends an answer by an end token, which ignore_eos forbids");
    }
    const auto out_of_time = std::make_shared<std::atomic<bool>>(false);
    out_.answer.out_of_time = out_of_time;
    request.constraint = std::make_shared<LlamaDeadline>(
        model_, grammar ? grammar->Start(model_->grammar_vocabulary()) : nullptr,
        std::chrono::milliseconds(limit_ms), out_of_time);
    return Status();
  }

  void ReadSettings() {
    json::object& settings = out_.answer.settings;
    settings = LlamaSettings(out_.call.options);
    settings["stream"] = out_.answer.stream;
    settings["grammar"] = fields_.String("grammar");
    settings["timings_per_token"] = out_.answer.timings_per_token;
  }

  Fields fields_;
  const std::shared_ptr<ServedModel>& model_;
  LlamaRequest out_;
};

Status SetPrompts(std::vector<std::vector<int32_t>> prompts, const ServedModel& model,
                  LlamaRequest* request) {
  if (prompts.size() > 1 && request->call.options.constraint != nullptr) {
    return Refuse("t_max_predict_ms: takes one prompt, found " + std::to_string(prompts.size()));
  }
  for (const std::vector<int32_t>& ids : prompts) {
    request->answer.prompts.push_back(model.tokenizer().Decode(ids, false));
    request->answer.prompt_tokens.push_back(ids.size());
  }
  request->call.prompts = std::move(prompts);
  return Status();
}

const char* StageName(SamplerStage stage) {
  switch (stage) {
    case SamplerStage::kTopNSigma:
      return "top_n_sigma";
    case SamplerStage::kTopK:
      return "top_k";
    case SamplerStage::kTypicalP:
      return "typ_p";
    case SamplerStage::kTopP:
      return "top_p";
    case SamplerStage::kMinP:
      return "min_p";
    case SamplerStage::kXtc:
      return "xtc";
    case SamplerStage::kTemperature:
      return "temperature";
  }
  return "";
}

int64_t Limit(size_t tokens) { return tokens == SIZE_MAX ? -1 : static_cast<int64_t>(tokens); }

}  // namespace

Result<std::vector<std::vector<int32_t>>> LlamaPrompts(const json::value& prompt,
                                                       const ServedModel& model) {
  std::vector<std::vector<int32_t>> prompts;
  const json::array* array = prompt.if_array();
  if (array == nullptr || IsOnePrompt(*array)) {
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, OnePrompt(prompt, model));
    prompts.push_back(std::move(ids));
    return prompts;
  }
  if (array->empty() || array->size() > kMostPrompts) {
    return Refuse("prompt: expected 1 to " + std::to_string(kMostPrompts) + " prompts, found " +
                  std::to_string(array->size()));
  }
  for (const json::value& one : *array) {
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, OnePrompt(one, model));
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

Result<LlamaRequest> ReadLlamaCompletion(const json::object& body,
                                         const std::shared_ptr<ServedModel>& model) {
  ASSIGN_OR_RETURN(LlamaRequest request, SettingsReader(body, model).Read());
  const json::value* prompt = Fields(body).Find("prompt");
  if (prompt == nullptr) return Refuse("prompt: expected a text or token ids, found none");
  ASSIGN_OR_RETURN(std::vector<std::vector<int32_t>> prompts, LlamaPrompts(*prompt, *model));
  RETURN_IF_ERROR(SetPrompts(std::move(prompts), *model, &request));
  return request;
}

Result<LlamaRequest> ReadLlamaInfill(const json::object& body,
                                     const std::shared_ptr<ServedModel>& model) {
  ASSIGN_OR_RETURN(InfillText text, ReadInfill(body));
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, InfillPrompt(text, model->tokenizer()));
  ASSIGN_OR_RETURN(LlamaRequest request, SettingsReader(body, model).Read());
  std::vector<std::vector<int32_t>> prompts;
  prompts.push_back(std::move(ids));
  RETURN_IF_ERROR(SetPrompts(std::move(prompts), *model, &request));
  return request;
}

json::object LlamaSettings(const Request& request) {
  const SamplerOptions& s = request.sampler;
  json::array samplers{"penalties", "dry"};
  for (const SamplerStage stage : s.stages) samplers.push_back(StageName(stage));
  json::array bias;
  for (const auto& [id, added] : s.logit_bias) {
    bias.push_back(json::object{{"token", id}, {"bias", added}});
  }
  return {{"n_predict", Limit(request.max_tokens)},
          {"max_tokens", Limit(request.max_tokens)},
          {"n_keep", request.sinks},
          {"seed", s.seed},
          {"temperature", s.temp},
          {"dynatemp_range", s.dynatemp_range},
          {"dynatemp_exponent", s.dynatemp_exponent},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"top_n_sigma", s.top_n_sigma},
          {"typical_p", s.typical_p},
          {"xtc_probability", s.xtc_probability},
          {"xtc_threshold", s.xtc_threshold},
          {"repeat_last_n", s.repeat_last_n},
          {"repeat_penalty", s.repeat_penalty},
          {"presence_penalty", s.presence_penalty},
          {"frequency_penalty", s.frequency_penalty},
          {"dry_multiplier", s.dry_multiplier},
          {"dry_base", s.dry_base},
          {"dry_allowed_length", s.dry_allowed_length},
          {"dry_penalty_last_n", s.dry_penalty_last_n},
          {"mirostat", 0},
          {"stop", json::array(request.stop.begin(), request.stop.end())},
          {"ignore_eos", request.ignore_eos},
          {"min_tokens", request.min_tokens},
          {"n_probs", std::max(0, request.logprobs)},
          {"logit_bias", std::move(bias)},
          {"samplers", std::move(samplers)},
          {"cache_prompt", request.use_cache},
          {"post_sampling_probs", false},
          {"lora", json::array()}};
}

}  // namespace sluice
