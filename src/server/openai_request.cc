#include "src/server/openai_request.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <ctime>
#include <utility>

#include "src/base/printable.h"
#include "src/server/late_constraint.h"
#include "src/server/sampling_fields.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr int64_t kMostChoices = 128;
constexpr size_t kMostStops = 16, kMostAnswers = 1000;

// Asking for them and getting something else would be worse than an error.
void RefuseUnsupported(Fields* fields) {
  constexpr std::pair<const char*, const char*> kRefused[] = {
      {"use_beam_search", "there is no beam search here"},
      {"allowed_token_ids", "not available; use logit_bias or a grammar"},
      {"bad_words", "not available; use logit_bias"},
      {"logits_processors", "not available"},
      {"audio", "this model writes text only"},
  };
  for (const auto& [key, why] : kRefused) {
    const json::value* value = fields->Find(key);
    if (value == nullptr || (value->is_bool() && !value->get_bool())) continue;
    if (value->is_array() && value->get_array().empty()) continue;
    fields->Fail(key, why);
  }
}

void ReadStreaming(Fields* fields, AnswerOptions* answer) {
  answer->stream = fields->Bool("stream", false);
  answer->ceiling = fields->Bool("ceiling", false);
  const json::object* options = fields->Object("stream_options");
  if (options == nullptr) return;
  Fields inner(*options);
  answer->include_usage = inner.Bool("include_usage", false);
  answer->continuous_usage = inner.Bool("continuous_usage_stats", false);
  if (!inner.status().ok()) fields->Fail("stream_options", inner.status().message());
}

// -1, as llama-server's clients write it, is no limit.
void ReadLimit(size_t default_max_tokens, Fields* fields, Request* request) {
  const char* key = fields->Has("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  const int64_t most = fields->Int(key, -2, -1, INT32_MAX);
  request->max_tokens = default_max_tokens;
  if (most == -1) request->max_tokens = SIZE_MAX;
  if (most >= 0) request->max_tokens = static_cast<size_t>(most);
}

void ReadSamplingDefaults(Request* request) {
  SamplerOptions& o = request->sampler;
  o.temp = 1;
  o.top_k = 0;
  o.top_p = 1;
  o.min_p = 0;
}

// The engine ends at the model's own end tokens only.
void CheckStopIds(const ServedModel& model, Fields* fields) {
  const json::array* ids = fields->Array("stop_token_ids");
  if (ids == nullptr) return;
  for (const json::value& id : *ids) {
    const bool known = id.is_int64() && id.get_int64() >= 0 &&
                       static_cast<size_t>(id.get_int64()) < model.tokenizer().vocab_size();
    if (!known) return fields->Fail("stop_token_ids", "expected ids of this model's vocabulary");
    if (model.tokenizer().IsEnd(static_cast<int32_t>(id.get_int64()))) continue;
    fields->Fail("stop_token_ids", "token " + std::to_string(id.get_int64()) +
                                       " is not one of the model's end tokens; use stop");
  }
}

void ShowAllControls(const Tokenizer& tokenizer, Request* request) {
  for (size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto i = static_cast<int32_t>(id);
    if (tokenizer.type(i) == TokenType::kControl) request->shown_tokens.push_back(i);
  }
}

using GrammarResult = Result<std::shared_ptr<const Grammar>>;

GrammarResult FromSchema(const json::value& schema) {
  if (!schema.is_string()) return Grammar::FromJsonSchema(schema);
  boost::system::error_code error;
  const json::value parsed = json::parse(schema.get_string(), error);
  if (error) return Status(StatusCode::kInvalidArgument, "expected a JSON schema, found bad JSON");
  return Grammar::FromJsonSchema(parsed);
}

GrammarResult FromText(const json::value& source) {
  if (!source.is_string()) return Status(StatusCode::kInvalidArgument, "expected GBNF text");
  return Grammar::FromGbnf(source.get_string());
}

GrammarResult FromChoice(const json::value& choice) {
  const Status bad(StatusCode::kInvalidArgument, "expected an array of strings, at least one");
  if (!choice.is_array() || choice.get_array().empty()) return bad;
  std::string source = "root ::= ";
  for (const json::value& word : choice.get_array()) {
    if (!word.is_string() || word.get_string().empty()) return bad;
    if (source.back() != ' ') source += " | ";
    source += json::serialize(word);  // GBNF escapes as JSON does
  }
  return Grammar::FromGbnf(source);
}

GrammarResult FromRegex(const json::value& pattern) {
  if (!pattern.is_string()) {
    return Status(StatusCode::kInvalidArgument, "expected a regular expression");
  }
  return Grammar::FromRegex(pattern.get_string());
}

GrammarResult FromTags(const json::value&) {
  return Status(StatusCode::kInvalidArgument, "not available; use a grammar");
}

GrammarResult AnyObject(const json::value& on) {
  if (on.is_bool() && !on.get_bool()) return std::shared_ptr<const Grammar>();
  return Grammar::JsonObject();
}

// {"type": "json_schema", "json_schema": {"schema": ...}} and the looser forms of it.
GrammarResult FromResponseFormat(const json::value& value) {
  const auto bad = [](std::string text) {
    return Status(StatusCode::kInvalidArgument, std::move(text));
  };
  if (!value.is_object()) return bad("expected an object with type");
  const json::object& format = value.get_object();
  Fields fields(format);
  const std::string type = fields.String("type");
  if (!fields.status().ok()) return fields.status();
  if (type == "text") return std::shared_ptr<const Grammar>();
  if (type != "json_object" && type != "json_schema") {
    return bad("type: expected text, json_object or json_schema, found \"" + Printable(type) +
               "\"");
  }
  const json::value* schema = fields.Find("schema");
  if (type == "json_schema") {
    const json::object* named = fields.Object("json_schema");
    if (!fields.status().ok()) return fields.status();
    const json::value* inner = named != nullptr ? Fields(*named).Find("schema") : nullptr;
    if (inner != nullptr) schema = inner;
    if (schema == nullptr) return bad("json_schema.schema: missing; expected a JSON schema");
  }
  if (schema == nullptr) return Grammar::JsonObject();
  return FromSchema(*schema);
}

GrammarResult FromStructuredOutputs(const json::value& value);

struct Source {
  const char* key;
  GrammarResult (*read)(const json::value& value);
};
constexpr Source kSources[] = {
    {"response_format", FromResponseFormat},
    {"structured_outputs", FromStructuredOutputs},
    {"guided_json", FromSchema},
    {"guided_grammar", FromText},
    {"guided_choice", FromChoice},
    {"guided_regex", FromRegex},
    {"grammar", FromText},
    {"json_schema", FromSchema},
};
constexpr Source kStructured[] = {
    {"json", FromSchema}, {"grammar", FromText},      {"choice", FromChoice},
    {"regex", FromRegex}, {"json_object", AnyObject}, {"structural_tag", FromTags},
};

// The one of `sources` that is there; an error has its key in front.
template <size_t count>
GrammarResult OneOf(const Source (&sources)[count], const Fields& fields, std::string* key) {
  std::shared_ptr<const Grammar> grammar;
  for (const Source& source : sources) {
    const json::value* value = fields.Find(source.key);
    if (value == nullptr) continue;
    if (value->is_string() && value->get_string().empty()) continue;  // clients' way of saying no
    GrammarResult read = source.read(*value);
    if (!read.ok() || (grammar != nullptr && *read != nullptr)) *key = source.key;
    if (!read.ok()) return read;
    if (grammar != nullptr && *read != nullptr) {
      return Status(StatusCode::kInvalidArgument, "there is another grammar for this answer");
    }
    if (*read != nullptr) grammar = *std::move(read);
  }
  return grammar;
}

GrammarResult FromStructuredOutputs(const json::value& value) {
  if (!value.is_object()) {
    return Status(StatusCode::kInvalidArgument,
                  "expected an object with json, regex, grammar or choice");
  }
  std::string key;
  GrammarResult grammar = OneOf(kStructured, Fields(value.get_object()), &key);
  return grammar.ok() ? grammar : grammar.status().Within(key);
}

}  // namespace

void ReadOpenAiRequest(const ServedModel& model, size_t default_max_tokens, Fields* fields,
                       OpenAiRequest* request) {
  CompletionCall& call = request->call;
  AnswerOptions& answer = request->answer;
  RefuseUnsupported(fields);
  call.n = static_cast<size_t>(fields->Int("n", 1, 1, kMostChoices));
  answer.n = call.n;
  const auto best_of =
      static_cast<size_t>(fields->Int("best_of", static_cast<int64_t>(call.n), 1, kMostChoices));
  if (best_of != call.n)
    fields->Fail("best_of", "expected the same as n: all answers are returned");
  ReadStreaming(fields, &answer);
  ReadLimit(default_max_tokens, fields, &call.options);
  ReadSamplingDefaults(&call.options);
  ReadSampling(model.tokenizer(), model.vocab(), fields, &call.options);
  if (call.options.stop.size() > kMostStops) {
    fields->Fail("stop", "expected a string or an array of at most 16 strings");
  }
  CheckStopIds(model, fields);
  if (!fields->Bool("skip_special_tokens", true)) ShowAllControls(model.tokenizer(), &call.options);
  answer.include_stop = fields->Bool("include_stop_str_in_output", false);
  answer.return_token_ids = fields->Bool("return_token_ids", false);
  call.options.use_cache = fields->Bool("cache_prompt", true);
  if (fields->Has("cache_salt")) {
    call.options.cache_scope = std::hash<std::string>()(fields->String("cache_salt"));
  }
  answer.created = std::time(nullptr);
  answer.piece = [&tokenizer = model.tokenizer()](int32_t id) { return tokenizer.Piece(id); };
}

std::shared_ptr<const Grammar> ReadGrammar(Fields* fields) {
  std::string key;
  GrammarResult grammar = OneOf(kSources, *fields, &key);
  if (grammar.ok()) return *std::move(grammar);
  fields->Fail(key, grammar.status().message());
  return nullptr;
}

void Constrain(const ServedModel& model, std::shared_ptr<const Grammar> grammar,
               const std::string& start, CompletionCall* call) {
  if (grammar != nullptr && !start.empty()) {
    grammar =
        std::make_shared<LateGrammar>(model.tokenizer(), model.vocab(), start, std::move(grammar));
  }
  call->grammar = std::move(grammar);
}

Status FitPrompts(const ServedModel& model, Fields* fields, CompletionCall* call) {
  const int64_t keep = fields->Int("truncate_prompt_tokens", INT32_MAX, -1, INT32_MAX);
  if (keep == 0) fields->Fail("truncate_prompt_tokens", "expected at least 1, or -1");
  RETURN_IF_ERROR(fields->status());
  const size_t most = keep < 0 ? model.context() - 1 : static_cast<size_t>(keep);
  for (std::vector<int32_t>& prompt : call->prompts) {
    if (prompt.size() > most) {
      prompt.erase(prompt.begin(), prompt.end() - static_cast<ptrdiff_t>(most));
    }
    if (prompt.size() < model.context() ||
        (prompt.size() == model.context() && call->options.max_tokens == 0)) {
      continue;
    }
    return Status(StatusCode::kTooLong,
                  // Clients know the error by its first words.
                  "this model's maximum context length is " + std::to_string(model.context()) +
                      " tokens, the prompt has " + std::to_string(prompt.size()) +
                      " and needs room for an answer; shorten it");
  }
  if (call->prompts.size() * call->n > kMostAnswers) {
    return Status(StatusCode::kInvalidArgument,
                  "prompt: expected at most 1000 answers in one request, found " +
                      std::to_string(call->prompts.size() * call->n));
  }
  return Status();
}

}  // namespace sluice
