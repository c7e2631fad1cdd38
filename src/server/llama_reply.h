// What all of llama-server's endpoints answer with. Stateless, any thread.
#ifndef SLUICE_SRC_SERVER_LLAMA_REPLY_H_
#define SLUICE_SRC_SERVER_LLAMA_REPLY_H_

#include <boost/json/value.hpp>
#include <string_view>

#include "src/base/status.h"
#include "src/server/exchange.h"

namespace sluice {

void RespondLlama(Exchange& exchange, const boost::json::value& body);
void RespondLlamaError(Exchange& exchange, int http_status, std::string_view message);
// `retry_after_s`: sent with a refusal for want of room.
void RespondLlamaError(Exchange& exchange, const Status& status, int retry_after_s = 1);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_LLAMA_REPLY_H_
