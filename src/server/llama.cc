// llama-server's own API as routes: completions, slots and properties, health.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/server/chat_output.h"
#include "src/server/chat_prompt.h"
#include "src/server/completion.h"
#include "src/server/dialects.h"
#include "src/server/fields.h"
#include "src/server/llama_embeddings.h"
#include "src/server/llama_reply.h"
#include "src/server/llama_request.h"

namespace sluice {

namespace json = boost::json;

namespace {

using SharedExchange = std::shared_ptr<Exchange>;
using ReadRequest = Result<LlamaRequest> (*)(const json::object&,
                                             const std::shared_ptr<ServedModel>&);

json::object NextToken(const LiveRequest* request) {
  json::object next{{"has_next_token", request != nullptr},
                    {"has_new_line", false},
                    {"n_remain", -1},
                    {"n_decoded", 0}};
  if (request == nullptr) return next;
  next["n_decoded"] = request->generated_tokens;
  if (request->max_tokens != SIZE_MAX) {
    next["n_remain"] = request->max_tokens - request->generated_tokens;
  }
  return next;
}

// What llama-server's slots do not say.
json::object Progress(const LiveRequest& request) {
  return {{"request_id", request.request_id},
          {"phase", RequestPhaseName(request.phase)},
          {"prompt_tokens", request.prompt_tokens},
          {"cached_tokens", request.cached_tokens},
          {"processed_tokens", request.processed_tokens},
          {"generated_tokens", request.generated_tokens},
          {"queue_s", request.queue_s},
          {"prefill_s", request.prefill_s},
          {"decode_s", request.decode_s},
          {"prefill_tok_s", request.prefill_tok_s},
          {"decode_tok_s", request.decode_tok_s},
          {"ceiling_ratio", request.ceiling_ratio}};
}

// `id` -1: of a request that waits; `request` null: free.
json::object Slot(const ServedModel& model, int64_t id, const LiveRequest* request) {
  json::object slot{{"id", id},
                    {"id_task", -1},
                    {"n_ctx", model.context()},
                    {"speculative", false},
                    {"is_processing", request != nullptr && id >= 0},
                    {"params", LlamaSettings(Request())},
                    {"next_token", NextToken(request)}};
  if (request != nullptr) {
    slot["id_task"] = request->id;
    slot["sluice"] = Progress(*request);
  }
  return slot;
}

// The engine has no slots; as many as run at once stand for them, the running requests in the first
// ones in order of arrival. Those who wait follow.
json::array Slots(const ServedModel& model, bool* free) {
  const std::vector<LiveRequest> requests = model.engine().requests();
  const auto queued = [](const LiveRequest& r) { return r.phase == RequestPhase::kQueued; };
  json::array slots;
  for (const LiveRequest& request : requests) {
    if (!queued(request)) {
      slots.push_back(Slot(model, static_cast<int64_t>(slots.size()), &request));
    }
  }
  const size_t all = std::max<size_t>(1, model.engine().snapshot().max_sequences);
  *free = slots.size() < all;
  while (slots.size() < all) {
    slots.push_back(Slot(model, static_cast<int64_t>(slots.size()), nullptr));
  }
  for (const LiveRequest& request : requests) {
    if (queued(request)) slots.push_back(Slot(model, -1, &request));
  }
  return slots;
}

std::string TokenText(const ServedModel& model, std::optional<int32_t> id) {
  return id ? std::string(model.tokenizer().text(*id)) : "";
}

json::object Props(const ServedModel& model, const std::string& version) {
  json::object settings = Slot(model, 0, nullptr);
  settings["prompt"] = "";
  json::object modalities{{"vision", false}, {"audio", false}};
  json::object caps{{"supports_tools", TemplateKnowsTools(model.chat_source())},
                    {"supports_tool_calls", TemplateKnowsTools(model.chat_source())},
                    {"supports_reasoning", TemplateMarksReasoning(model.chat_source())}};
  return {{"default_generation_settings", std::move(settings)},
          {"total_slots", std::max<size_t>(1, model.engine().snapshot().max_sequences)},
          {"model_alias", model.name()},
          // The file's name: where it lies is nobody's business.
          {"model_path", std::filesystem::path(model.entry().path).filename().string()},
          {"modalities", std::move(modalities)},
          {"chat_template", model.chat_source()},
          {"chat_template_caps", std::move(caps)},
          {"bos_token", TokenText(model, model.tokenizer().bos())},
          {"eos_token", TokenText(model, model.tokenizer().eos())},
          {"build_info", "sluice-" + version},
          {"is_sleeping", false}};
}

class LlamaApi {
 public:
  explicit LlamaApi(const ServerContext& context) : context_(context) {}

  void Complete(const SharedExchange& exchange, ReadRequest read) {
    Answer(exchange, [&] {
      ASSIGN_OR_RETURN(const json::object body, ParseBody(exchange->request().body));
      ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, Get(body));
      ASSIGN_OR_RETURN(LlamaRequest request, read(body, model));
      const LlamaAnswerOptions& answer = request.answer;
      const bool prefill = answer.stream && (answer.return_progress || answer.timings_per_token);
      const std::vector<size_t>& counts = request.answer.prompt_tokens;
      const size_t longest = *std::max_element(counts.begin(), counts.end());
      auto sink = std::make_shared<LlamaAnswer>(exchange, std::move(request.answer));
      const Status refused =
          sluice::Complete(model, std::move(request.call), exchange, std::move(sink), prefill);
      if (refused.code() == StatusCode::kTooLong) {
        RespondLlamaTooLong(*exchange, refused, longest, model->context());
        return Status();
      }
      if (refused.code() != StatusCode::kBusy) return refused;
      RespondLlamaError(*exchange, refused, model->engine().RetryAfterSeconds());
      return Status();
    });
  }

  void Embed(const SharedExchange& exchange) {
    Answer(exchange, [&] {
      ASSIGN_OR_RETURN(const json::object body, ParseBody(exchange->request().body));
      ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, Get(body));
      return EmbedForLlama(model, body, exchange);
    });
  }

  void ApplyTemplate(const SharedExchange& exchange) {
    Answer(exchange, [&] {
      ASSIGN_OR_RETURN(const json::object body, ParseBody(exchange->request().body));
      Fields fields(body);
      const json::array* messages = fields.Array("messages");
      ChatPromptOptions options;
      options.tools = fields.Array("tools");
      options.add_generation_prompt = fields.Bool("add_generation_prompt", true);
      const json::object* extra = fields.Object("chat_template_kwargs");
      RETURN_IF_ERROR(fields.status());
      if (extra != nullptr) options.extra = *extra;
      if (messages == nullptr) {
        return Status(StatusCode::kInvalidArgument, "messages: expected an array, found none");
      }
      ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, Get(body));
      if (model->chat() == nullptr) {  // whose reason names the file's path
        return Status(StatusCode::kUnsupported, "this model has no chat template that works here");
      }
      ASSIGN_OR_RETURN(const ChatPrompt prompt, RenderChat(*model, *messages, options));
      json::object reply;
      reply["prompt"] = prompt.text;
      RespondLlama(*exchange, reply);
      return Status();
    });
  }

  void GetProps(const SharedExchange& exchange) {
    Answer(exchange, [&] {
      ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model,
                       context_.host->Get(std::string(exchange->request().Query("model"))));
      RespondLlama(*exchange, Props(*model, context_.version));
      return Status();
    });
  }

  // Looks only: a model that is not loaded has no slots.
  void GetSlots(const SharedExchange& exchange) {
    const std::string name(exchange->request().Query("model"));
    json::array slots;
    bool free = false;
    for (const LoadedModel& loaded : context_.host->Loaded()) {
      const ServedModel& model = *loaded.model;
      if (!name.empty() && model.name() != name) continue;
      slots = Slots(model, &free);
      break;
    }
    const std::string_view fail = exchange->request().Query("fail_on_no_slot");
    if (!free && !fail.empty() && fail != "0") {
      return RespondLlamaError(*exchange, 503, "no slot is free");
    }
    RespondLlama(*exchange, slots);
  }

  // Every choice of the request; what a cancelled stream has got stays its answer.
  void CancelRequest(const SharedExchange& exchange) {
    const std::string& id = exchange->request().captures.front();
    size_t cancelled = 0;
    for (const LoadedModel& loaded : context_.host->Loaded()) {
      cancelled += loaded.model->engine().CancelRequest(id);
    }
    if (cancelled == 0) {
      return RespondLlamaError(*exchange, 404,
                               "no request with this id runs or waits; its id is the X-Request-Id "
                               "header of its answer, and /slots lists them");
    }
    RespondLlama(*exchange, json::object{{"cancelled", cancelled}});
  }

  void Health(const SharedExchange& exchange, const char* status) {
    if (context_.draining && context_.draining()) {
      return RespondLlamaError(*exchange, 503, "the server is shutting down");
    }
    json::object reply;
    reply["status"] = status;
    RespondLlama(*exchange, reply);
  }

 private:
  template <class F>
  void Answer(const SharedExchange& exchange, const F& f) {
    const Status status = f();
    if (!status.ok()) RespondLlamaError(*exchange, status);
  }

  Result<std::shared_ptr<ServedModel>> Get(const json::object& body) {
    Fields fields(body);
    const std::string name = fields.String("model");
    RETURN_IF_ERROR(fields.status());
    return context_.host->Get(name);
  }

  const ServerContext& context_;
};

Handler NotOffered(std::string message) {
  return [message = std::move(message)](const SharedExchange& exchange) {
    RespondLlamaError(*exchange, 501, message);
  };
}

}  // namespace

std::vector<Route> LlamaRoutes(const ServerContext& context) {
  const auto api = std::make_shared<LlamaApi>(context);
  std::vector<Route> routes;
  const auto add = [&](const char* method, const char* path, Handler handler) {
    routes.push_back({method, path, std::move(handler), Access::kKey, ErrorShape::kOpenAi, false});
  };
  for (const char* path : {"/completion", "/completions"}) {
    add("POST", path, [api](const SharedExchange& e) { api->Complete(e, ReadLlamaCompletion); });
  }
  add("POST", "/infill", [api](const SharedExchange& e) { api->Complete(e, ReadLlamaInfill); });
  add("POST", "/apply-template", [api](const SharedExchange& e) { api->ApplyTemplate(e); });
  add("GET", "/props", [api](const SharedExchange& e) { api->GetProps(e); });
  add("POST", "/props", NotOffered("properties cannot be changed while the server runs"));
  add("GET", "/slots", [api](const SharedExchange& e) { api->GetSlots(e); });
  routes.back().polled = true;
  add("POST", "/v1/requests/{id}/cancel",
      [api](const SharedExchange& e) { api->CancelRequest(e); });
  add("POST", "/slots/{id}",
      NotOffered("slots cannot be saved, restored or erased here: finished "
                 "prompts are kept by the prefix cache"));
  for (const char* path : {"/embedding", "/embeddings"}) {
    add("POST", path, [api](const SharedExchange& e) { api->Embed(e); });
  }
  add("GET", "/lora-adapters", [](const SharedExchange& e) { RespondLlama(*e, json::array()); });
  const auto add_health = [&](const char* path, const char* status) {
    add("GET", path, [api, status](const SharedExchange& e) { api->Health(e, status); });
    routes.back().access = Access::kOpen;
    routes.back().quick = true;
  };
  add_health("/health", "ok");
  add_health("/v1/health", "ok");
  add_health("/ready", "ready");
  return routes;
}

}  // namespace sluice
