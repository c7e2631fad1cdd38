// OpenAI's routes and vLLM's beside them: from a request to a call and its answer.
#include <functional>
#include <optional>
#include <utility>

#include "src/server/completion.h"
#include "src/server/dialects.h"
#include "src/server/fields.h"
#include "src/server/llama_embeddings.h"
#include "src/server/openai_chat.h"
#include "src/server/openai_completions.h"
#include "src/server/openai_embeddings.h"
#include "src/server/openai_models.h"
#include "src/server/openai_responses.h"

namespace sluice {
namespace {

namespace json = boost::json;

using SharedExchange = std::shared_ptr<Exchange>;
using SharedModel = std::shared_ptr<ServedModel>;
using Sink = std::shared_ptr<CompletionSink>;

struct Body {
  json::object object;
  std::string model_name;  // as the request has it
  SharedModel model;
};

class OpenAi {
 public:
  explicit OpenAi(const ServerContext* context) : context_(context) {}

  void Chat(const SharedExchange& exchange) const {
    Generate(exchange, ParseChat,
             [](AnswerOptions options, const Body&, SharedExchange to) -> Sink {
               return std::make_shared<ChatAnswer>(std::move(options), std::move(to));
             });
  }
  void Completions(const SharedExchange& exchange) const {
    Generate(exchange, ParseCompletion,
             [](AnswerOptions options, const Body&, SharedExchange to) -> Sink {
               return std::make_shared<CompletionAnswer>(std::move(options), std::move(to));
             });
  }
  void Responses(const SharedExchange& exchange) const {
    Generate(exchange, ParseResponses,
             [](AnswerOptions options, const Body& body, SharedExchange to) -> Sink {
               return std::make_shared<ResponsesAnswer>(std::move(options), body.object,
                                                        std::move(to));
             });
  }

  void Models(const SharedExchange& exchange) const {
    RespondJson(*exchange, ListModels(*context_->host));
  }
  void Model(const SharedExchange& exchange) const {
    Reply(exchange, DescribeModel(*context_->host, exchange->request().captures.at(0)), "");
  }
  void Tokens(const SharedExchange& exchange,
              Result<json::object> (*answer)(const ServedModel&, const json::object&,
                                             std::string*)) const {
    const std::optional<Body> body = Read(exchange);
    if (!body.has_value()) return;
    std::string param;
    Result<json::object> out = answer(*body->model, body->object, &param);
    Reply(exchange, std::move(out), param);
  }
  void Embeddings(const SharedExchange& exchange) const {
    const std::optional<Body> body = Read(exchange);
    if (!body.has_value()) return;
    if (body->object.contains("content") && !body->object.contains("input")) {
      const Status status = EmbedForLlama(body->model, body->object, exchange);
      if (!status.ok()) exchange->Respond(OpenAiError(status));
      return;
    }
    std::string param;
    Result<EmbeddingRequest> request =
        ReadOpenAiEmbeddings(*body->model, body->object, body->model_name, &param);
    if (!request.ok()) return exchange->Respond(OpenAiError(request.status(), param));
    const Status status =
        Embed(body->model, std::move(request->call), exchange, std::move(request->answer));
    if (status.ok()) return;
    exchange->Respond(OpenAiError(status, "input", body->model->engine().RetryAfterSeconds()));
  }
  void Version(const SharedExchange& exchange) const {
    RespondJson(*exchange, json::object{{"version", context_->version}});
  }
  // Requests that run or wait.
  void Load(const SharedExchange& exchange) const {
    size_t load = 0;
    for (const LoadedModel& loaded : context_->host->Loaded()) {
      load += loaded.model->engine().pending();
    }
    RespondJson(*exchange, json::object{{"server_load", load}});
  }

 private:
  using Parse = Result<OpenAiRequest> (*)(const ServedModel&, const json::object&, std::string*);
  using MakeAnswer = Sink (*)(AnswerOptions, const Body&, SharedExchange);

  static void Reply(const SharedExchange& exchange, Result<json::object> answer,
                    std::string_view param) {
    if (answer.ok()) return RespondJson(*exchange, *answer);
    exchange->Respond(OpenAiError(answer.status(), param));
  }

  // The body and the model it names; nullopt: it was refused.
  std::optional<Body> Read(const SharedExchange& exchange) const {
    const auto refuse = [&](const Status& status, std::string_view param) {
      exchange->Respond(OpenAiError(status, param));
      return std::nullopt;
    };
    Result<json::object> object = ParseBody(exchange->request().body);
    if (!object.ok()) return refuse(object.status(), "");
    Body body;
    body.object = *std::move(object);
    Fields fields(body.object);
    body.model_name = fields.String("model");
    if (!fields.status().ok()) return refuse(fields.status(), "model");
    Result<SharedModel> model = context_->host->Get(body.model_name);
    if (!model.ok()) return refuse(model.status(), "model");
    body.model = *std::move(model);
    if (body.model_name.empty()) body.model_name = context_->host->names().front();
    return body;
  }

  void Generate(const SharedExchange& exchange, Parse parse, MakeAnswer make_answer) const {
    const std::optional<Body> body = Read(exchange);
    if (!body.has_value()) return;
    std::string param;
    Result<OpenAiRequest> request = parse(*body->model, body->object, &param);
    if (!request.ok()) return exchange->Respond(OpenAiError(request.status(), param));
    request->answer.model = body->model_name;
    request->answer.fingerprint = "sluice-" + context_->version;
    const Sink answer = make_answer(std::move(request->answer), *body, exchange);
    const Status status = Complete(body->model, std::move(request->call), exchange, answer);
    if (status.ok()) return;
    exchange->Respond(OpenAiError(status, "", body->model->engine().RetryAfterSeconds()));
  }

  const ServerContext* context_;
};

}  // namespace

std::vector<Route> OpenAiRoutes(const ServerContext& context) {
  std::vector<Route> routes;
  const auto api = std::make_shared<const OpenAi>(&context);
  const auto add = [&](const char* method, const char* path, Handler handler,
                       Access access = Access::kKey, bool quick = false) {
    Route route;
    route.method = method;
    route.path = path;
    route.handler = std::move(handler);
    route.access = access;
    route.quick = quick;
    routes.push_back(std::move(route));
  };
  for (const char* path : {"/v1/chat/completions", "/chat/completions"}) {
    add("POST", path, [api](const SharedExchange& e) { api->Chat(e); });
  }
  add("POST", "/v1/completions", [api](const SharedExchange& e) { api->Completions(e); });
  add("POST", "/v1/responses", [api](const SharedExchange& e) { api->Responses(e); });
  add("POST", "/v1/embeddings", [api](const SharedExchange& e) { api->Embeddings(e); });
  for (const char* path : {"/v1/models", "/models"}) {
    add("GET", path, [api](const SharedExchange& e) { api->Models(e); });
  }
  add("GET", "/v1/models/{model}", [api](const SharedExchange& e) { api->Model(e); });
  add("POST", "/tokenize", [api](const SharedExchange& e) { api->Tokens(e, Tokenize); });
  add("POST", "/detokenize", [api](const SharedExchange& e) { api->Tokens(e, Detokenize); });
  add("GET", "/version", [api](const SharedExchange& e) { api->Version(e); }, Access::kOpen, true);
  add("GET", "/load", [api](const SharedExchange& e) { api->Load(e); });
  for (const char* method : {"GET", "POST"}) {
    add(method, "/ping", [](const SharedExchange& e) { e->Respond({}); }, Access::kOpen, true);
  }
  return routes;
}

}  // namespace sluice
