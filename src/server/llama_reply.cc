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

void RespondLlamaError(Exchange& exchange, int http_status, std::string_view message) {
  HttpResponse response;
  response.status = http_status;
  response.body = ErrorBody(ErrorShape::kOpenAi, http_status, message);
  exchange.Respond(std::move(response));
}

void RespondLlamaError(Exchange& exchange, const Status& status, int retry_after_s) {
  HttpResponse response;
  response.status = HttpStatusOf(status);
  const bool too_long = status.code() == StatusCode::kTooLong;
  response.body = ErrorBody(ErrorShape::kOpenAi, response.status, status.message(), "",
                            too_long ? "context_length_exceeded" : "");
  if (status.code() == StatusCode::kBusy) {
    response.headers.emplace_back("Retry-After", std::to_string(std::max(1, retry_after_s)));
  }
  exchange.Respond(std::move(response));
}

}  // namespace sluice
