#include "src/text/jinja/jinja.h"

#include "src/text/jinja/interpreter.h"
#include "src/text/jinja/parser.h"

namespace sluice::jinja {

namespace {

constexpr size_t kMaxSourceBytes = size_t{1} << 20;

}  // namespace

Template::Template(std::unique_ptr<const Program> program, const Limits& limits)
    : program_(std::move(program)), limits_(limits) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::Parse(std::string_view source, const Limits& limits) {
  if (source.size() > kMaxSourceBytes) {
    return Status(StatusCode::kUnsupported, "the template has " + std::to_string(source.size()) +
                                                " bytes, more than " +
                                                std::to_string(kMaxSourceBytes));
  }
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  auto program = std::make_unique<Program>();
  RETURN_IF_ERROR(Parser(std::move(tokens), *program).ParseProgram());
  return Template(std::move(program), limits);
}

Result<std::vector<ChatPart>> Template::Render(const boost::json::object& variables,
                                               const RenderOptions& options) const {
  Interpreter interpreter(*program_, limits_, options);
  ASSIGN_OR_RETURN(const Text text, interpreter.Run(variables));
  std::vector<ChatPart> parts;
  size_t from = 0;
  for (const Text::Run& run : text.runs()) {
    parts.push_back({text.bytes().substr(from, run.end - from), !run.content});
    from = run.end;
  }
  return parts;
}

}  // namespace sluice::jinja
