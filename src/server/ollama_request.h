// Bodies of /api/generate and /api/chat, read into a call and into how its
// answer is to look. Renders and encodes the prompt: not on the I/O thread.
#ifndef SLUICE_SRC_SERVER_OLLAMA_REQUEST_H_
#define SLUICE_SRC_SERVER_OLLAMA_REQUEST_H_

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/server/completion.h"
#include "src/server/ollama_answer.h"
#include "src/server/served_model.h"

namespace sluice {

// What is to be known before the model is there.
struct OllamaHead {
  std::string model;
  std::optional<double> keep_alive_s;
  bool nothing_to_say = false;  // no prompt, no messages: the model is to be loaded
  // The same with a keep_alive of 0: it is to be unloaded.
  bool unload() const { return nothing_to_say && keep_alive_s == 0.0; }
};
Result<OllamaHead> ReadOllamaHead(const boost::json::object& body, bool chat);

struct OllamaRequest {
  CompletionCall call;
  OllamaAnswerOptions answer;
  std::string rendered;  // the prompt as text, if it has one
  bool render_only = false;
};
Result<OllamaRequest> ReadOllamaRequest(const boost::json::object& body, bool chat,
                                        ServedModel& model);

// Messages in Ollama's form (arguments are objects, `thinking`, `tool_name`, roles in any case)
// in the form that RenderChat takes.
Result<boost::json::array> OllamaMessages(const boost::json::array& messages);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OLLAMA_REQUEST_H_
