// llama-server's own /embedding and /embeddings: `content` or `input`, every
// pooling, and a list as the answer. Request threads; encodes the inputs.
#ifndef SLUICE_SRC_SERVER_LLAMA_EMBEDDINGS_H_
#define SLUICE_SRC_SERVER_LLAMA_EMBEDDINGS_H_

#include <boost/json/object.hpp>
#include <memory>

#include "src/base/status.h"
#include "src/server/embedding.h"
#include "src/server/exchange.h"
#include "src/server/served_model.h"

namespace sluice {

// Reads the body and starts the call. An error has not been answered.
Status EmbedForLlama(std::shared_ptr<ServedModel> model, const boost::json::object& body,
                     std::shared_ptr<Exchange> exchange);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_LLAMA_EMBEDDINGS_H_
