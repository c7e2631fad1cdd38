// "options" of Ollama's requests: its names and defaults. Any thread.
#ifndef SLUICE_SRC_SERVER_OLLAMA_OPTIONS_H_
#define SLUICE_SRC_SERVER_OLLAMA_OPTIONS_H_

#include "src/base/status.h"
#include "src/engine/sequence.h"
#include "src/server/fields.h"
#include "src/server/ollama_answer.h"
#include "src/server/served_model.h"

namespace sluice {

struct OllamaOptions {
  bool keep_all = false;  // num_keep -1: a shift of the context spares the whole prompt
};

// Reads body.options into the request. A value of the wrong type is an error; names nobody knows
// are kept in `answer`, which tells the client; so is what cannot be done as asked.
Status ReadOllamaOptions(Fields& body, const ServedModel& model, Request* request,
                         OllamaAnswerOptions* answer, OllamaOptions* options);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OLLAMA_OPTIONS_H_
