// What requests of OpenAI's endpoints have in common: counts, limits, streaming,
// the sampler, structured answers. The endpoints' own files go on from there.
// Stateless, any thread; nothing here is quick enough for the I/O thread.
#ifndef SLUICE_SRC_SERVER_OPENAI_REQUEST_H_
#define SLUICE_SRC_SERVER_OPENAI_REQUEST_H_

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <string>

#include "src/server/chat_output.h"
#include "src/server/completion.h"
#include "src/server/fields.h"
#include "src/server/openai_answer.h"
#include "src/server/served_model.h"
#include "src/text/grammar/grammar.h"

namespace sluice {

// A call and how its answer is written.
struct OpenAiRequest {
  CompletionCall call;
  AnswerOptions answer;
};

// Of `default_max_tokens` choices' tokens when the request sets no limit. Everything that the
// endpoints share but prompts; errors are left in `fields`.
void ReadOpenAiRequest(const ServedModel& model, size_t default_max_tokens, Fields* fields,
                       OpenAiRequest* request);

// response_format, llama-server's grammar and json_schema, vLLM's guided_* and structured_outputs:
// at most one of them. Null: none, or an error in `fields`.
std::shared_ptr<const Grammar> ReadGrammar(Fields* fields);

// The answer is held to `grammar` (null: to none) from `start` on: see ConstraintStart.
void Constrain(const ServedModel& model, std::shared_ptr<const Grammar> grammar,
               const std::string& start, CompletionCall* call);

// A prompt that leaves no room for an answer: kTooLong with both numbers. Cuts it to the newest
// `truncate_prompt_tokens` before, if that is set.
Status FitPrompts(const ServedModel& model, Fields* fields, CompletionCall* call);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OPENAI_REQUEST_H_
