// Bodies of /completion and /infill, read into a call and into how its answer
// is to look. Encodes the prompts: not on the I/O thread.
#ifndef SLUICE_SRC_SERVER_LLAMA_REQUEST_H_
#define SLUICE_SRC_SERVER_LLAMA_REQUEST_H_

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/status.h"
#include "src/server/completion.h"
#include "src/server/llama_answer.h"
#include "src/server/served_model.h"

namespace sluice {

struct LlamaRequest {
  CompletionCall call;
  LlamaAnswerOptions answer;
};

Result<LlamaRequest> ReadLlamaCompletion(const boost::json::object& body,
                                         const std::shared_ptr<ServedModel>& model);
// kUnsupported: the vocabulary has no tokens for it.
Result<LlamaRequest> ReadLlamaInfill(const boost::json::object& body,
                                     const std::shared_ptr<ServedModel>& model);

// A text, ids, a list that mixes both (one prompt), or a list of such.
Result<std::vector<std::vector<int32_t>>> LlamaPrompts(const boost::json::value& prompt,
                                                       const ServedModel& model);

// generation_settings, and `params` of /props and /slots: names and shape of llama-server.
boost::json::object LlamaSettings(const Request& request);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_LLAMA_REQUEST_H_
