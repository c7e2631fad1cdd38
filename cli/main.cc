// The sluice program: picks the subcommand and hands over.
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "src/machine/simd_target.h"

namespace sluice {
namespace {

// llama.cpp writes some long names with one dash, which CLI11 would take for a row of short ones.
std::vector<std::string> Arguments(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  for (std::string& a : args) {
    for (std::string_view known : {"-ngl", "-tb", "-ctk", "-sys"}) {
      if (a == known) a.insert(0, 1, '-');
    }
  }
  return {args.rbegin(), args.rend()};  // CLI11 takes them from the back
}

int Main(int argc, char** argv) {
  CLI::App app("sluice: large language models on CPUs, near the machine's limit, and showing it");
  app.name("sluice");
  app.set_version_flag("--version", SLUICE_VERSION);
  app.require_subcommand(1);
  app.footer("sluice COMMAND --help shows the flags of a command and an example.");
  int exit_code = kExitOk;
  for (auto add :
       {AddRun, AddChat, AddEval, AddPerplexity, AddTokenize, AddInspect, AddModels, AddPull}) {
    add(app, &exit_code);
  }
  if (Status s = ChooseSimdTargetFromEnvironment(); !s.ok()) return ReportError("", s);
  try {
    app.parse(Arguments(argc, argv));
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
