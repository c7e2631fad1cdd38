// The sluice program: picks the subcommand and hands over.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command.h"

int main(int argc, char** argv) {
  CLI::App app("sluice: large language models on CPUs, near the machine's limit, and showing it");
  app.set_version_flag("--version", SLUICE_VERSION);
  app.require_subcommand(1);
  app.fallthrough(false);
  int exit_code = sluice::kExitOk;
  sluice::AddEval(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? sluice::kExitOk : sluice::kExitUsage;
  }
  return exit_code;
}
