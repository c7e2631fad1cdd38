#include "cli/help.h"

#include <algorithm>
#include <vector>

#include "cli/wrap.h"

namespace sluice {
namespace {

constexpr size_t kNameColumns = 24;  // of flags; a longer name has its text below it

// "N" of "UINT:INT in [1 - 65536]": ranges are said by the error that asks for them.
std::string ValueWord(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string word = type.substr(0, type.find(':'));
  return word == "INT" || word == "UINT" || word == "FLOAT" ? "N" : word;
}

std::string Names(const CLI::Option& option) {
  std::string names;
  const auto add = [&](const char* dashes, const std::string& name) {
    names += (names.empty() ? "" : ", ") + std::string(dashes) + name;
  };
  for (const std::string& name : option.get_snames()) add("-", name);
  for (const std::string& name : option.get_lnames()) add("--", name);
  return option.get_type_size() == 0 ? names : names + " " + ValueWord(option);
}

std::string Description(const CLI::Option& option) {
  std::string text = option.get_description();
  std::string usual = option.get_default_str();
  if (usual.starts_with('[') && usual.ends_with(']')) usual = usual.substr(1, usual.size() - 2);
  if (!usual.empty()) text += " (default " + usual + ")";
  if (option.get_required() && option.nonpositional()) text += " (required)";
  if (!option.get_envname().empty()) text += " (or $" + option.get_envname() + ")";
  return text;
}

std::string Paragraphs(const std::string& text, size_t columns) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    out += (line.starts_with(' ') ? line : Wrapped(line, 0, columns)) + "\n";
    at = end + 1;
  }
  return out;
}

// "  name   what it does"
std::string Row(const std::string& name, const std::string& text, size_t name_columns,
                size_t columns) {
  constexpr size_t kMargin = 2, kDeeper = 6;
  const size_t indent = kMargin + name_columns;
  std::string row = std::string(kMargin, ' ') + Wrapped(name, kDeeper, columns);
  if (text.empty()) return row + "\n";
  const size_t used = TextColumns(row);
  row += used + 2 > indent ? "\n" + std::string(indent, ' ') : std::string(indent - used, ' ');
  return row + Wrapped(text, indent, columns) + "\n";
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode) const {
  const auto options = [app](auto&& wanted) {
    return app->get_options([&](const CLI::Option* o) { return wanted(*o); });
  };
  const auto positional = options([](const CLI::Option& o) { return o.get_positional(); });
  const auto commands = app->get_subcommands([](const CLI::App*) { return true; });

  std::string usage = "Usage: " + name + " [OPTIONS]";
  for (const CLI::Option* o : positional) {
    const std::string word = o->get_name(true) + (o->get_expected_max() > 1 ? "..." : "");
    usage += o->get_required() ? " " + word : " [" + word + "]";
  }
  if (!commands.empty()) usage += " COMMAND";
  std::string out = Paragraphs(app->get_description() + "\n" + usage, columns_);

  if (!positional.empty()) out += "\n";
  for (const CLI::Option* o : positional) {
    out += Row(o->get_name(true), Description(*o), kNameColumns, columns_);
  }
  for (const std::string& group : app->get_groups()) {
    const auto flags =
        options([&](const CLI::Option& o) { return o.get_group() == group && o.nonpositional(); });
    if (group.empty() || flags.empty()) continue;
    out += "\n" + group + ":\n";
    for (const CLI::Option* o : flags) {
      out += Row(Names(*o), Description(*o), kNameColumns, columns_);
    }
  }
  if (!commands.empty()) out += "\nCommands:\n";
  size_t longest = 0;
  for (const CLI::App* c : commands) longest = std::max(longest, c->get_name().size());
  for (const CLI::App* c : commands) {
    out += Row(c->get_name(), c->get_description(), longest + 2, columns_);
  }
  if (!app->get_footer().empty()) out += "\n" + Paragraphs(app->get_footer(), columns_);
  return out;
}

}  // namespace sluice
