// Chat templates: Jinja as the tools that ship models with templates set it up
// (trim_blocks, lstrip_blocks, break and continue, {% generation %}, Python's
// values and their printing), interpreted in bounded steps and memory.
//
// A template sees the variables of a request and nothing else: there are no
// host objects, no files, no other templates. Every string knows which of its
// bytes are the request's ("content") and which the template's ("frame"), so
// that what people wrote never turns into control tokens.
#ifndef SLUICE_SRC_TEXT_JINJA_JINJA_H_
#define SLUICE_SRC_TEXT_JINJA_JINJA_H_

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/text/chat_part.h"

namespace sluice::jinja {

// What one rendering may use. A template that wants more fails with an error.
struct Limits {
  uint64_t steps = 50'000'000;              // nodes evaluated, elements visited
  size_t memory_bytes = size_t{512} << 20;  // all values that are made, output included
  size_t text_bytes = size_t{64} << 20;     // one string
  size_t range_items = 100'000;             // as Jinja's sandbox
  int call_depth = 100;                     // macros and recursive loops inside each other
  int tree_depth = 1200;  // statements and expressions inside each other, through macros too
  int value_depth = 200;  // lists and dicts inside each other
};

struct RenderOptions {
  std::optional<std::tm> now;  // what strftime_now answers; by default the local time
  // Values of the key "role" that count as frame: words that the caller chose, for templates which
  // put a control token together from the role. Anything else of the request is content.
  std::vector<std::string> frame_roles;
};

struct Program;  // the syntax tree

// Immutable, any thread.
class Template {
 public:
  // kUnsupported with the line where the source is no template, or uses what is not there: other
  // templates (include, extends, import), unknown tags, filters, tests.
  static Result<Template> Parse(std::string_view source, const Limits& limits = {});
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // kInvalidArgument: the template refused the request (the message of raise_exception as it is),
  // or an error in it ("line 3: ..."). Of `variables`, bos_token and eos_token are frame; `tools`,
  // `documents` and `messages` have no defaults here.
  Result<std::vector<ChatPart>> Render(const boost::json::object& variables,
                                       const RenderOptions& options = {}) const;

 private:
  explicit Template(std::unique_ptr<const Program> program, const Limits& limits);
  std::unique_ptr<const Program> program_;
  Limits limits_;
};

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_JINJA_H_
