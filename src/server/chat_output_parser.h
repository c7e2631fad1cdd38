// The two ways families lay out an answer: text with marked stretches, and
// harmony's channels. Used by ChatOutput alone; one thread.
#ifndef SLUICE_SRC_SERVER_CHAT_OUTPUT_PARSER_H_
#define SLUICE_SRC_SERVER_CHAT_OUTPUT_PARSER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/server/chat_output_calls.h"

namespace sluice {

class ChatOutputParser {
 public:
  virtual ~ChatOutputParser() = default;
  virtual void Push(std::string_view text, ChatDelta& delta) = 0;
  virtual void Finish(ChatDelta& delta) = 0;
};

// How one family marks its calls.
struct CallMarks {
  enum class Kind {
    kJson,
    kBareJson,
    kJsonOrXml,
    kXml,
    kNamed,
    kGemma,
    kSections,
    kKeyed,
    kPython
  };
  Kind kind = Kind::kJson;
  std::string open;        // empty: only at the very start of the answer (kBareJson)
  std::string close;       // empty: the call ends by itself
  std::string separators;  // between objects that share one open mark; empty: there is one
  bool keep_open = false;  // the mark is the beginning of the call's own text
  SectionMarks sections;
};

struct FamilyMarks {
  bool harmony = false;
  bool short_ids = false;
  std::string think_open, think_close;  // empty: no reasoning
  std::vector<CallMarks> calls;
  std::vector<std::string> dropped;  // marks around the answer itself
};

// From the marks that a template writes; with tools but no known marks, those most models know.
FamilyMarks FindFamily(std::string_view template_source);

std::unique_ptr<ChatOutputParser> MakeTaggedParser(FamilyMarks marks, bool inside_reasoning,
                                                   CallWriter* writer, const ToolSchemas* schemas);
std::unique_ptr<ChatOutputParser> MakeHarmonyParser(bool reasoning, bool tools, CallWriter* writer);

// The length of the longest end of `text` that `mark` goes on from.
size_t PartialMark(std::string_view text, std::string_view mark);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_CHAT_OUTPUT_PARSER_H_
