// Bodies of Ollama's /api/embed and of the older /api/embeddings, read into a
// call and into how its answer is to look. Request threads; encodes the inputs.
#ifndef SLUICE_SRC_SERVER_OLLAMA_EMBED_H_
#define SLUICE_SRC_SERVER_OLLAMA_EMBED_H_

#include <boost/json/object.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "src/server/embedding.h"
#include "src/server/served_model.h"

namespace sluice {

// What the answer says beside the vectors.
struct OllamaEmbedTimes {
  std::chrono::steady_clock::time_point started;
  double load_s = 0;
};

struct OllamaEmbedRequest {
  EmbeddingCall call;  // without inputs: nothing was asked for, the model is to be loaded
  std::shared_ptr<const EmbeddingAnswer> answer;
};

// `name`: the model's, as the request has it. `old`: of /api/embeddings, one `prompt`, whose vector
// is as the model has it.
Result<OllamaEmbedRequest> ReadOllamaEmbed(const ServedModel& model,
                                           const boost::json::object& body, bool old,
                                           const std::string& name, const OllamaEmbedTimes& times);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OLLAMA_EMBED_H_
