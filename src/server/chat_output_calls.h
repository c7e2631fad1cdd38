// Calls of tools as the families write them, read a character at a time, so that
// what comes out never depends on how the text was cut. Used by ChatOutput
// alone; one thread.
#ifndef SLUICE_SRC_SERVER_CHAT_OUTPUT_CALLS_H_
#define SLUICE_SRC_SERVER_CHAT_OUTPUT_CALLS_H_

#include <boost/json/array.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/server/chat_output.h"

namespace sluice {

// Numbers the calls of one answer and puts them into deltas.
class CallWriter {
 public:
  explicit CallWriter(bool short_ids) : short_ids_(short_ids) {}

  void set_delta(ChatDelta* delta) { delta_ = delta; }
  void Begin(std::string name);
  void Arguments(std::string_view text);  // of the call begun last
  size_t count() const { return count_; }

 private:
  const bool short_ids_;  // Mistral's templates refuse ids that are not 9 letters
  ChatDelta* delta_ = nullptr;
  size_t count_ = 0;
};

// What the tools offered say of their arguments.
class ToolSchemas {
 public:
  explicit ToolSchemas(boost::json::array tools) : tools_(std::move(tools)) {}

  bool empty() const { return tools_.empty(); }
  bool Has(std::string_view tool) const { return Function(tool) != nullptr; }
  // "string", "integer" ...; empty: not known, or several.
  std::string TypeOf(std::string_view tool, std::string_view argument) const;

 private:
  const boost::json::object* Function(std::string_view name) const;
  boost::json::array tools_;
};

std::string QuotedJson(std::string_view text);
// A value that was written without quotes, as JSON of its type ("": whatever it looks like).
std::string TypedJson(const std::string& text, const std::string& type);

class CallParser {
 public:
  enum class State { kMore, kDone, kFailed };
  virtual ~CallParser() = default;
  // kFailed: this is no call; nothing of it went to the writer.
  virtual State Put(char c, CallWriter& writer) = 0;
  // Whether the call that is being read went to the writer: it cannot become content any more.
  virtual bool begun() const = 0;
};

// Finds the end of one JSON value that begins with a bracket or a quote.
class JsonSpan {
 public:
  bool Put(char c);  // true: `c` was its last character
  void Reset() { *this = JsonSpan(); }

 private:
  size_t depth_ = 0;
  bool in_string_ = false, escaped_ = false;
};

// {"name": ..., "arguments": {...}} or a list of them. `strict`: only what cannot be meant as plain
// JSON, a tool's name followed by an object of arguments.
std::unique_ptr<CallParser> MakeJsonCalls(bool strict, const ToolSchemas* schemas);
// <function=name><parameter=key>value</parameter></function>, from "<function=" on.
std::unique_ptr<CallParser> MakeXmlCall(const ToolSchemas* schemas);
// The one or the other, by its first character.
std::unique_ptr<CallParser> MakeJsonOrXmlCalls(const ToolSchemas* schemas);
// name[ARGS]{...}, or a JSON list: Mistral.
std::unique_ptr<CallParser> MakeNamedCall(const ToolSchemas* schemas);
std::unique_ptr<CallParser> MakeGemmaCall();
// name, then <arg_key>key</arg_key><arg_value>value</arg_value>, up to </tool_call>; or JSON: GLM.
std::unique_ptr<CallParser> MakeKeyedCalls(const ToolSchemas* schemas);
// [name(key="value", ...), ...], values as Python writes them; or a JSON list: LFM2.
std::unique_ptr<CallParser> MakePythonCalls(const ToolSchemas* schemas);

// Calls in marks of their own inside a section: DeepSeek, Kimi.
struct SectionMarks {
  std::string begin, separator, end, section_end;
};
std::unique_ptr<CallParser> MakeSectionCalls(const SectionMarks& marks);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_CHAT_OUTPUT_CALLS_H_
