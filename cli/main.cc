// The sluice program: picks the subcommand and hands over.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "src/base/printable.h"
#include "src/machine/simd_target.h"

namespace sluice {
namespace {

// Flags whose value may be any text, also one that begins with a dash.
bool TakesText(std::string_view flag) {
  for (std::string_view f :
       {"-p", "--prompt", "-r", "--stop", "--reverse-prompt", "--system", "-sys"}) {
    if (flag == f) return true;
  }
  return false;
}

// llama.cpp writes some long names with one dash, which CLI11 would take for a row of short ones:
// those known here get a second dash, others are refused. "-5" and "-n5" are values and short
// flags.
Result<std::vector<std::string>> Arguments(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  std::vector<std::string> args;
  for (size_t i = 0; i < given.size(); ++i) {
    std::string a = given[i];
    const auto letter = [&](size_t at) {
      return at < a.size() && std::isalpha(static_cast<unsigned char>(a[at]));
    };
    const bool word = a[0] == '-' && letter(1) && letter(2);
    if (word && !(i > 0 && TakesText(given[i - 1]))) {
      const std::string_view name = std::string_view(a).substr(0, a.find('='));
      bool known = false;
      for (std::string_view k : {"-ngl", "-tb", "-ctk", "-ctv", "-sys"}) known |= name == k;
      if (!known) {
        return Status(StatusCode::kInvalidArgument,
                      "unknown flag " + Printable(a) + "; sluice COMMAND --help lists the flags" +
                          (name == "-hf" ? "; to fetch a model: sluice pull hf:OWNER/REPO" : ""));
      }
      a.insert(0, 1, '-');
    }
    args.push_back(std::move(a));
  }
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  return args;
}

// CLI11's message as one line of ours.
int ReportUsage(const CLI::App& app, const CLI::ParseError& e) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "" : chosen.front()->get_name();
  std::string message = e.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  message += "; see sluice " + (command.empty() ? command : command + " ") + "--help";
  return ReportError(command, Status(StatusCode::kInvalidArgument, message));
}

int Main(int argc, char** argv) {
  CLI::App app("sluice: large language models on CPUs, near the machine's limit, and showing it");
  app.name("sluice");
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "sluice COMMAND --help shows the flags of a command and an example.\n"
      "Example:\n  sluice run -p \"The capital of France is\"");
  int exit_code = kExitOk;
  for (auto add :
       {AddRun, AddChat, AddEval, AddPerplexity, AddTokenize, AddInspect, AddModels, AddPull}) {
    add(app, &exit_code);
  }
  if (Status s = ChooseSimdTargetFromEnvironment(); !s.ok()) return ReportError("", s);
  Result<std::vector<std::string>> arguments = Arguments(argc, argv);
  if (!arguments.ok()) return ReportError("", arguments.status());
  if (arguments->empty()) arguments->push_back("--help");
  try {
    app.parse(*std::move(arguments));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    return ReportUsage(app, e);
  }
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && exit_code == kExitOk) {
    const Status lost(StatusCode::kIo, "standard output: cannot write all of the result");
    return ReportError(app.get_subcommands().front()->get_name(), lost);
  }
  return exit_code;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of the write, with its fallback
  return sluice::Main(argc, argv);
}
