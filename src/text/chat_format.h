// Turns of a conversation as the text and ids a chat model was trained on: what
// the model's own chat template makes of them. Used by `sluice chat` and the
// server; immutable once its clock is set, any thread.
#ifndef SLUICE_SRC_TEXT_CHAT_FORMAT_H_
#define SLUICE_SRC_TEXT_CHAT_FORMAT_H_

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/file/gguf.h"
#include "src/text/chat_part.h"
#include "src/text/jinja/jinja.h"
#include "src/text/tokenizer.h"

namespace sluice {

struct ChatMessage {
  std::string role;  // system, user, assistant
  std::string content;
};

// What a template reads, in OpenAI's form.
struct ChatVariables {
  boost::json::array messages;
  boost::json::array tools;  // none: the template sees null
  bool add_generation_prompt = true;
  boost::json::object extra;  // further variables; the names above and bos_token stay ours
};

class ChatFormat {
 public:
  // From tokenizer.chat_template. kNotFound: the file has none (a base model); kUnsupported: it is
  // no template.
  static Result<ChatFormat> Detect(const Gguf& gguf);
  static Result<ChatFormat> FromTemplate(std::string_view source);

  // The clock that templates with a date read; the local time by default.
  void set_now(const std::tm& now) { options_.now = now; }

  // The conversation in order; kInvalidArgument where the template refuses it. `bos` and `eos`: the
  // texts of these tokens, empty if the vocabulary has none.
  Result<std::vector<ChatPart>> Render(ChatVariables variables, std::string_view bos,
                                       std::string_view eos) const;
  // With these texts of the tokenizer's.
  Result<std::vector<ChatPart>> Render(ChatVariables variables, const Tokenizer& tokenizer) const;
  // The ids of turns of plain text: those of the rendered text, but that content stays text. BOS is
  // there exactly if the template writes it.
  Result<std::vector<int32_t>> Encode(const Tokenizer& tokenizer,
                                      std::span<const ChatMessage> messages,
                                      bool add_generation_prompt) const;

 private:
  explicit ChatFormat(jinja::Template compiled);

  jinja::Template template_;
  jinja::RenderOptions options_;
};

boost::json::array ToMessages(std::span<const ChatMessage> messages);
// The ids of what was rendered; content never becomes a control token.
std::vector<int32_t> EncodeChat(const Tokenizer& tokenizer, std::span<const ChatPart> parts);

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_CHAT_FORMAT_H_
