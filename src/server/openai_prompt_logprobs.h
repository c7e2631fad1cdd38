// Log-probabilities of the prompt in requests of OpenAI's endpoints: vLLM's
// `prompt_logprobs` of completions and chats, and the numbers beside the prompt
// that `echo` repeats. Stateless, any thread.
#ifndef SLUICE_SRC_SERVER_OPENAI_PROMPT_LOGPROBS_H_
#define SLUICE_SRC_SERVER_OPENAI_PROMPT_LOGPROBS_H_

#include <boost/json/array.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "src/base/status.h"
#include "src/engine/prompt_logprobs.h"
#include "src/server/fields.h"
#include "src/server/openai_request.h"

namespace sluice {

// prompt_logprobs into the answer's options; errors are left in `fields`.
void ReadPromptLogprobs(Fields* fields, OpenAiRequest* request);

// Asks the engine for what the answer shows. Once the prompts are known: kInvalidArgument if their
// log-probabilities would make an answer of hundreds of megabytes.
Status WantPromptLogprobs(Fields* fields, OpenAiRequest* request);

// [null, {"12": {"logprob": -1.5, "rank": 2, "decoded_token": "a"}, ...}, ...]: for each token
// itself, then `count` of its alternatives.
boost::json::array PromptLogprobsJson(const PromptLogprobs& logprobs, size_t count,
                                      const std::function<std::string(int32_t id)>& piece);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OPENAI_PROMPT_LOGPROBS_H_
