#include "src/server/llama_reply.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/server/completion.h"
#include "src/server/fields.h"
#include "src/server/http_server.h"

namespace sluice {

void RespondLlama(Exchange& exchange, const boost::json::value& body) {
  HttpResponse response;
  response.body = ToJson(body);
  exchange.Respond(std::move(response));
}

namespace json = boost::json;

namespace {

HttpResponse ErrorResponse(int http_status, json::object error) {
  HttpResponse response;
  response.status = http_status;
  response.body = ToJson(json::object{{"error", std::move(error)}});
  return response;
}

}  // namespace

json::object LlamaError(int http_status, std::string_view message) {
  return {{"code", http_status}, {"message", message}, {"type", ErrorType(http_status)}};
}

void RespondLlamaError(Exchange& exchange, int http_status, std::string_view message) {
  exchange.Respond(ErrorResponse(http_status, LlamaError(http_status, message)));
}

void RespondLlamaError(Exchange& exchange, const Status& status, int retry_after_s) {
  const int http_status = HttpStatusOf(status);
  HttpResponse response = ErrorResponse(http_status, LlamaError(http_status, status.message()));
  if (status.code() == StatusCode::kBusy) {
    response.headers.emplace_back("Retry-After", std::to_string(std::max(1, retry_after_s)));
  }
  exchange.Respond(std::move(response));
}

void RespondLlamaTooLong(Exchange& exchange, const Status& status, size_t prompt_tokens,
                         size_t context) {
  const int http_status = HttpStatusOf(status);
  json::object error = LlamaError(http_status, status.message());
  error["type"] = "exceed_context_size_error";
  error["n_prompt_tokens"] = prompt_tokens;
  error["n_ctx"] = context;
  exchange.Respond(ErrorResponse(http_status, std::move(error)));
}

}  // namespace sluice
