#include "src/server/ollama_request.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/printable.h"
#include "src/server/chat_prompt.h"
#include "src/server/fields.h"
#include "src/server/late_constraint.h"
#include "src/server/llama_infill.h"
#include "src/server/ollama_options.h"
#include "src/server/ollama_reply.h"
#include "src/text/grammar/grammar.h"

namespace sluice {

namespace json = boost::json;

namespace {

constexpr size_t kPromptEnd = 256;  // characters that may open the reasoning
constexpr size_t kMostMessages = 100000;
constexpr size_t kRoomForAnswer = 256;  // of a prompt that is cut, where num_predict names none

Status Refuse(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

// Whether the model is to think: unset differs from false.
struct Think {
  std::optional<bool> on;
  std::string level;  // "low" ...; empty: none was named
};

Result<Think> ReadThink(const json::value* value) {
  Think think;
  if (value == nullptr) return think;
  if (value->is_bool()) {
    think.on = value->get_bool();
    return think;
  }
  const std::string text = value->is_string() ? std::string(value->get_string()) : ToJson(*value);
  for (const char* level : {"high", "medium", "low"}) {
    if (!value->is_string() || text != level) continue;
    think.on = true;
    think.level = text;
    return think;
  }
  return Refuse("invalid think value: \"" + Printable(text) +
                "\" (expected true, false, \"high\", \"medium\" or \"low\")");
}

class RequestReader {
 public:
  RequestReader(const json::object& body, bool chat, ServedModel& model)
      : body_(body), fields_(body), chat_(chat), model_(model) {}

  Result<OllamaRequest> Read() {
    RETURN_IF_ERROR(ReadAnswer());
    RETURN_IF_ERROR(RefuseWhatIsNotOffered());
    RETURN_IF_ERROR(
        ReadOllamaOptions(fields_, model_, &out_.call.options, &out_.answer, &options_));
    RETURN_IF_ERROR(ReadFormat());
    ASSIGN_OR_RETURN(think_, ReadThink(fields_.Find("think")));
    RETURN_IF_ERROR(CheckThink());
    RETURN_IF_ERROR(fields_.status());
    RETURN_IF_ERROR(chat_ ? ReadChat() : ReadPrompt());
    if (ids_.empty()) return Refuse("the prompt: expected at least one token, found none");
    if (options_.keep_all) out_.call.options.sinks = ids_.size();
    if (out_.answer.context) out_.answer.prompt = ids_;
    out_.call.prompts = {std::move(ids_)};
    return std::move(out_);
  }

 private:
  Status ReadAnswer() {
    OllamaAnswerOptions& answer = out_.answer;
    answer.chat = chat_;
    answer.model = ModelNameOf(body_).empty() ? model_.name() : ModelNameOf(body_);
    answer.stream = fields_.Bool("stream", true);
    answer.logprobs = fields_.Bool("logprobs", false);
    const int64_t top = fields_.Int("top_logprobs", 0, 0, 20);
    if (top > 0 && !answer.logprobs)
      fields_.Fail("top_logprobs", "expected logprobs: true with it");
    if (answer.logprobs) out_.call.options.logprobs = static_cast<int>(top);
    out_.render_only = fields_.Bool("_debug_render_only", false);
    truncate_ = fields_.Bool("truncate", false);
    // Not asked for, the end of the context ends the answer: nothing is forgotten in silence.
    out_.call.options.context_shift = fields_.Bool("shift", false);
    return fields_.status();
  }

  Status RefuseWhatIsNotOffered() {
    const json::array* images = fields_.Array("images");
    if (images != nullptr && !images->empty()) return Refuse("images: this model takes text only");
    if (!fields_.String("template").empty()) {
      return Refuse(
          "template: expected none, the model's own is used; for a prompt of your own making "
          "send raw: true");
    }
    return fields_.status();
  }

  Status ReadFormat() {
    const json::value* format = fields_.Find("format");
    if (format == nullptr) return Status();
    if (format->is_string()) {
      if (format->get_string().empty()) return Status();
      if (format->get_string() != "json") {
        return Refuse("format: expected \"json\" or a JSON schema, found \"" +
                      Printable(format->get_string()) + "\"");
      }
      out_.call.grammar = Grammar::JsonObject();
    } else if (format->is_object()) {
      Result<std::shared_ptr<const Grammar>> schema = Grammar::FromJsonSchema(*format);
      if (!schema.ok()) return schema.status().Within("format");
      out_.call.grammar = *std::move(schema);
    } else {
      return Refuse("format: expected \"json\" or a JSON schema");
    }
    return Status();
  }

  Status CheckThink() const {
    const bool thinks = model_.chat() != nullptr && TemplateMarksReasoning(model_.chat_source());
    if (think_.on != true || thinks) return Status();
    return Refuse("\"" + Printable(out_.answer.model, 200) + "\" does not support thinking");
  }

  // The variables that templates of thinking models read.
  json::object TemplateVariables() const {
    json::object variables;
    if (think_.on) {
      variables["enable_thinking"] = *think_.on;
      variables["thinking"] = *think_.on;
    }
    if (!think_.level.empty()) variables["reasoning_effort"] = think_.level;
    return variables;
  }

  Status Render(const json::array& messages) {
    ChatPromptOptions options;
    options.tools = tools_;
    options.extra = TemplateVariables();
    Result<ChatPrompt> prompt = RenderChat(model_, messages, options);
    // What a model cannot do is a fault of the request here.
    if (!prompt.ok()) return Refuse(prompt.status().message());
    ids_ = std::move(prompt->ids);
    out_.rendered = std::move(prompt->text);
    return Status();
  }

  // What the model says is taken apart as its template marks it.
  void SetOutput() {
    ChatOutputOptions output;
    output.template_source = model_.chat_source();
    const size_t begin = out_.rendered.size() - std::min(out_.rendered.size(), kPromptEnd);
    output.prompt_end = out_.rendered.substr(begin);
    output.tools = tools_ != nullptr;
    if (tools_ != nullptr) output.tool_list = *tools_;
    output.reasoning = TemplateMarksReasoning(output.template_source);
    std::vector<int32_t>& shown = out_.call.options.shown_tokens;
    shown = ChatMarkIds(model_.tokenizer(), output);
    std::sort(shown.begin(), shown.end());
    HoldBackGrammar(ConstraintStart(output));
    out_.answer.output = std::move(output);
  }

  // Thoughts that the prompt opened are free; the grammar holds from their end on.
  void HoldBackGrammar(const std::string& start) {
    std::shared_ptr<const Grammar>& grammar = out_.call.grammar;
    if (grammar == nullptr) return;
    if (!start.empty()) {
      grammar = std::make_shared<LateGrammar>(model_.tokenizer(), model_.vocab(), start, grammar);
    } else if (think_.on == true) {
      out_.answer.notes.push_back("think: off, because format holds the answer from its start");
    }
  }

  Status ReadChat() {
    tools_ = fields_.Array("tools");
    const json::array* messages = fields_.Array("messages");
    RETURN_IF_ERROR(fields_.status());
    if (messages == nullptr) return Refuse("messages: expected an array, found none");
    if (model_.chat() == nullptr) {
      return Refuse("\"" + Printable(out_.answer.model, 200) +
                    "\" does not support chat: it has no chat template that works here");
    }
    if (tools_ != nullptr && tools_->empty()) tools_ = nullptr;
    if (tools_ != nullptr && !TemplateKnowsTools(model_.chat_source())) {
      return Refuse("\"" + Printable(out_.answer.model, 200) + "\" does not support tools");
    }
    ASSIGN_OR_RETURN(json::array turns, OllamaMessages(*messages));
    RETURN_IF_ERROR(Render(turns));
    if (truncate_ && ids_.size() > MostPromptTokens()) RETURN_IF_ERROR(DropOldest(turns));
    SetOutput();
    return Status();
  }

  size_t MostPromptTokens() const {
    const size_t most = std::min(model_.context(), model_.runner().MostPositions());
    const size_t asked = out_.call.options.max_tokens;
    return most - std::min(asked == SIZE_MAX ? kRoomForAnswer : asked, most / 2);
  }

  // Drops whole turns from the oldest on, to the first that fits; what the system says stays. If
  // nothing fits, the prompt stays too long and is refused as such.
  Status DropOldest(const json::array& turns) {
    size_t head = 0;
    const auto role = [&](size_t i) -> std::string_view {
      return turns[i].at("role").get_string();
    };
    while (head < turns.size() && role(head) == "system") ++head;
    std::vector<size_t> cuts;  // where a conversation can begin
    for (size_t i = head + 1; i < turns.size(); ++i) {
      if (role(i) == "user") cuts.push_back(i);
    }
    const auto render_from = [&](size_t cut) {
      json::array kept(turns.begin(), turns.begin() + static_cast<ptrdiff_t>(head));
      kept.insert(kept.end(), turns.begin() + static_cast<ptrdiff_t>(cut), turns.end());
      return Render(kept);
    };
    size_t low = 0, high = cuts.size();  // the first cut that fits is in [low, high]
    while (low < high) {
      const size_t middle = (low + high) / 2;
      RETURN_IF_ERROR(render_from(cuts[middle]));
      ids_.size() <= MostPromptTokens() ? high = middle : low = middle + 1;
    }
    if (low == cuts.size()) return Render(turns);
    RETURN_IF_ERROR(render_from(cuts[low]));
    out_.answer.truncated = true;
    out_.answer.notes.push_back("truncate: dropped the oldest " + std::to_string(cuts[low] - head) +
                                " messages");
    return Status();
  }

  Status ReadPrompt() {
    const std::string prompt = fields_.String("prompt");
    const std::string system = fields_.String("system");
    const std::string suffix = fields_.String("suffix");
    const bool raw = fields_.Bool("raw", false);
    RETURN_IF_ERROR(fields_.status());
    if (!suffix.empty()) {
      RETURN_IF_ERROR(ReadInfill(prompt, suffix));
    } else if (raw || model_.chat() == nullptr) {
      if (!system.empty()) {
        return Refuse(raw ? "system: has no place in a raw prompt"
                          : "system: this model has no chat template that could say it");
      }
      ids_ = model_.tokenizer().Encode(prompt, {.add_special = true, .parse_special = raw});
      DropSecondBos();
      out_.rendered = prompt;
    } else {
      json::array messages;
      if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
      messages.push_back({{"role", "user"}, {"content", prompt}});
      RETURN_IF_ERROR(Render(messages));
      SetOutput();
    }
    out_.answer.context = !raw;
    RETURN_IF_ERROR(PrependContext());
    if (truncate_ && ids_.size() > MostPromptTokens()) CutMiddle();
    return Status();
  }

  // The text between the two is wanted.
  Status ReadInfill(const std::string& prefix, const std::string& suffix) {
    InfillText text;
    text.prefix = prefix;
    text.suffix = suffix;
    Result<std::vector<int32_t>> ids = InfillPrompt(text, model_.tokenizer());
    if (!ids.ok()) return Refuse("suffix: " + ids.status().message());
    ids_ = *std::move(ids);
    out_.rendered = model_.tokenizer().Decode(ids_, false);
    return Status();
  }

  // A prompt that writes BOS itself does not get another.
  void DropSecondBos() {
    const std::optional<int32_t> bos = model_.tokenizer().bos();
    if (bos && ids_.size() > 1 && ids_[0] == *bos && ids_[1] == *bos) ids_.erase(ids_.begin());
  }

  // The ids that an earlier answer returned: the conversation so far.
  Status PrependContext() {
    const json::array* context = fields_.Array("context");
    RETURN_IF_ERROR(fields_.status());
    if (context == nullptr || context->empty()) return Status();
    std::vector<int32_t> ids;
    for (const json::value& value : *context) {
      const int64_t id = value.is_int64() ? value.get_int64() : -1;
      if (id < 0 || static_cast<size_t>(id) >= model_.vocab()) {
        return Refuse("context: expected token ids from 0 to " +
                      std::to_string(model_.vocab() - 1) + ", found " + Printable(ToJson(value)));
      }
      ids.push_back(static_cast<int32_t>(id));
    }
    const bool begins = !ids_.empty() && model_.tokenizer().bos() == ids_[0];
    ids.insert(ids.end(), ids_.begin() + (begins ? 1 : 0), ids_.end());
    ids_ = std::move(ids);
    return Status();
  }

  // Keeps the first num_keep ids and the newest.
  void CutMiddle() {
    const size_t most = MostPromptTokens();
    const size_t keep = std::min(out_.call.options.sinks, most / 2);
    const size_t dropped = ids_.size() - most;
    const auto first = ids_.begin() + static_cast<ptrdiff_t>(keep);
    ids_.erase(first, first + static_cast<ptrdiff_t>(dropped));
    out_.answer.truncated = true;
    out_.answer.notes.push_back("truncate: dropped " + std::to_string(dropped) +
                                " tokens of the prompt");
  }

  const json::object& body_;
  Fields fields_;
  const bool chat_;
  ServedModel& model_;
  OllamaRequest out_;
  OllamaOptions options_;
  Think think_;
  const json::array* tools_ = nullptr;
  std::vector<int32_t> ids_;
  bool truncate_ = false;
};

Status MessageError(size_t index, const std::string& what) {
  return Refuse("messages[" + std::to_string(index) + "]: " + what);
}

// {"function": {"name", "arguments": {...}}} of a message.
Result<json::array> ToolCalls(const json::array& calls, size_t index) {
  json::array out;
  for (const json::value& value : calls) {
    const json::object* call = value.if_object();
    const json::value* function = call == nullptr ? nullptr : call->if_contains("function");
    if (function == nullptr || !function->is_object()) {
      return MessageError(index, "tool_calls: expected objects with a function");
    }
    json::object entry{{"id", ""}, {"type", "function"}, {"function", *function}};
    Fields fields(*call);
    entry["id"] = fields.String("id");
    RETURN_IF_ERROR(fields.status().Within("messages[" + std::to_string(index) + "].tool_calls"));
    out.push_back(std::move(entry));
  }
  return out;
}

Result<json::object> Message(const json::value& value, size_t index) {
  const json::object* in = value.if_object();
  if (in == nullptr) return MessageError(index, "expected an object");
  Fields fields(*in);
  std::string role = fields.String("role");
  for (char& c : role) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const json::array* images = fields.Array("images");
  const json::array* calls = fields.Array("tool_calls");
  json::object out{{"role", role}, {"content", fields.String("content")}};
  // Families of templates call the thoughts of an earlier turn by different names.
  if (const std::string thinking = fields.String("thinking"); !thinking.empty()) {
    out["reasoning_content"] = thinking;
    out["thinking"] = thinking;
  }
  if (const std::string name = fields.String("tool_name"); !name.empty()) out["name"] = name;
  if (const std::string id = fields.String("tool_call_id"); !id.empty()) out["tool_call_id"] = id;
  RETURN_IF_ERROR(fields.status().Within("messages[" + std::to_string(index) + "]"));
  if (role.empty()) return MessageError(index, "role: expected system, user, assistant or tool");
  if (images != nullptr && !images->empty()) {
    return MessageError(index, "images: this model takes text only");
  }
  if (calls != nullptr && !calls->empty()) {
    ASSIGN_OR_RETURN(out["tool_calls"], ToolCalls(*calls, index));
  }
  return out;
}

}  // namespace

Result<json::array> OllamaMessages(const json::array& messages) {
  if (messages.size() > kMostMessages) {
    return Refuse("messages: expected at most " + std::to_string(kMostMessages));
  }
  json::array out;
  for (size_t i = 0; i < messages.size(); ++i) {
    ASSIGN_OR_RETURN(json::object message, Message(messages[i], i));
    out.push_back(std::move(message));
  }
  return out;
}

Result<OllamaHead> ReadOllamaHead(const json::object& body, bool chat) {
  OllamaHead head;
  Fields fields(body);
  head.model = fields.String("model");
  const json::array* messages = chat ? fields.Array("messages") : nullptr;
  const std::string prompt = chat ? "" : fields.String("prompt");
  RETURN_IF_ERROR(fields.status());
  ASSIGN_OR_RETURN(head.keep_alive_s, ReadKeepAlive(fields.Find("keep_alive")));
  head.nothing_to_say = chat ? messages == nullptr || messages->empty() : prompt.empty();
  return head;
}

Result<OllamaRequest> ReadOllamaRequest(const json::object& body, bool chat, ServedModel& model) {
  return RequestReader(body, chat, model).Read();
}

}  // namespace sluice
