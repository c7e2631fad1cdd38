// sluice template: what a model's chat template makes of a request.
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdio>
#include <ctime>

#include "cli/command.h"
#include "cli/model_path.h"
#include "src/file/gguf.h"
#include "src/text/chat_template.h"
#include "src/text/jinja/jinja.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr char kRequestHelp[] =
    "The request is an object with messages, tools, add_generation_prompt, extra (more "
    "variables), "
    "bos_token, eos_token and now (\"2024-07-26 12:34:56\", for strftime_now); or with vars, "
    "which "
    "become the variables as they are. What is printed is the prompt, byte for byte.\n";

Result<json::object> ReadRequest() {
  ASSIGN_OR_RETURN(const std::string text, ReadAll("-"));
  json::parse_options options;
  options.max_depth = 512;
  json::error_code error;
  json::value value = json::parse(text, error, {}, options);
  if (error) {
    return Status(
        StatusCode::kInvalidArgument,
        "standard input: expected a JSON object, found what is no JSON: " + error.message());
  }
  if (!value.is_object()) {
    return Status(StatusCode::kInvalidArgument, "standard input: expected a JSON object");
  }
  return std::move(value.as_object());
}

// "2024-07-26 12:34:56", also with a T between, or without the time.
Result<std::tm> ParseTime(const json::value& value) {
  std::tm time{};
  const std::string text = value.is_string() ? std::string(value.get_string()) : std::string();
  int seconds = 0;
  const int found = std::sscanf(text.c_str(), "%4d-%2d-%2d%*1[ T]%2d:%2d:%2d", &time.tm_year,
                                &time.tm_mon, &time.tm_mday, &time.tm_hour, &time.tm_min, &seconds);
  time.tm_sec = seconds;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  std::tm copy = time;
  // Fills in the day of the week and of the year; it must not change the rest.
  if (found < 3 || timegm(&copy) == -1 || copy.tm_mday != time.tm_mday ||
      copy.tm_mon != time.tm_mon || copy.tm_hour != time.tm_hour || copy.tm_min != time.tm_min) {
    return Status(StatusCode::kInvalidArgument,
                  "now: expected a time like \"2024-07-26 12:34:56\"");
  }
  return copy;
}

bool IsGiven(const json::object& request, std::string_view key) {
  const json::value* value = request.if_contains(key);
  return value != nullptr && !value->is_null();
}

Result<json::object> Variables(const json::object& request, const Gguf* gguf) {
  if (const json::value* vars = request.if_contains("vars"); vars != nullptr) {
    if (!vars->is_object()) return Status(StatusCode::kInvalidArgument, "vars: expected an object");
    return vars->get_object();
  }
  json::object variables;
  for (const char* key : {"messages", "tools", "documents"}) {
    const json::value* value = request.if_contains(key);
    variables[key] = value == nullptr ? json::value() : *value;
  }
  if (variables["messages"].is_null()) variables["messages"] = json::array();
  const json::value* prompt = request.if_contains("add_generation_prompt");
  variables["add_generation_prompt"] = prompt == nullptr ? json::value(false) : *prompt;
  if (gguf != nullptr) AddTokenVariables(*gguf, variables);
  for (const char* key : {"bos_token", "eos_token"}) {
    const json::value* value = request.if_contains(key);
    if (value == nullptr) continue;
    if (value->is_null()) {
      variables.erase(key);
    } else {
      variables[key] = *value;
    }
  }
  if (IsGiven(request, "extra")) {
    const json::value& extra = request.at("extra");
    if (!extra.is_object())
      return Status(StatusCode::kInvalidArgument, "extra: expected an object");
    for (const auto& entry : extra.get_object()) variables[entry.key()] = entry.value();
  }
  return variables;
}

Status Run(const std::string& name) {
  std::string source;
  std::unique_ptr<Gguf> gguf;
  ASSIGN_OR_RETURN(const json::object request, ReadRequest());
  if (name.ends_with(".jinja")) {
    ASSIGN_OR_RETURN(source, ReadAll(name));
  } else {
    ASSIGN_OR_RETURN(const std::string path, FindModel(name));
    ASSIGN_OR_RETURN(gguf, Gguf::Open(path));
    ASSIGN_OR_RETURN(source, ChatTemplateOf(*gguf, IsGiven(request, "tools")));
  }
  Result<jinja::Template> compiled = jinja::Template::Parse(source);
  if (!compiled.ok()) return compiled.status().Within(name);
  ASSIGN_OR_RETURN(const json::object variables, Variables(request, gguf.get()));
  jinja::RenderOptions options;
  if (IsGiven(request, "now")) {
    ASSIGN_OR_RETURN(options.now, ParseTime(request.at("now")));
  } else if (request.contains("vars")) {
    // Nothing but the request decides then. The day is the one that llama-3's templates fall back
    // to where there is no clock.
    ASSIGN_OR_RETURN(options.now, ParseTime(json::value("2024-07-26 12:34:56")));
  }
  const auto parts = compiled->Render(variables, options);
  // The request is at fault, or the template; no flag is.
  if (!parts.ok()) return Status(StatusCode::kUnsupported, parts.status().message());
  for (const ChatPart& part : *parts) std::fwrite(part.text.data(), 1, part.text.size(), stdout);
  return Status();
}

}  // namespace

void AddTemplate(CLI::App& app, int* exit_code) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("template", "What a chat template makes of a request (JSON on stdin)");
  AddModel(*command, name.get(), "A .gguf file, a name in the model folder, or a .jinja file")
      ->required();
  command->footer(std::string(kRequestHelp) +
                  "Example:\n  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}],\n"
                  "    \"add_generation_prompt\": true}' | sluice template model.gguf");
  command->callback([name, exit_code] {
    if (Status s = Run(*name); !s.ok()) *exit_code = ReportError("template", s);
  });
}

}  // namespace sluice
