// Turns of a conversation as the text and ids a chat model was trained on: what
// the model's own chat template makes of them. Used by `sluice chat`; immutable
// once its clock is set, any thread.
#ifndef SLUICE_SRC_TEXT_CHAT_FORMAT_H_
#define SLUICE_SRC_TEXT_CHAT_FORMAT_H_

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
  Result<std::vector<ChatPart>> Render(std::span<const ChatMessage> messages,
                                       bool add_generation_prompt, std::string_view bos,
                                       std::string_view eos) const;
  // Its ids: those of the rendered text, but that content stays text. BOS is there exactly if the
  // template writes it.
  Result<std::vector<int32_t>> Encode(const Tokenizer& tokenizer,
                                      std::span<const ChatMessage> messages,
                                      bool add_generation_prompt) const;

 private:
  explicit ChatFormat(jinja::Template compiled);

  jinja::Template template_;
  jinja::RenderOptions options_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_CHAT_FORMAT_H_
