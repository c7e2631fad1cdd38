// The sluice program: picks the subcommand and hands over.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/wrap.h"
#include "src/base/printable.h"
#include "src/machine/simd_target.h"

namespace sluice {
namespace {

// CLI11's message as one line of ours.
int ReportUsage(const CLI::App& app, const CLI::ParseError& e) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "" : chosen.front()->get_name();
  std::string message = e.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  message += "; see sluice " + (command.empty() ? command : command + " ") + "--help";
  return ReportError(command, Status(StatusCode::kInvalidArgument, message));
}

// `sluice help [COMMAND]` is --help; a word that is no command is named.
Status FindCommand(const CLI::App& app, std::vector<std::string>* given) {
  if (given->empty()) given->push_back("--help");
  if (given->front() == "help") {
    if (given->size() > 2) {
      return Status(StatusCode::kInvalidArgument,
                    "help: expected one command, found " + std::to_string(given->size() - 1));
    }
    given->erase(given->begin());
    given->push_back("--help");
  }
  const std::string& word = given->front();
  const auto is_word = [&](const CLI::App* command) { return command->get_name() == word; };
  if (word.starts_with("-") || !app.get_subcommands(is_word).empty()) return Status();
  return Status(StatusCode::kInvalidArgument,
                "no command " + Printable(word) + "; sluice --help lists them");
}

// Output goes to a buffer: here it is seen whether all of it arrived. What a command found out
// before matters less than that its answer is not whole.
int Finish(const std::string& command, int exit_code) {
  const bool whole = std::cout.flush().good() && std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (whole) return exit_code;
  return ReportError(command,
                     Status(StatusCode::kIo, "standard output: cannot write all of the result"));
}

// A NaN is between any two limits, so no range keeps it out.
void RefuseNan(CLI::App& app) {
  const CLI::Validator number(
      [](std::string& value) {
        double parsed = 0;
        const bool nan = CLI::detail::lexical_cast(value, parsed) && std::isnan(parsed);
        return nan ? "expected a number, found " + Printable(value) : std::string();
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name().find("FLOAT") != std::string::npos) option->check(number);
  }
  for (CLI::App* command : app.get_subcommands({})) RefuseNan(*command);
}

int Main(int argc, char** argv) {
  CLI::App app("sluice: large language models on CPUs, near the machine's limit, and showing it");
  app.name("sluice");
  app.formatter(std::make_shared<HelpFormatter>(ColumnsOf(stdout)));
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "sluice help COMMAND shows the flags of a command and an example.\n"
      "Example:\n  sluice run -p \"The capital of France is\"");
  int exit_code = kExitOk;
  for (auto add :
       {AddRun, AddChat, AddServe, AddBench, AddLoad, AddEval, AddPerplexity, AddTokenize,
        AddTemplate, AddInspect, AddDoctor, AddPlan, AddMachine, AddModels, AddPull, AddTop}) {
    add(app, &exit_code);
  }
  RefuseNan(app);
  std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
  const bool asks = !given.empty() && (given[0] == "help" || given[0].starts_with("-"));
  if (Status s = ChooseSimdTargetFromEnvironment(); !s.ok() && !asks) return ReportError("", s);
  if (Status s = FindCommand(app, &given); !s.ok()) return ReportError("", s);
  Result<std::vector<std::string>> arguments = CommandArguments(given);
  if (!arguments.ok()) return ReportError("", arguments.status());
  try {
    app.parse(*std::move(arguments));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return Finish("", app.exit(e));  // --help, --version
    return ReportUsage(app, e);
  }
  return Finish(app.get_subcommands().front()->get_name(), exit_code);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of the write, with its fallback
  return sluice::Main(argc, argv);
}
