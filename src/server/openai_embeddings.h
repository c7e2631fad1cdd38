// POST /v1/embeddings: its body read into a call, and how its answer looks. A
// body with `content` instead of `input` is llama-server's (llama_embeddings.h).
// Request threads; encodes the inputs.
#ifndef SLUICE_SRC_SERVER_OPENAI_EMBEDDINGS_H_
#define SLUICE_SRC_SERVER_OPENAI_EMBEDDINGS_H_

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "src/server/embedding.h"

namespace sluice {

struct EmbeddingRequest {
  EmbeddingCall call;
  std::shared_ptr<const EmbeddingAnswer> answer;
};

// `name`: the model's, as the request has it. An error's field is left in `param`.
Result<EmbeddingRequest> ReadOpenAiEmbeddings(const ServedModel& model,
                                              const boost::json::object& body,
                                              const std::string& name, std::string* param);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OPENAI_EMBEDDINGS_H_
