#include "src/load/probe.h"

#include <cmath>
#include <utility>

#include "src/base/printable.h"

namespace sluice::load {

namespace json = boost::json;

namespace {

constexpr size_t kFewTokens = 16;                   // of the request that tries things out
constexpr size_t kFewWords = 40, kManyWords = 240;  // of those that count words

class Prober {
 public:
  Prober(Client& client, RequestOptions wanted) : client_(client) {
    result_.request = std::move(wanted);
  }

  Result<ProbeResult> Run(std::optional<Dialect> dialect) {
    RETURN_IF_ERROR(FindDialect(dialect));
    RETURN_IF_ERROR(FindForm());
    if (!result_.form.ids) RETURN_IF_ERROR(CountWords());
    return std::move(result_);
  }

 private:
  const std::string& url() const { return client_.target().url; }

  // A GET's JSON; nothing where the route is not there. Error: no HTTP server, or no right to ask.
  Result<std::optional<json::value>> Get(const std::string& path) {
    const Reply reply = client_.Ask({"GET", path, ""});
    if (!reply.error.empty()) {
      const std::string advice = reply.error == "refused"
                                     ? "; is a server running there (sluice serve), and is the "
                                       "port right?"
                                     : "";
      return Status(StatusCode::kIo, url() + ": " + reply.detail + advice);
    }
    if (reply.status == 401 || reply.status == 403) return Refused(reply);
    boost::system::error_code error;
    json::value v = json::parse(reply.Text(), error);
    if (error || reply.status != 200) return std::optional<json::value>();
    return std::optional<json::value>(std::move(v));
  }

  Status Refused(const Reply& reply) const {
    return Status(StatusCode::kIo, url() + ": HTTP " + std::to_string(reply.status) + ": " +
                                       ErrorMessage(reply.Text()) +
                                       (reply.status == 401 ? "; give --api-key" : ""));
  }

  // The first member `name` of the objects in the list `list`.
  static std::string FirstName(const std::optional<json::value>& v, std::string_view list,
                               std::string_view name) {
    if (!v || !v->is_object()) return "";
    const json::value* found = v->get_object().if_contains(list);
    if (found == nullptr || !found->is_array() || found->get_array().empty()) return "";
    const json::value& first = found->get_array().front();
    const json::value* id = first.is_object() ? first.get_object().if_contains(name) : nullptr;
    return id != nullptr && id->is_string() ? std::string(id->get_string()) : "";
  }

  Status FindDialect(std::optional<Dialect> dialect) {
    RequestOptions& request = result_.request;
    std::string model;
    const auto asks = [&](Dialect d) { return !dialect || *dialect == d; };
    if (asks(Dialect::kOpenAi) || asks(Dialect::kOpenAiChat)) {
      ASSIGN_OR_RETURN(const std::optional<json::value> models, Get("/v1/models"));
      model = FirstName(models, "data", "id");
      if (!dialect && models) dialect = Dialect::kOpenAi;
    }
    if (asks(Dialect::kOllama)) {
      ASSIGN_OR_RETURN(const std::optional<json::value> tags, Get("/api/tags"));
      model = FirstName(tags, "models", "name");
      if (!dialect && tags) dialect = Dialect::kOllama;
    }
    if (asks(Dialect::kLlama)) {
      ASSIGN_OR_RETURN(const std::optional<json::value> health, Get("/health"));
      if (!dialect && health) dialect = Dialect::kLlama;
    }
    if (!dialect) {
      return Status(StatusCode::kUnsupported,
                    url() +
                        ": answers, but has none of /v1/models, /api/tags and /health; say "
                        "which --dialect it speaks");
    }
    request.dialect = *dialect;
    if (request.model.empty() && *dialect != Dialect::kLlama) request.model = model;
    return Status();
  }

  LoadSample Try(const LoadPrompt& prompt) {
    LoadPrompt one = prompt;
    one.output_tokens = 1;
    const Reply reply = client_.Ask(MakeRequest(result_.request, one));
    return ReadAnswer(result_.request.dialect, reply.sent, reply);
  }

  // Whether the server understood; an answer whose one token has no text is one, too.
  static bool Taken(const LoadSample& s) { return s.ok() || s.error == "no text"; }

  LoadPrompt Random(size_t tokens) const {
    PromptSource source{PromptPlan()};
    source.set_form(result_.form);
    return source.Random(tokens, tokens);
  }

  // Ids of large vocabularies, of small ones, words; each with and without ignore_eos.
  Status FindForm() {
    const Dialect d = result_.request.dialect;
    std::vector<PromptForm> forms;
    if (d == Dialect::kOpenAi || d == Dialect::kLlama) {
      forms = {{.ids = true}, {.ids = true, .first_id = 100, .id_count = 156}};
    }
    forms.push_back({});
    LoadSample last;
    for (const PromptForm& form : forms) {
      result_.form = form;
      last = Try(Random(kFewTokens));
      if (Taken(last)) return Status();
      if (last.error != "http 400" && last.error != "http 422") break;
    }
    if (result_.request.ignore_eos && (last.error == "http 400" || last.error == "http 422")) {
      result_.request.ignore_eos = false;
      if (Taken(Try(Random(kFewTokens)))) {
        result_.notes.push_back("the server does not take ignore_eos: answers may be shorter");
        return Status();
      }
    }
    if (d == Dialect::kOpenAi && last.error == "http 404") {
      result_.request.dialect = Dialect::kOpenAiChat;
      result_.form = {};
      if (Taken(Try(Random(kFewTokens)))) return Status();
    }
    return Status(StatusCode::kIo,
                  url() + ": a first request failed: " + last.error + ": " + last.detail);
  }

  // Two lengths give the tokens of a word, and those that come with every prompt.
  Status CountWords() {
    result_.form.tokens_per_prompt = 0;
    result_.form.tokens_per_word = 1;
    const LoadSample few = Try(Random(kFewWords)), many = Try(Random(kManyWords));
    if (!Taken(few) || !Taken(many) || many.prompt_tokens <= few.prompt_tokens) {
      result_.notes.push_back("the server does not count tokens of prompts: one per word is taken");
      return Status();
    }
    const auto a = static_cast<double>(few.prompt_tokens);
    const auto b = static_cast<double>(many.prompt_tokens);
    result_.form.tokens_per_word = (b - a) / (kManyWords - kFewWords);
    result_.form.tokens_per_prompt = a - result_.form.tokens_per_word * kFewWords;
    return Status();
  }

  Client& client_;
  ProbeResult result_;
};

}  // namespace

Result<ProbeResult> Probe(Client& client, std::optional<Dialect> dialect, RequestOptions wanted) {
  return Prober(client, std::move(wanted)).Run(dialect);
}

}  // namespace sluice::load
