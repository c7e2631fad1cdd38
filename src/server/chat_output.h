// What a chat model writes, taken apart as it comes: the answer, the reasoning
// before it, and calls of tools, in the marks of the model's family (<think>,
// <tool_call>{json}</tool_call>, [TOOL_CALLS], <|python_tag|>, harmony channels
// ...). One per choice; text that may still turn into a mark is held back.
#ifndef SLUICE_SRC_SERVER_CHAT_OUTPUT_H_
#define SLUICE_SRC_SERVER_CHAT_OUTPUT_H_

#include <boost/json/array.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tokenizer.h"

namespace sluice {

// A piece of a call: `id` and `name` come first and once, then `arguments`, JSON text in fragments.
struct ToolCallDelta {
  size_t index = 0;
  std::string id, name, arguments;
};

struct ChatDelta {
  std::string content, reasoning;
  std::vector<ToolCallDelta> tool_calls;
  bool empty() const { return content.empty() && reasoning.empty() && tool_calls.empty(); }
};

struct ChatOutputOptions {
  std::string template_source;  // names the family by its marks
  std::string prompt_end;       // the last characters of the prompt: it may open the reasoning
  bool reasoning = true;        // false: marks of reasoning are content like all other text
  bool tools = false;           // false: no tools were offered, calls are content
  // The tools offered, in OpenAI's form: some families write arguments without their types, and a
  // bare object is a call only if it names one of them. May be empty.
  boost::json::array tool_list;
  // The whole answer is one call, or an array of calls: it was held to that form.
  bool only_calls = false;
};

class ChatOutput {
 public:
  explicit ChatOutput(const ChatOutputOptions& options);
  ~ChatOutput();

  ChatDelta Push(std::string_view text);
  ChatDelta Finish();         // what was held back; an unfinished call becomes content
  size_t tool_calls() const;  // begun so far

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The control tokens that are marks of this family: their text must reach Push, though it is
// otherwise no part of an answer (Request::shown_tokens).
std::vector<int32_t> ChatMarkIds(const Tokenizer& tokenizer, const ChatOutputOptions& options);
// The text after which an answer that is held to a grammar begins: reasoning that the prompt opened
// comes before it. Empty: at once.
std::string ConstraintStart(const ChatOutputOptions& options);

// Whether the template knows tools, and marks reasoning: capabilities that clients ask for.
bool TemplateKnowsTools(std::string_view template_source);
bool TemplateMarksReasoning(std::string_view template_source);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_CHAT_OUTPUT_H_
