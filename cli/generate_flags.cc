#include "cli/generate_flags.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <random>

#include "cli/command.h"
#include "src/engine/dry_breakers.h"
#include "src/text/grammar/grammar.h"

namespace sluice {

namespace {

// llama.cpp's form: "15043+1.5", "15043-1", "15043-inf".
Result<std::pair<int32_t, float>> ParseLogitBias(const std::string& text) {
  const size_t sign = text.find_first_of("+-", 1);
  char *id_end = nullptr, *bias_end = nullptr;
  const long id = std::strtol(text.c_str(), &id_end, 10);
  const float bias = sign == std::string::npos ? NAN : std::strtof(text.c_str() + sign, &bias_end);
  if (sign == std::string::npos || id_end != text.c_str() + sign || *bias_end != '\0' ||
      bias_end == text.c_str() + sign || std::isnan(bias) || id < 0 || id > INT32_MAX) {
    return Status(StatusCode::kInvalidArgument,
                  "--logit-bias: expected ID+BIAS or ID-BIAS such as 15043-1.5, found " + text);
  }
  return std::pair<int32_t, float>(static_cast<int32_t>(id), bias);
}

// "top_p: expected ..." names a request's field; here it is the flag --top-p.
Status AsFlag(const Status& status) {
  if (status.ok()) return status;
  std::string message = "--" + status.message();
  const auto end =
      message.begin() + static_cast<ptrdiff_t>(std::min(message.find(':'), message.size()));
  std::replace(message.begin(), end, '_', '-');
  return Status(status.code(), message);
}

constexpr size_t kMaxSchemaDepth = 128;  // of the JSON text; the compiler has its own limit

Result<std::shared_ptr<const Grammar>> GrammarOfSchema(const std::string& text) {
  boost::json::parse_options options;
  options.max_depth = kMaxSchemaDepth;
  boost::json::error_code error;
  const boost::json::value schema = boost::json::parse(text, error, {}, options);
  if (error) {
    return Status(StatusCode::kInvalidArgument,
                  "--json-schema: expected JSON, found a text that is none: " + error.message());
  }
  return Grammar::FromJsonSchema(schema);
}

}  // namespace

void GenerateFlags::AddTo(CLI::App& c) {
  SamplerOptions& s = sampler;
  const auto add = [&](const char* names, auto& value, const char* help) {
    return c.add_option(names, value, help)->capture_default_str()->group("Sampling");
  };
  c.add_option("-n,--max-tokens,--predict,--n-predict", max_tokens,
               "Most tokens to generate; -1: until the context is full")
      ->capture_default_str();
  c.add_option("--stop,-r,--reverse-prompt", stop, "Text that ends the output; may be repeated")
      ->allow_extra_args(false);
  c.add_flag("--ignore-eos", ignore_eos, "Go on after an end token");
  c.add_flag("--context-shift", context_shift,
             "When the context is full, keep its first tokens and the newest half");
  c.add_option("--keep", sinks, "First tokens that --context-shift keeps")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  add("-s,--seed", seed, "Seed of the random numbers; -1: a random one")
      ->check([](const std::string& value) {  // CLI11 takes what is too large for the largest
        errno = 0;
        std::strtoll(value.c_str(), nullptr, 10);
        return errno == 0 ? std::string() : "expected at most 2^63 - 1, found " + value;
      });
  add("--temp,--temperature", s.temp, "Temperature; 0: always the most likely token");
  add("--top-k", s.top_k, "Only the k most likely tokens; 0: off");
  add("--top-p", s.top_p, "Only the most likely tokens that reach this probability; 1: off");
  add("--min-p", s.min_p, "Only tokens this likely relative to the first; 0: off");
  add("--typical,--typical-p", s.typical_p, "Locally typical sampling; 1: off");
  add("--top-nsigma,--top-n-sigma", s.top_n_sigma, "Only logits within n deviations; -1: off");
  add("--xtc-probability", s.xtc_probability, "Chance to leave out the top choices; 0: off");
  add("--xtc-threshold", s.xtc_threshold, "Probability from which XTC leaves out");
  add("--dynatemp-range", s.dynatemp_range, "Temperature +- this, by the entropy; 0: off");
  add("--dynatemp-exp", s.dynatemp_exponent, "Exponent of the dynamic temperature");
  add("--repeat-last-n", s.repeat_last_n, "Tokens that the penalties look back; -1: all");
  add("--repeat-penalty", s.repeat_penalty, "Divides logits of repeated tokens; 1: off");
  add("--presence-penalty", s.presence_penalty, "Taken from logits of present tokens; 0: off");
  add("--frequency-penalty", s.frequency_penalty, "The same for each occurrence; 0: off");
  add("--dry-multiplier", s.dry_multiplier, "DRY penalty of repeated sequences; 0: off");
  add("--dry-base", s.dry_base, "Base of the DRY penalty");
  add("--dry-allowed-length", s.dry_allowed_length, "Repetition that costs nothing");
  add("--dry-penalty-last-n", s.dry_penalty_last_n, "Tokens that DRY looks back; -1: all");
  add("--dry-sequence-breaker", dry_breakers,
      "Text that a repetition does not reach across; may be repeated, \"none\": no breakers")
      ->allow_extra_args(false);
  add("-l,--logit-bias", logit_bias, "ID+BIAS or ID-BIAS; may be repeated")
      ->type_name("BIAS")
      ->allow_extra_args(false);
  add("--samplers", samplers,
      "Order of the steps after penalties and DRY, by default "
      "top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature; what is not named is left out")
      ->type_name("LIST");
  CLI::Option* sources[] = {
      c.add_option("--grammar", grammar, "Grammar (GBNF) that the text is held to"),
      c.add_option("--grammar-file", grammar_file, "File that holds the grammar; - is stdin")
          ->type_name("FILE"),
      c.add_option("-j,--json-schema", json_schema,
                   "JSON schema that the text is held to; {}: any JSON")
          ->type_name("JSON"),
      c.add_option("--json-schema-file", json_schema_file, "File that holds the schema; - is stdin")
          ->type_name("FILE")};
  for (CLI::Option* one : sources) {
    one->group("Constraints");
    for (CLI::Option* other : sources) {
      if (one != other) one->excludes(other);
    }
  }
}

Status GenerateFlags::ReadGrammar() {
  std::string gbnf = grammar, schema = json_schema;
  if (!grammar_file.empty()) {
    ASSIGN_OR_RETURN(gbnf, ReadAll(grammar_file));
  }
  if (!json_schema_file.empty()) {
    ASSIGN_OR_RETURN(schema, ReadAll(json_schema_file));
  }
  if (gbnf.empty() && schema.empty()) return Status();
  ASSIGN_OR_RETURN(grammar_, schema.empty() ? Grammar::FromGbnf(gbnf) : GrammarOfSchema(schema));
  return Status();
}

Status GenerateFlags::Prepare() {
  for (const std::string& text : logit_bias) {
    ASSIGN_OR_RETURN(const auto bias, ParseLogitBias(text));
    sampler.logit_bias.push_back(bias);
  }
  if (!samplers.empty()) {
    Result<std::vector<SamplerStage>> stages = ParseSamplerStages(samplers);
    if (!stages.ok()) return AsFlag(stages.status());
    sampler.stages = *std::move(stages);
  }
  RETURN_IF_ERROR(AsFlag(CheckSamplerOptions(sampler, size_t{INT32_MAX} + 1)));
  if (max_tokens < -1 || max_tokens == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "--max-tokens: expected -1 or at least 1, found " + std::to_string(max_tokens));
  }
  return ReadGrammar();
}

Result<Request> GenerateFlags::MakeRequest(const Tokenizer& tokenizer, size_t vocab) const {
  Request r;
  r.sampler = sampler;
  if (seed < 0) {
    std::random_device device;
    r.sampler.seed = device();
  } else {
    r.sampler.seed = static_cast<uint64_t>(seed);
  }
  if (sampler.dry_multiplier > 0) {
    std::vector<std::string> texts = dry_breakers;
    if (texts.empty()) {
      texts.assign(std::begin(kDefaultDryBreakers), std::end(kDefaultDryBreakers));
    } else if (texts == std::vector<std::string>{"none"}) {
      texts.clear();
    }
    r.sampler.dry_breakers = DryBreakers(tokenizer, texts);
  }
  // Again, now that the vocabulary is known.
  RETURN_IF_ERROR(AsFlag(CheckSamplerOptions(r.sampler, vocab)));
  if (max_tokens > 0) r.max_tokens = static_cast<size_t>(max_tokens);
  if (grammar_) r.constraint = grammar_->Start(MakeGrammarVocabulary(tokenizer));
  r.stop = stop;
  r.hash_logits = true;
  r.ignore_eos = ignore_eos;
  r.context_shift = context_shift;
  r.sinks = sinks;
  return r;
}

}  // namespace sluice
