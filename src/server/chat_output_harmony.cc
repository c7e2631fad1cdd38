// Harmony: an answer is messages, each with a header that names its channel
// (analysis, commentary, final) and perhaps a recipient:
//   <|channel|>analysis<|message|>...<|end|>
//   <|start|>assistant<|channel|>commentary to=functions.f
//   <|constrain|>json<|message|>{...}<|call|>
//   <|start|>assistant<|channel|>final<|message|>...<|return|>
#include <algorithm>
#include <utility>

#include "src/server/chat_output_parser.h"

namespace sluice {
namespace {

constexpr std::string_view kMessage = "<|message|>", kChannel = "<|channel|>";
// Any of them ends the text of a message.
constexpr std::string_view kEnds[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>", kChannel};
// What a header may begin with.
constexpr std::string_view kHeads[] = {kChannel,        "<|start|>", kMessage,
                                       "<|constrain|>", "to=",       "assistant"};
constexpr size_t kMostHeader = 512;

class HarmonyParser : public ChatOutputParser {
 public:
  HarmonyParser(bool reasoning, bool tools, CallWriter* writer)
      : reasoning_(reasoning), tools_(tools), writer_(writer) {}

  void Push(std::string_view text, ChatDelta& delta) override {
    pending_ += text;
    while (in_header_ ? AdvanceHeader(false) : AdvanceBody(delta, false)) {
    }
  }

  // A header without its message is nobody's text.
  void Finish(ChatDelta& delta) override {
    while (in_header_ ? AdvanceHeader(true) : AdvanceBody(delta, true)) {
    }
    pending_.clear();
  }

 private:
  enum class Target { kContent, kReasoning, kCall };

  bool AdvanceHeader(bool end) {
    const size_t first = pending_.find_first_not_of(' ');
    if (first == pending_.npos) return false;
    const std::string_view rest = std::string_view(pending_).substr(first);
    const bool begins = std::any_of(std::begin(kHeads), std::end(kHeads),
                                    [&](auto head) { return rest.starts_with(head); });
    const bool may_begin = std::any_of(std::begin(kHeads), std::end(kHeads),
                                       [&](auto head) { return head.starts_with(rest); });
    if (!begins && may_begin && !end) return false;
    const size_t at = begins ? pending_.substr(0, kMostHeader).find(kMessage) : pending_.npos;
    in_header_ = begins && at == pending_.npos && pending_.size() < kMostHeader;
    if (in_header_) return false;
    target_ = Target::kContent;  // an answer without channels, as one held to a grammar is
    if (at != pending_.npos) {
      ReadHeader(std::string_view(pending_).substr(0, at));
      pending_.erase(0, at + kMessage.size());
    }
    return true;
  }

  void ReadHeader(std::string_view header) {
    constexpr std::string_view kRecipient = "to=functions.";
    const size_t to = header.find(kRecipient);
    called_ = false;
    if (to != header.npos && tools_) {
      const std::string_view rest = header.substr(to + kRecipient.size());
      name_ = std::string(rest.substr(0, rest.find_first_of(" <\n\t")));
      target_ = Target::kCall;
      return;
    }
    const size_t channel = header.rfind(kChannel);
    const bool analysis =
        channel != header.npos && header.substr(channel + kChannel.size()).starts_with("analysis");
    target_ = analysis && reasoning_ ? Target::kReasoning : Target::kContent;
  }

  bool AdvanceBody(ChatDelta& delta, bool end) {
    size_t at = pending_.npos;
    std::string_view mark;
    size_t held = 0;
    for (const std::string_view candidate : kEnds) {
      const size_t found = pending_.find(candidate);
      if (found < at) at = found, mark = candidate;
      held = std::max(held, PartialMark(pending_, candidate));
    }
    if (at == pending_.npos) {
      const size_t take = pending_.size() - (end ? 0 : held);
      Emit(std::string_view(pending_).substr(0, take), delta);
      pending_.erase(0, take);
      return false;
    }
    Emit(std::string_view(pending_).substr(0, at), delta);
    if (target_ == Target::kCall && called_ && !any_arguments_) writer_->Arguments("{}");
    // <|start|> and <|channel|> already belong to the next header.
    pending_.erase(0, mark == kChannel || mark == "<|start|>" ? at : at + mark.size());
    in_header_ = true;
    return true;
  }

  void Emit(std::string_view text, ChatDelta& delta) {
    if (target_ == Target::kCall) {
      if (!std::exchange(called_, true)) {
        writer_->Begin(name_);
        any_arguments_ = false;
      }
      if (text.empty()) return;
      any_arguments_ = true;
      writer_->Arguments(text);
    } else {
      (target_ == Target::kReasoning ? delta.reasoning : delta.content) += text;
    }
  }

  const bool reasoning_, tools_;
  CallWriter* writer_;
  std::string pending_, name_;
  Target target_ = Target::kContent;
  bool in_header_ = true;
  bool called_ = false, any_arguments_ = false;
};

}  // namespace

std::unique_ptr<ChatOutputParser> MakeHarmonyParser(bool reasoning, bool tools,
                                                    CallWriter* writer) {
  return std::make_unique<HarmonyParser>(reasoning, tools, writer);
}

}  // namespace sluice
