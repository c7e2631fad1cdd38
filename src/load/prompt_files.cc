// The files that ParsePrompts and ParseTrace read.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "src/base/printable.h"
#include "src/load/prompts.h"

namespace sluice::load {

namespace json = boost::json;

namespace {

constexpr size_t kMostLines = 1 << 22;

Status Wrong(const std::string& name, size_t line, const std::string& expected,
             const std::string& found) {
  return Status(StatusCode::kInvalidArgument, name + ": line " + std::to_string(line) +
                                                  ": expected " + expected + ", found " +
                                                  Printable(found));
}

// Calls f(number, line) for each line that is not blank.
Status ForLines(const std::string& name, const std::string& text,
                const std::function<Status(size_t, const std::string&)>& f) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (++number > kMostLines) {
      return Status(StatusCode::kInvalidArgument,
                    name + ": more than " + std::to_string(kMostLines) + " lines");
    }
    if (line.find_first_not_of(" \t") != std::string::npos) RETURN_IF_ERROR(f(number, line));
  }
  return Status();
}

const std::string kNoText;

std::string String(const json::object& o, std::string_view key) {
  const json::value* v = o.if_contains(key);
  return v != nullptr && v->is_string() ? std::string(v->get_string()) : kNoText;
}

// A whole number from 1 to Lengths::kMost, or 0 where there is none.
size_t Count(const json::object& o, std::string_view key) {
  const json::value* v = o.if_contains(key);
  if (v == nullptr || !v->is_int64()) return 0;
  const int64_t n = v->get_int64();
  return n > 0 && n <= static_cast<int64_t>(Lengths::kMost) ? static_cast<size_t>(n) : 0;
}

LoadPrompt PromptOf(const json::object& o) {
  LoadPrompt prompt;
  prompt.text = String(o, "prompt");
  if (prompt.text.empty()) prompt.text = String(o, "text");
  if (const json::value* messages = o.if_contains("messages"); messages && messages->is_array()) {
    prompt.messages = messages->get_array();
    // For dialects that have no messages: what was said last.
    for (const json::value& m : prompt.messages) {
      if (m.is_object() && prompt.text.empty()) prompt.text = String(m.get_object(), "content");
    }
  }
  if (const json::value* turns = o.if_contains("conversations"); turns && turns->is_array()) {
    for (const json::value& turn : turns->get_array()) {
      if (turn.is_object() && prompt.text.empty()) prompt.text = String(turn.get_object(), "value");
    }
  }
  for (const char* key : {"output_tokens", "output_tokens_count", "max_tokens"}) {
    if (prompt.output_tokens == 0) prompt.output_tokens = Count(o, key);
  }
  return prompt;
}

}  // namespace

Result<std::vector<LoadPrompt>> ParsePrompts(const std::string& name, const std::string& text) {
  std::vector<LoadPrompt> prompts;
  RETURN_IF_ERROR(ForLines(name, text, [&](size_t number, const std::string& line) {
    boost::system::error_code error;
    const json::value v = json::parse(line, error);
    const LoadPrompt prompt = !error && v.is_object() ? PromptOf(v.get_object()) : LoadPrompt();
    if (prompt.text.empty()) {
      return Wrong(name, number, "{\"prompt\": TEXT} or {\"messages\": [...]}", line);
    }
    prompts.push_back(prompt);
    return Status();
  }));
  if (prompts.empty()) return Status(StatusCode::kInvalidArgument, name + ": has no prompt");
  return prompts;
}

Result<std::vector<TraceEntry>> ParseTrace(const std::string& name, const std::string& text) {
  std::vector<TraceEntry> trace;
  RETURN_IF_ERROR(ForLines(name, text, [&](size_t number, const std::string& line) {
    TraceEntry entry;
    boost::system::error_code error;
    const json::value v = json::parse(line, error);
    const json::value* time = &v;
    double unit = 1;
    if (!error && v.is_object()) {
      time = v.get_object().if_contains("timestamp");
      unit = 1e-3;
      for (const char* key : {"input_length", "output_length"}) {
        const json::value* length = v.get_object().if_contains(key);
        if (length == nullptr || Count(v.get_object(), key) > 0) continue;
        return Wrong(name, number,
                     std::string(key) + " from 1 to " + std::to_string(Lengths::kMost),
                     json::serialize(*length));
      }
      entry.prompt_tokens = Count(v.get_object(), "input_length");
      entry.output_tokens = Count(v.get_object(), "output_length");
      const json::value* ids = v.get_object().if_contains("hash_ids");
      if (ids != nullptr && ids->is_array()) {
        for (const json::value& id : ids->get_array()) {
          if (id.is_int64()) entry.blocks.push_back(static_cast<uint32_t>(id.get_int64()));
        }
      }
    }
    const bool number_found = !error && time != nullptr && time->is_number();
    if (number_found) entry.due_s = unit * time->to_number<double>();
    const double before = trace.empty() ? 0 : trace.back().due_s;
    if (!number_found || !(entry.due_s >= before) || !std::isfinite(entry.due_s)) {
      return Wrong(name, number,
                   "seconds, or {\"timestamp\": MILLISECONDS, ...}, not before those above", line);
    }
    trace.push_back(std::move(entry));
    return Status();
  }));
  if (trace.empty()) return Status(StatusCode::kInvalidArgument, name + ": has no time");
  const double first = trace.front().due_s;
  for (TraceEntry& entry : trace) entry.due_s -= first;
  return trace;
}

}  // namespace sluice::load
