// What all of llama-server's endpoints answer with. Stateless, any thread.
#ifndef SLUICE_SRC_SERVER_LLAMA_REPLY_H_
#define SLUICE_SRC_SERVER_LLAMA_REPLY_H_

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <string_view>

#include "src/base/status.h"
#include "src/server/exchange.h"

namespace sluice {

void RespondLlama(Exchange& exchange, const boost::json::value& body);
// {"code": 404, "message": ..., "type": "not_found_error"}: its code is the status, a number.
boost::json::object LlamaError(int http_status, std::string_view message);
void RespondLlamaError(Exchange& exchange, int http_status, std::string_view message);
// `retry_after_s`: sent with a refusal for want of room.
void RespondLlamaError(Exchange& exchange, const Status& status, int retry_after_s = 1);
// A prompt that does not fit, with the numbers that clients shorten it by.
void RespondLlamaTooLong(Exchange& exchange, const Status& status, size_t prompt_tokens,
                         size_t context);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_LLAMA_REPLY_H_
