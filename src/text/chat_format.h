// Turns of a conversation as the text and ids a chat model was trained on, for
// the families whose templates are rendered without an interpreter: gemma,
// llama-3, chatml (qwen), mistral, phi-3. Used by `sluice chat`; immutable once
// its date is set, any thread.
#ifndef SLUICE_SRC_TEXT_CHAT_FORMAT_H_
#define SLUICE_SRC_TEXT_CHAT_FORMAT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/file/gguf.h"
#include "src/text/chat_part.h"
#include "src/text/tokenizer.h"

namespace sluice {

struct ChatMessage {
  std::string role;  // system, user, assistant
  std::string content;
};

class ChatFormat {
 public:
  // From tokenizer.chat_template. kNotFound: the file has none (a base model); kUnsupported: it is
  // of none of the families above.
  static Result<ChatFormat> Detect(const Gguf& gguf);
  static Result<ChatFormat> FromTemplate(std::string_view source);

  std::string_view family() const;  // "gemma"
  // Texts that end a turn, for vocabularies in which they are no token (Tokenizer::IsEnd knows
  // the tokens).
  std::span<const std::string_view> stops() const;
  // What llama-3.2's system turn gives as today, "26 Jul 2024"; today by default.
  void set_date(std::string date) { date_ = std::move(date); }

  // The conversation in order; kInvalidArgument where the family's template refuses it. `bos` and
  // `eos`: the texts of these tokens, empty if the vocabulary has none.
  Result<std::vector<ChatPart>> Render(std::span<const ChatMessage> messages,
                                       bool add_generation_prompt, std::string_view bos,
                                       std::string_view eos) const;
  // Its ids: those of the rendered text, but that content stays text. BOS is there exactly if the
  // template writes it.
  Result<std::vector<int32_t>> Encode(const Tokenizer& tokenizer,
                                      std::span<const ChatMessage> messages,
                                      bool add_generation_prompt) const;

 private:
  enum class Family { kGemma, kLlama3, kChatml, kMistral, kPhi3 };
  struct Writer;  // the parts so far

  Status ReadChatml(std::string_view source);
  Status ReadMistral(std::string_view source);
  Status RenderGemma(std::span<const ChatMessage> messages, Writer& out) const;
  Status RenderLlama3(std::span<const ChatMessage> messages, Writer& out) const;
  Status RenderChatml(std::span<const ChatMessage> messages, Writer& out) const;
  Status RenderMistral(std::span<const ChatMessage> messages, Writer& out) const;
  Status RenderPhi3(std::span<const ChatMessage> messages, Writer& out) const;

  Family family_ = Family::kChatml;
  std::string date_;
  // What the templates of one family differ in.
  bool writes_bos_ = false;          // all
  bool always_prompts_ = false;      // llama-3, phi-3: the generation prompt is not optional
  bool takes_system_ = true;         // gemma, mistral
  bool dated_ = false;               // llama-3: a system turn with the date, always
  bool skips_empty_system_ = false;  // chatml
  bool thinks_ = false;              // chatml: history without <think> ... </think>
  std::string default_system_;       // chatml: for a conversation without a system turn
  std::string prompt_suffix_;        // chatml: after the generation prompt
  std::string_view open_ = "[INST]", close_ = "[/INST]", answer_;  // mistral
  std::string_view newline_ = "\n";                                // phi-3: after a role
  bool prompts_after_user_ = false;                                // phi-3: the first template did
  bool ends_with_eos_ = false;  // phi-3: without a generation prompt
};

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_CHAT_FORMAT_H_
