// The chat templates of a GGUF file, and the token texts they print. Stateless; any thread.
#ifndef SLUICE_SRC_TEXT_CHAT_TEMPLATE_H_
#define SLUICE_SRC_TEXT_CHAT_TEMPLATE_H_

#include <boost/json/object.hpp>
#include <string>

#include "src/base/status.h"
#include "src/file/gguf.h"

namespace sluice {

// tokenizer.chat_template, or with tools the one named tool_use if there is one. kNotFound: the
// file has none (a base model).
Result<std::string> ChatTemplateOf(const Gguf& gguf, bool with_tools);
// bos_token and eos_token, as far as the file names them.
void AddTokenVariables(const Gguf& gguf, boost::json::object& variables);

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_CHAT_TEMPLATE_H_
