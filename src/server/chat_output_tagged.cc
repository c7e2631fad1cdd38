// Answers as text with marked stretches: reasoning first, calls anywhere after it.
#include <algorithm>
#include <utility>

#include "src/server/chat_output_parser.h"

namespace sluice {
namespace {

constexpr std::string_view kSpaces = " \n\r\t";

size_t SpacesBefore(std::string_view text, size_t end) {
  while (end > 0 && kSpaces.find(text[end - 1]) != kSpaces.npos) --end;
  return end;
}

class TaggedParser : public ChatOutputParser {
 public:
  TaggedParser(FamilyMarks marks, bool inside_reasoning, CallWriter* writer,
               const ToolSchemas* schemas)
      : marks_(std::move(marks)), writer_(writer), schemas_(schemas) {
    if (inside_reasoning) {
      mode_ = Mode::kReasoning;
    } else if (marks_.think_open.empty()) {
      mode_ = Mode::kContentStart;
    }
  }

  void Push(std::string_view text, ChatDelta& delta) override {
    pending_ += text;
    Run(delta, false);
  }

  void Finish(ChatDelta& delta) override {
    Run(delta, true);
    if (mode_ == Mode::kCall) {
      if (!call_->begun()) EmitRaw(delta);
    } else if (mode_ != Mode::kReasoning && mode_ != Mode::kClosing) {
      // Blanks alone are an answer only if there is nothing else.
      if (!trims_ || pending_.find_first_not_of(kSpaces) != pending_.npos) {
        delta.content += pending_;
      }
    }
    pending_.clear();
  }

 private:
  enum class Mode { kStart, kReasoning, kContentStart, kContent, kCall, kClosing };

  void Run(ChatDelta& delta, bool end) {
    while (Advance(delta, end)) {
    }
  }

  // Takes from pending_; false: more text is needed.
  bool Advance(ChatDelta& delta, bool end) {
    switch (mode_) {
      case Mode::kStart:
        return AdvanceStart(end);
      case Mode::kReasoning:
        return AdvanceReasoning(delta, end);
      case Mode::kContentStart:
        return AdvanceContentStart();
      case Mode::kContent:
        return AdvanceContent(delta, end);
      case Mode::kCall:
        return AdvanceCall(delta);
      case Mode::kClosing:
        return AdvanceClosing(end);
    }
    return false;
  }

  bool AdvanceStart(bool end) {
    const size_t at = pending_.find_first_not_of(kSpaces);
    if (at == pending_.npos) return false;
    const std::string_view rest = std::string_view(pending_).substr(at);
    const std::string_view open = marks_.think_open;
    if (rest.starts_with(open)) {
      pending_.erase(0, at + open.size());
      mode_ = Mode::kReasoning;
      return true;
    }
    if (open.starts_with(rest) && !end) return false;
    mode_ = Mode::kContentStart;
    return true;
  }

  bool AdvanceReasoning(ChatDelta& delta, bool end) {
    if (!in_reasoning_) {  // blanks before it are no part of it
      pending_.erase(0, std::min(pending_.find_first_not_of(kSpaces), pending_.size()));
      if (pending_.empty()) return false;
      in_reasoning_ = true;
    }
    const size_t at = pending_.find(marks_.think_close);
    size_t take = at;
    if (at == pending_.npos) {
      take = pending_.size() - (end ? 0 : PartialMark(pending_, marks_.think_close));
    }
    take = SpacesBefore(pending_, take);
    delta.reasoning.append(pending_, 0, take);
    if (at == pending_.npos) {
      pending_.erase(0, take);
      return false;
    }
    pending_.erase(0, at + marks_.think_close.size());
    mode_ = Mode::kContentStart;
    trims_ = true;
    return true;
  }

  // Before the first character of content that is no blank.
  bool AdvanceContentStart() {
    const size_t at = pending_.find_first_not_of(kSpaces);
    const bool waits = trims_ || !marks_.calls.empty();
    if (at == pending_.npos) {
      if (waits || pending_.empty()) return false;
      mode_ = Mode::kContent;
      return true;
    }
    for (const CallMarks& marks : marks_.calls) {
      if (!marks.open.empty() || called_) continue;
      if (pending_[at] != '{' && (pending_[at] != '[' || marks.kind != CallMarks::Kind::kJson)) {
        continue;
      }
      StartCall(marks, at, at);
      return true;
    }
    if (trims_) pending_.erase(0, at);
    mode_ = Mode::kContent;
    return true;
  }

  bool AdvanceContent(ChatDelta& delta, bool end) {
    const CallMarks* call = nullptr;
    size_t at = pending_.npos, length = 0;
    for (const CallMarks& marks : marks_.calls) {
      if (marks.open.empty()) continue;
      const size_t found = pending_.find(marks.open);
      if (found >= at) continue;
      at = found, length = marks.keep_open ? 0 : marks.open.size(), call = &marks;
    }
    const std::string* dropped = nullptr;
    for (const std::string& mark : marks_.dropped) {
      const size_t found = pending_.find(mark);
      if (found >= at) continue;
      at = found, call = nullptr, dropped = &mark;
    }
    if (at == pending_.npos) {
      EmitContent(delta, end ? pending_.size() : pending_.size() - HeldBack());
      return false;
    }
    if (call != nullptr) {
      const size_t before = SpacesBefore(pending_, at);
      EmitContent(delta, before);
      StartCall(*call, at - before, at - before + length);
    } else {
      EmitContent(delta, at);
      pending_.erase(0, dropped->size());
      mode_ = Mode::kContentStart;
      trims_ = true;
    }
    return true;
  }

  void EmitContent(ChatDelta& delta, size_t count) {
    if (count == 0) return;
    delta.content.append(pending_, 0, count);
    pending_.erase(0, count);
    trims_ = false;
  }

  // What may still be the beginning of a mark, and blanks that may stand before a call.
  size_t HeldBack() const {
    size_t held = 0;
    for (const CallMarks& marks : marks_.calls) {
      held = std::max(held, PartialMark(pending_, marks.open));
    }
    for (const std::string& mark : marks_.dropped) {
      held = std::max(held, PartialMark(pending_, mark));
    }
    if (marks_.calls.empty()) return held;
    return pending_.size() - SpacesBefore(pending_, pending_.size() - held);
  }

  // The call's own text begins at `begin` of pending_, `blanks` characters of which came before its
  // mark; all of them are content if it proves to be none.
  void StartCall(const CallMarks& marks, size_t blanks, size_t begin) {
    raw_ = pending_.substr(trims_ ? blanks : 0, begin - (trims_ ? blanks : 0));
    pending_.erase(0, begin);
    current_ = &marks;
    switch (marks.kind) {
      case CallMarks::Kind::kJson:
        call_ = MakeJsonCalls(false, schemas_);
        break;
      case CallMarks::Kind::kBareJson:
        call_ = MakeJsonCalls(true, schemas_);
        break;
      case CallMarks::Kind::kJsonOrXml:
        call_ = MakeJsonOrXmlCalls(schemas_);
        break;
      case CallMarks::Kind::kXml:
        call_ = MakeXmlCall(schemas_);
        break;
      case CallMarks::Kind::kNamed:
        call_ = MakeNamedCall(schemas_);
        break;
      case CallMarks::Kind::kGemma:
        call_ = MakeGemmaCall();
        break;
      case CallMarks::Kind::kKeyed:
        call_ = MakeKeyedCalls(schemas_);
        break;
      case CallMarks::Kind::kPython:
        call_ = MakePythonCalls(schemas_);
        break;
      case CallMarks::Kind::kSections:
        call_ = MakeSectionCalls(marks.sections);
        break;
    }
    mode_ = Mode::kCall;
  }

  bool AdvanceCall(ChatDelta& delta) {
    for (size_t i = 0; i < pending_.size(); ++i) {
      raw_ += pending_[i];
      const CallParser::State state = call_->Put(pending_[i], *writer_);
      if (state == CallParser::State::kMore) {
        if (call_->begun()) raw_.clear();
        continue;
      }
      pending_.erase(0, i + 1);
      if (state == CallParser::State::kDone) {
        called_ = true;
        mode_ = Mode::kClosing;
      } else {
        EmitRaw(delta);
        mode_ = Mode::kContent;
      }
      return true;
    }
    pending_.clear();
    return false;
  }

  // Marks and text of what was no call.
  void EmitRaw(ChatDelta& delta) {
    if (raw_.find_first_not_of(kSpaces) == raw_.npos) return;
    delta.content += raw_;
    trims_ = false;
  }

  bool AdvanceClosing(bool end) {
    const size_t at = pending_.find_first_not_of(std::string(kSpaces) + current_->separators);
    if (at == pending_.npos) return false;
    const std::string_view rest = std::string_view(pending_).substr(at);
    const std::string_view close = current_->close;
    trims_ = true;
    if (!close.empty() && rest.starts_with(close)) {
      pending_.erase(0, at + close.size());
      mode_ = Mode::kContentStart;
    } else if (!close.empty() && close.starts_with(rest) && !end) {
      return false;
    } else if (!current_->separators.empty() && rest[0] == '{') {
      StartCall(*current_, at, at);
    } else {
      mode_ = Mode::kContentStart;
    }
    return true;
  }

  const FamilyMarks marks_;
  CallWriter* writer_;
  const ToolSchemas* schemas_;
  Mode mode_ = Mode::kStart;
  std::string pending_;  // not yet decided upon
  std::string raw_;      // all of a call that did not begin yet
  bool in_reasoning_ = false;
  bool trims_ = false;   // blanks that come next are no content
  bool called_ = false;  // a call has ended
  const CallMarks* current_ = nullptr;
  std::unique_ptr<CallParser> call_;
};

}  // namespace

size_t PartialMark(std::string_view text, std::string_view mark) {
  if (mark.empty()) return 0;
  for (size_t n = std::min(mark.size() - 1, text.size()); n > 0; --n) {
    if (text.ends_with(mark.substr(0, n))) return n;
  }
  return 0;
}

std::unique_ptr<ChatOutputParser> MakeTaggedParser(FamilyMarks marks, bool inside_reasoning,
                                                   CallWriter* writer, const ToolSchemas* schemas) {
  return std::make_unique<TaggedParser>(std::move(marks), inside_reasoning, writer, schemas);
}

}  // namespace sluice
