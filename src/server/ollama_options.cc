#include "src/server/ollama_options.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "src/server/sampling_fields.h"

namespace sluice {

namespace json = boost::json;

namespace {

constexpr size_t kMostIgnored = 32;  // names that are told

constexpr std::string_view kKnown[] = {
    "num_ctx", "num_keep", "num_predict",
    // Of the sampler.
    "dry_allowed_length", "dry_base", "dry_multiplier", "dry_penalty_last_n",
    "dry_sequence_breakers", "dynatemp_exponent", "dynatemp_range", "frequency_penalty",
    "ignore_eos", "logit_bias", "min_p", "min_tokens", "presence_penalty", "repeat_last_n",
    "repeat_penalty", "repetition_penalty", "samplers", "seed", "stop", "temperature", "top_k",
    "top_n_sigma", "top_p", "typical_p", "xtc_probability", "xtc_threshold"};
// How the model is held is decided when the server starts; their types are checked all the same.
constexpr std::string_view kLoadNumbers[] = {"num_batch", "num_gpu", "main_gpu", "num_thread",
                                             "num_gqa"};
constexpr std::string_view kLoadSwitches[] = {"use_mmap", "use_mlock", "numa",
                                              "low_vram", "f16_kv",    "vocab_only"};
// Of older versions.
constexpr std::string_view kRetired[] = {"mirostat", "mirostat_eta", "mirostat_tau",
                                         "penalize_newline", "tfs_z"};

template <size_t N>
bool IsIn(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

void FindUnknown(const json::object& object, OllamaAnswerOptions* answer) {
  for (const auto& entry : object) {
    const std::string_view key = entry.key();
    if (IsIn(kKnown, key) || IsIn(kLoadNumbers, key) || IsIn(kLoadSwitches, key)) continue;
    if (IsIn(kRetired, key)) {
      answer->notes.push_back("options." + std::string(key) + ": not offered, ignored");
    } else if (answer->ignored.size() < kMostIgnored) {
      answer->ignored.emplace_back(key);
    }
  }
}

// What differs from SamplerOptions' own values.
void SetDefaults(SamplerOptions* sampler) {
  sampler->temp = 0.8f;
  sampler->top_k = 40;
  sampler->top_p = 0.9f;
  sampler->min_p = 0;
  sampler->typical_p = 1;
  sampler->repeat_last_n = 64;
  sampler->repeat_penalty = 1.1f;
}

void ReadLengths(Fields& fields, const ServedModel& model, Request* request,
                 OllamaAnswerOptions* answer, OllamaOptions* options) {
  const int64_t predict = fields.Int("num_predict", -1, INT32_MIN, INT32_MAX);
  // 0 is no limit either, as in Ollama.
  if (predict > 0) request->max_tokens = static_cast<size_t>(predict);
  // A context that shifts would never end an answer.
  if (predict <= 0 && request->context_shift) request->max_tokens = 10 * model.context();
  const int64_t keep = fields.Int("num_keep", 4, INT32_MIN, INT32_MAX);
  options->keep_all = keep < 0;
  request->sinks = static_cast<size_t>(std::max<int64_t>(keep, 0));
  const int64_t context = fields.Int("num_ctx", 0, 0, INT32_MAX);
  if (static_cast<size_t>(context) > model.context()) {
    answer->notes.push_back("options.num_ctx: " + std::to_string(context) + " asked for, " +
                            std::to_string(model.context()) +
                            " served (--ctx-size when the server starts)");
  }
}

}  // namespace

Status ReadOllamaOptions(Fields& body, const ServedModel& model, Request* request,
                         OllamaAnswerOptions* answer, OllamaOptions* options) {
  const json::object* given = body.Object("options");
  RETURN_IF_ERROR(body.status());
  const json::object none;
  const json::object& object = given == nullptr ? none : *given;
  Fields fields(object);
  SetDefaults(&request->sampler);
  ReadSampling(model.tokenizer(), model.vocab(), &fields, request);
  ReadLengths(fields, model, request, answer, options);
  for (std::string_view key : kLoadNumbers) fields.Int(key, 0, INT64_MIN, INT64_MAX);
  for (std::string_view key : kLoadSwitches) fields.Bool(key, false);
  FindUnknown(object, answer);
  return fields.status().Within("options");
}

}  // namespace sluice
