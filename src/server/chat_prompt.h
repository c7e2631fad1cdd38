// Messages as clients send them (OpenAI's form; dialects bring theirs into it)
// to the prompt that the model's chat template makes. Any thread; templates can
// take a while, so not on the I/O thread.
#ifndef SLUICE_SRC_SERVER_CHAT_PROMPT_H_
#define SLUICE_SRC_SERVER_CHAT_PROMPT_H_

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/server/served_model.h"

namespace sluice {

struct ChatPrompt {
  std::vector<int32_t> ids;
  std::string text;  // as rendered
};

struct ChatPromptOptions {
  const boost::json::array* tools = nullptr;  // OpenAI's form; null: none
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the prompt ends inside the last message
  boost::json::object extra;  // chat_template_kwargs: variables; the template's own names stay ours
};

// Content as a string, an array of parts (text parts joined; others refused by name) or null; tool
// call arguments as text become objects where they are JSON. kUnsupported: this model cannot chat,
// or its template knows no tools; kInvalidArgument: a message that is none, or the template refused
// (its words).
Result<ChatPrompt> RenderChat(const ServedModel& model, const boost::json::array& messages,
                              const ChatPromptOptions& options);
// The same of a format; `source` is what it was made of.
Result<ChatPrompt> RenderChat(const ChatFormat& format, std::string_view source,
                              const Tokenizer& tokenizer, const boost::json::array& messages,
                              const ChatPromptOptions& options);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_CHAT_PROMPT_H_
