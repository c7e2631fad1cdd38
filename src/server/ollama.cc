// Ollama's API as routes: who asks for what, with which model.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "src/file/gguf.h"
#include "src/server/completion.h"
#include "src/server/dialects.h"
#include "src/server/fields.h"
#include "src/server/ollama_embed.h"
#include "src/server/ollama_models.h"
#include "src/server/ollama_pull.h"
#include "src/server/ollama_reply.h"
#include "src/server/ollama_request.h"

namespace sluice {

namespace json = boost::json;

namespace {

// Clients refuse what they take for an old Ollama; this is the first version whose answers have
// all the fields that ours have (log-probabilities were the last).
constexpr char kOllamaVersion[] = "0.12.11";

using SharedExchange = std::shared_ptr<Exchange>;

class OllamaApi {
 public:
  explicit OllamaApi(const ServerContext& context)
      : context_(context), pulls_(context.pull_command, context.models_folder) {}

  void Answer(const SharedExchange& exchange, bool chat) {
    OllamaHead head;
    Status status = [&] {
      const auto started = std::chrono::steady_clock::now();
      ASSIGN_OR_RETURN(const json::object body, ParseBody(exchange->request().body));
      ASSIGN_OR_RETURN(head, ReadOllamaHead(body, chat));
      if (head.unload()) return Unload(*exchange, head, chat);
      ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, Get(head));
      const std::chrono::duration<double> load = std::chrono::steady_clock::now() - started;
      if (head.nothing_to_say) {
        const std::string name = head.model.empty() ? model->name() : head.model;
        RespondOllama(*exchange, OllamaLoadReply(chat, name, "load", load.count()));
        return Status();
      }
      ASSIGN_OR_RETURN(OllamaRequest request, ReadOllamaRequest(body, chat, *model));
      if (request.render_only) return Rendered(*exchange, request);
      request.answer.started = started;
      request.answer.load_s = load.count();
      request.answer.piece = [model](int32_t id) { return model->tokenizer().Piece(id); };
      auto sink = std::make_shared<OllamaAnswer>(exchange, std::move(request.answer));
      const Status refused = Complete(model, std::move(request.call), exchange, std::move(sink));
      if (refused.code() != StatusCode::kBusy) return refused;
      RespondOllamaError(*exchange, refused, model->engine().RetryAfterSeconds());
      return Status();
    }();
    if (!status.ok()) RespondOllamaError(*exchange, OllamaModelError(status, head.model));
  }

  void Tags(const SharedExchange& exchange) {
    RespondOllama(*exchange, OllamaTags(OllamaEntries(*context_.host), details_));
  }

  void Ps(const SharedExchange& exchange) {
    RespondOllama(*exchange, OllamaPs(*context_.host, details_));
  }

  void Show(const SharedExchange& exchange) {
    Status status = [&] {
      ASSIGN_OR_RETURN(const json::object body, ParseBody(exchange->request().body));
      Fields fields(body);
      const bool verbose = fields.Bool("verbose", false);
      RETURN_IF_ERROR(fields.status());
      ASSIGN_OR_RETURN(const ModelEntry entry, Entry(ModelNameOf(body)));
      ASSIGN_OR_RETURN(const std::unique_ptr<Gguf> gguf, OpenQuietly(entry));
      std::optional<std::string> chat_template;
      for (const LoadedModel& loaded : context_.host->Loaded()) {
        if (loaded.model->entry().path == entry.path) chat_template = loaded.model->chat_source();
      }
      RespondOllama(*exchange, OllamaShow(entry, *gguf, verbose, chat_template));
      return Status();
    }();
    if (!status.ok()) RespondOllamaError(*exchange, status);
  }

  void Embed(const SharedExchange& exchange, bool old) {
    OllamaHead head;
    Status status = [&] {
      const auto started = std::chrono::steady_clock::now();
      ASSIGN_OR_RETURN(const json::object body, ParseBody(exchange->request().body));
      ASSIGN_OR_RETURN(head, ReadOllamaHead(body, false));
      ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, Get(head));
      const std::chrono::duration<double> load = std::chrono::steady_clock::now() - started;
      const std::string name = head.model.empty() ? model->name() : head.model;
      ASSIGN_OR_RETURN(OllamaEmbedRequest request,
                       ReadOllamaEmbed(*model, body, old, name, {started, load.count()}));
      if (request.call.inputs.empty()) {
        HttpResponse response;
        response.body = request.answer->Body("", 0);
        exchange->Respond(std::move(response));
        return Status();
      }
      const Status refused =
          sluice::Embed(model, std::move(request.call), exchange, std::move(request.answer));
      if (refused.code() != StatusCode::kBusy) return refused;
      RespondOllamaError(*exchange, refused, model->engine().RetryAfterSeconds());
      return Status();
    }();
    if (!status.ok()) RespondOllamaError(*exchange, OllamaModelError(status, head.model));
  }

  void Pull(const SharedExchange& exchange) {
    Status status = [&] {
      ASSIGN_OR_RETURN(const json::object body, ParseBody(exchange->request().body));
      Fields fields(body);
      const bool stream = fields.Bool("stream", true);
      RETURN_IF_ERROR(fields.status());
      ASSIGN_OR_RETURN(const std::string argument, PullArgument(ModelNameOf(body)));
      return pulls_.Start(argument, stream, exchange);
    }();
    if (!status.ok()) RespondOllamaError(*exchange, status, 30);
  }

  void Delete(const SharedExchange& exchange) {
    Status status = [&] {
      ASSIGN_OR_RETURN(const json::object body, ParseBody(exchange->request().body));
      ASSIGN_OR_RETURN(const ModelEntry entry, Entry(ModelNameOf(body)));
      context_.host->Unload(entry.name);
      RETURN_IF_ERROR(DeleteModelFiles(entry, context_.models_folder));
      HttpResponse response;
      exchange->Respond(std::move(response));
      return Status();
    }();
    if (status.code() == StatusCode::kUnsupported) {
      return RespondOllamaError(*exchange, 403, status.message());
    }
    if (!status.ok()) RespondOllamaError(*exchange, status);
  }

  void Version(const SharedExchange& exchange) {
    RespondOllama(*exchange,
                  json::object{{"version", kOllamaVersion}, {"sluice", context_.version}});
  }

 private:
  Result<std::shared_ptr<ServedModel>> Get(const OllamaHead& head) {
    const double* keep_alive = head.keep_alive_s ? &*head.keep_alive_s : nullptr;
    return context_.host->Get(head.model, keep_alive);
  }

  // Requests that run keep the model until they have ended.
  Status Unload(Exchange& exchange, const OllamaHead& head, bool chat) {
    const std::string name = head.model.empty() ? context_.host->names().front() : head.model;
    ASSIGN_OR_RETURN(const ModelEntry entry, Entry(name));
    context_.host->Unload(entry.name);
    RespondOllama(exchange, OllamaLoadReply(chat, name, "unload", 0));
    return Status();
  }

  Status Rendered(Exchange& exchange, const OllamaRequest& request) {
    json::object debug;
    debug["rendered_template"] = request.rendered;
    json::object reply{{"model", request.answer.model},
                       {"created_at", Rfc3339(std::chrono::system_clock::now())}};
    reply["_debug_info"] = std::move(debug);
    RespondOllama(exchange, reply);
    return Status();
  }

  // The file of a name.
  Result<ModelEntry> Entry(const std::string& name) {
    if (name.empty()) {
      return Status(StatusCode::kInvalidArgument, "model: expected a name, found none");
    }
    std::vector<ModelEntry> entries = OllamaEntries(*context_.host);
    for (ModelEntry& entry : context_.host->List()) entries.push_back(std::move(entry));
    if (const ModelEntry* entry = FindEntry(entries, name)) return *entry;
    return OllamaModelError(Status(StatusCode::kNotFound, ""), name);
  }

  // Errors about files name the model, not where it lies.
  static Result<std::unique_ptr<Gguf>> OpenQuietly(const ModelEntry& entry) {
    Result<std::unique_ptr<Gguf>> gguf = Gguf::Open(entry.path);
    if (gguf.ok()) return gguf;
    return Status(gguf.status().code(), "model '" + entry.name + "': its file cannot be read");
  }

  const ServerContext& context_;
  OllamaDetailsCache details_;
  PullJobs pulls_;
};

Handler NotOffered(const char* what) {
  return [what](const SharedExchange& exchange) {
    RespondOllamaError(*exchange, 501, std::string(what) + " is not offered here");
  };
}

Handler Running() {
  return [](const SharedExchange& exchange) {
    HttpResponse response;
    response.content_type = "text/plain; charset=utf-8";
    response.body = "Ollama is running";      // what clients look for
    response.headers = {{"Vary", "Accept"}};  // browsers may get a page
    exchange->Respond(std::move(response));
  };
}

}  // namespace

std::vector<Route> OllamaRoutes(const ServerContext& context) {
  const auto api = std::make_shared<OllamaApi>(context);
  std::vector<Route> routes;
  const auto add = [&](const char* method, const char* path, Handler handler,
                       Access access = Access::kKey) {
    routes.push_back({method, path, std::move(handler), access, ErrorShape::kOllama, false});
  };
  add("POST", "/api/generate", [api](const SharedExchange& e) { api->Answer(e, false); });
  add("POST", "/api/chat", [api](const SharedExchange& e) { api->Answer(e, true); });
  add("GET", "/api/tags", [api](const SharedExchange& e) { api->Tags(e); });
  add("GET", "/api/ps", [api](const SharedExchange& e) { api->Ps(e); });
  add("POST", "/api/show", [api](const SharedExchange& e) { api->Show(e); });
  add("POST", "/api/embed", [api](const SharedExchange& e) { api->Embed(e, false); });
  add("POST", "/api/embeddings", [api](const SharedExchange& e) { api->Embed(e, true); });
  add("POST", "/api/pull", [api](const SharedExchange& e) { api->Pull(e); }, Access::kManage);
  add("DELETE", "/api/delete", [api](const SharedExchange& e) { api->Delete(e); }, Access::kManage);
  add("POST", "/api/copy", NotOffered("copying models"));
  add("POST", "/api/create", NotOffered("creating models"));
  add("POST", "/api/push", NotOffered("pushing models"));
  add("GET", "/api/blobs/{digest}", NotOffered("the blob store"));
  add("POST", "/api/blobs/{digest}", NotOffered("the blob store"));
  add("GET", "/api/version", [api](const SharedExchange& e) { api->Version(e); }, Access::kOpen);
  add("GET", "/", Running(), Access::kOpen);
  routes[routes.size() - 2].quick = routes.back().quick = true;
  return routes;
}

}  // namespace sluice
