// How to read a template's source: after `Joined`, the literals of all template
// styles look alike, so that a family and its variants show in a few of them.
#include "src/text/chat_format.h"

#include <algorithm>
#include <ctime>

#include "src/base/printable.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

bool Has(std::string_view source, std::string_view text) {
  return source.find(text) != std::string_view::npos;
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// With "\n" as a newline, and literals that are added to each other as one.
std::string Joined(std::string_view source) {
  std::string text(source);
  ReplaceAll(text, "\\n", "\n");
  for (const char* seam : {"' + '", "'+'", "\" + \"", "\"+\""}) ReplaceAll(text, seam, "");
  return text;
}

bool IsBlank(std::string_view text, size_t at) {
  const uint32_t code = DecodeChar(text, at).code;
  return (ClassOf(code) & kSpace) || (code >= 0x1C && code <= 0x1F);  // as Python's strip()
}

// Jinja's trim.
std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsBlank(text, 0)) text.remove_prefix(DecodeChar(text, 0).length);
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80) --last;
    if (!IsBlank(text, last)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%d %b %Y", &local));
}

Status Unsupported(std::string_view why) {
  return Status(StatusCode::kUnsupported,
                "tokenizer.chat_template: " + std::string(why) +
                    "; rendered here are gemma, llama-3, chatml, mistral and phi-3; use `sluice "
                    "run` with the model's own prompt format");
}

// Gemma and mistral refuse all but user, assistant, user ...
Status CheckAlternation(std::span<const ChatMessage> messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    if ((messages[i].role == "user") != (i % 2 == 0)) {
      return Status(StatusCode::kInvalidArgument,
                    "conversation roles must alternate user/assistant/user/assistant; found " +
                        Printable(messages[i].role) + " as number " + std::to_string(i + 1));
    }
  }
  return Status();
}

}  // namespace

struct ChatFormat::Writer {
  std::string_view bos, eos;
  bool prompt;  // a generation prompt is asked for
  std::vector<ChatPart> parts;

  void Frame(std::string_view text) { Add(text, true); }
  void Content(std::string_view text) { Add(text, false); }
  void Add(std::string_view text, bool frame) {
    if (text.empty()) return;
    if (!parts.empty() && parts.back().frame == frame) {
      parts.back().text += text;
    } else {
      parts.push_back({std::string(text), frame});
    }
  }
};

Result<ChatFormat> ChatFormat::Detect(const Gguf& gguf) {
  ASSIGN_OR_RETURN(const std::optional<std::string_view> source,
                   gguf.String("tokenizer.chat_template"));
  const std::string file = Printable(gguf.path(), 200);
  if (!source.has_value()) {
    return Status(StatusCode::kNotFound,
                  file +
                      ": no tokenizer.chat_template, so this is a base model, which continues text "
                      "and holds no conversation; use `sluice run`, or an instruction-tuned model");
  }
  Result<ChatFormat> format = FromTemplate(*source);
  if (!format.ok()) return format.status().Within(file);
  return format;
}

Result<ChatFormat> ChatFormat::FromTemplate(std::string_view source) {
  const std::string text = Joined(source);
  ChatFormat format;
  format.writes_bos_ = Has(text, "bos_token");
  format.date_ = Has(text, "strftime_now") ? Today() : "26 Jul 2024";
  if (Has(text, "<start_of_turn>")) {
    format.family_ = Family::kGemma;
    format.takes_system_ = !Has(text, "System role not supported");
  } else if (Has(text, "<|start_header_id|>")) {
    format.family_ = Family::kLlama3;
    format.dated_ = Has(text, "Cutting Knowledge Date");
    format.always_prompts_ = !Has(text, "add_generation_prompt");
  } else if (Has(text, "<|im_start|>")) {
    RETURN_IF_ERROR(format.ReadChatml(text));
  } else if (Has(text, "[INST]")) {
    RETURN_IF_ERROR(format.ReadMistral(text));
  } else if (Has(text, "<|end|>") &&
             (Has(text, "<|user|>") || Has(source, "'<|' + message['role'] + '|>'"))) {
    format.family_ = Family::kPhi3;
    format.newline_ = Has(text, "<|user|>\n") || Has(text, "|>\n") ? "\n" : "";
    format.prompts_after_user_ = Has(text, "<|end|>\n<|assistant|>");
    format.always_prompts_ = !Has(text, "add_generation_prompt");
    format.ends_with_eos_ = Has(text, "eos_token");
  } else {
    return Unsupported("of no family known here");
  }
  return format;
}

Status ChatFormat::ReadChatml(std::string_view source) {
  family_ = Family::kChatml;
  for (const char* more : {"strftime_now", "reasoning_mode", "render_content"}) {
    if (Has(source, more)) return Unsupported("a chatml template that computes its turns");
  }
  constexpr std::string_view kSystem = "<|im_start|>system\n", kEnd = "<|im_end|>";
  for (size_t at = source.find(kSystem); at != source.npos; at = source.find(kSystem, at)) {
    at += kSystem.size();
    const std::string_view rest = source.substr(at);
    const std::string_view literal = rest.substr(0, rest.find(kEnd));
    // A literal up to the end of the turn: what is said when nobody set a system message.
    if (!literal.empty() && literal.find_first_of("'\"{}") == literal.npos) {
      default_system_ = literal;
    }
  }
  skips_empty_system_ = Has(source, "if ns.system_prompt");
  thinks_ = Has(source, "last_query_index");
  if (Has(source, "<|im_start|>assistant\n<think>\n")) prompt_suffix_ = "<think>\n";
  return Status();
}

Status ChatFormat::ReadMistral(std::string_view source) {
  family_ = Family::kMistral;
  if (Has(source, "<<SYS>>") || Has(source, "[SYSTEM_PROMPT]")) {
    return Unsupported("an [INST] template with a system frame of its own");
  }
  takes_system_ = Has(source, "system_message");
  if (Has(source, "[INST] ")) open_ = "[INST] ";
  if (Has(source, " [/INST]")) close_ = " [/INST]";
  if (Has(source, "\" \" + message")) answer_ = " ";
  return Status();
}

std::string_view ChatFormat::family() const {
  constexpr std::string_view kNames[] = {"gemma", "llama-3", "chatml", "mistral", "phi-3"};
  return kNames[static_cast<size_t>(family_)];
}

std::span<const std::string_view> ChatFormat::stops() const {
  static constexpr std::string_view kStops[] = {"<end_of_turn>", "<|eot_id|>", "<|im_end|>", "</s>",
                                                "<|end|>"};
  return std::span(kStops).subspan(static_cast<size_t>(family_), 1);
}

Status ChatFormat::RenderGemma(std::span<const ChatMessage> messages, Writer& out) const {
  std::string_view system;
  bool has_system = false;
  if (!messages.empty() && messages[0].role == "system") {
    if (!takes_system_) {
      return Status(StatusCode::kInvalidArgument, "this model takes no system message");
    }
    has_system = true;
    system = messages[0].content;
    messages = messages.subspan(1);
  }
  RETURN_IF_ERROR(CheckAlternation(messages));
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& m = messages[i];
    out.Frame("<start_of_turn>" + (m.role == "assistant" ? "model" : m.role) + "\n");
    if (i == 0 && has_system) {
      out.Content(system);
      out.Frame("\n\n");
    }
    out.Content(Trimmed(m.content));
    out.Frame("<end_of_turn>\n");
  }
  if (out.prompt) out.Frame("<start_of_turn>model\n");
  return Status();
}

Status ChatFormat::RenderLlama3(std::span<const ChatMessage> messages, Writer& out) const {
  const auto open = [&](std::string_view role) {
    out.Frame("<|start_header_id|>" + std::string(role) + "<|end_header_id|>\n\n");
  };
  if (dated_) {
    open("system");
    out.Frame("Cutting Knowledge Date: December 2023\nToday Date: " + date_ + "\n\n");
    if (!messages.empty() && messages[0].role == "system") {
      out.Content(Trimmed(messages[0].content));
      messages = messages.subspan(1);
    }
    out.Frame("<|eot_id|>");
  }
  for (const ChatMessage& m : messages) {
    open(m.role);
    out.Content(Trimmed(m.content));
    out.Frame("<|eot_id|>");
  }
  if (out.prompt || always_prompts_) open("assistant");
  return Status();
}

namespace {

// Without what a model thought before it answered.
std::string_view Answer(std::string_view content) {
  constexpr std::string_view kEnd = "</think>";
  const size_t end = content.rfind(kEnd);
  if (end == content.npos) return content;
  content.remove_prefix(end + kEnd.size());
  content.remove_prefix(std::min(content.find_first_not_of('\n'), content.size()));
  return content;
}

// What stood between the tags, without the newlines around it.
std::string_view Thought(std::string_view content) {
  const size_t end = content.find("</think>");
  if (end == content.npos) return {};
  content = content.substr(0, end);
  const size_t begin = content.rfind("<think>");
  if (begin != content.npos) content.remove_prefix(begin + 7);
  while (content.starts_with('\n')) content.remove_prefix(1);
  while (content.ends_with('\n')) content.remove_suffix(1);
  return content;
}

}  // namespace

Status ChatFormat::RenderChatml(std::span<const ChatMessage> messages, Writer& out) const {
  const bool has_system = !messages.empty() && messages[0].role == "system";
  if (!has_system && !default_system_.empty()) {
    out.Frame("<|im_start|>system\n" + default_system_ + "<|im_end|>\n");
  }
  if (has_system && skips_empty_system_ && messages[0].content.empty()) {
    messages = messages.subspan(1);
  }
  size_t last_user = messages.size();
  while (last_user > 0 && messages[last_user - 1].role != "user") --last_user;
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& m = messages[i];
    out.Frame("<|im_start|>" + m.role + "\n");
    std::string_view content = m.content;
    if (thinks_ && m.role == "assistant") {
      // Answers since the last question keep their thoughts, the last one an empty one even.
      const std::string_view thought = Thought(content);
      content = Answer(content);
      if (i >= last_user && (i + 1 == messages.size() || !thought.empty())) {
        out.Frame("<think>\n");
        out.Content(thought);
        out.Frame("\n</think>\n\n");
        content.remove_prefix(std::min(content.find_first_not_of('\n'), content.size()));
      }
    }
    out.Content(content);
    out.Frame("<|im_end|>\n");
  }
  if (out.prompt) out.Frame("<|im_start|>assistant\n" + prompt_suffix_);
  return Status();
}

Status ChatFormat::RenderMistral(std::span<const ChatMessage> messages, Writer& out) const {
  const ChatMessage* system = nullptr;
  if (takes_system_ && !messages.empty() && messages[0].role == "system") {
    system = &messages[0];
    messages = messages.subspan(1);
  }
  RETURN_IF_ERROR(CheckAlternation(messages));
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& m = messages[i];
    if (m.role == "user") {
      out.Frame(open_);
      if (system != nullptr && i + 1 == messages.size()) {
        out.Content(system->content);
        out.Frame("\n\n");
      }
      out.Content(m.content);
      out.Frame(close_);
    } else if (m.role == "assistant") {
      out.Frame(answer_);
      out.Content(answer_.empty() ? std::string_view(m.content) : Trimmed(m.content));
      out.Frame(out.eos);
    } else {
      return Status(StatusCode::kInvalidArgument,
                    "expected the roles user and assistant, found " + Printable(m.role));
    }
  }
  return Status();
}

Status ChatFormat::RenderPhi3(std::span<const ChatMessage> messages, Writer& out) const {
  const auto open = [&](std::string_view role) {
    out.Frame("<|" + std::string(role) + "|>" + std::string(newline_));
  };
  for (const ChatMessage& m : messages) {
    const bool user = m.role == "user", assistant = m.role == "assistant";
    // The first template knew no system turn; the later ones leave an empty one out.
    if (!user && !assistant && (prompts_after_user_ || m.role != "system" || m.content.empty())) {
      continue;
    }
    if (!(assistant && prompts_after_user_)) open(m.role);
    out.Content(m.content);
    out.Frame("<|end|>" + std::string(newline_));
    if (user && prompts_after_user_) open("assistant");
  }
  if (prompts_after_user_) return Status();
  if (out.prompt || always_prompts_) {
    open("assistant");
  } else if (ends_with_eos_) {
    out.Frame(out.eos);
  }
  return Status();
}

Result<std::vector<ChatPart>> ChatFormat::Render(std::span<const ChatMessage> messages,
                                                 bool add_generation_prompt, std::string_view bos,
                                                 std::string_view eos) const {
  Writer out{.bos = bos, .eos = eos, .prompt = add_generation_prompt, .parts = {}};
  if (writes_bos_) out.Frame(bos);
  const auto render = [&] {
    switch (family_) {
      case Family::kGemma:
        return RenderGemma(messages, out);
      case Family::kLlama3:
        return RenderLlama3(messages, out);
      case Family::kChatml:
        return RenderChatml(messages, out);
      case Family::kMistral:
        return RenderMistral(messages, out);
      case Family::kPhi3:
        return RenderPhi3(messages, out);
    }
    return Status();
  };
  RETURN_IF_ERROR(render());
  return std::move(out.parts);
}

Result<std::vector<int32_t>> ChatFormat::Encode(const Tokenizer& tokenizer,
                                                std::span<const ChatMessage> messages,
                                                bool add_generation_prompt) const {
  const auto text = [&](std::optional<int32_t> id) {
    return id.has_value() ? tokenizer.text(*id) : std::string_view();
  };
  ASSIGN_OR_RETURN(
      const std::vector<ChatPart> parts,
      Render(messages, add_generation_prompt, text(tokenizer.bos()), text(tokenizer.eos())));
  std::vector<Tokenizer::Part> views;
  for (const ChatPart& part : parts) views.push_back({part.text, part.frame});
  return tokenizer.EncodeParts(views, false);
}

}  // namespace sluice
