// What the subcommands share: how one is added to the command line, how errors
// become one line and an exit code, and the flags that choose and load a model.
// One file per subcommand; each Add... registers itself with CLI11.
#ifndef SLUICE_CLI_COMMAND_H_
#define SLUICE_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "src/engine/model_runner.h"

namespace sluice {

// Exit codes, as documented in the README.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,   // a file, a model, the system
  kExitUsage = 2,     // a flag or its value
  kExitWarnings = 3,  // `sluice doctor` found warnings and no problem
  kExitInterrupted = 130,
};

void AddServe(CLI::App& app, int* exit_code);
void AddRun(CLI::App& app, int* exit_code);
void AddChat(CLI::App& app, int* exit_code);
void AddBench(CLI::App& app, int* exit_code);
void AddLoad(CLI::App& app, int* exit_code);
void AddEval(CLI::App& app, int* exit_code);
void AddTokenize(CLI::App& app, int* exit_code);
void AddTemplate(CLI::App& app, int* exit_code);
void AddPerplexity(CLI::App& app, int* exit_code);
void AddInspect(CLI::App& app, int* exit_code);
void AddDoctor(CLI::App& app, int* exit_code);
void AddMachine(CLI::App& app, int* exit_code);
void AddPlan(CLI::App& app, int* exit_code);
void AddModels(CLI::App& app, int* exit_code);
void AddPull(CLI::App& app, int* exit_code);
void AddTop(CLI::App& app, int* exit_code);

// "sluice COMMAND: text" on stderr: one line, which a terminal shows broken between words.
void Say(const std::string& command, const std::string& text);
// Says the message; the exit code that fits.
int ReportError(const std::string& command, const Status& status);

// MODEL, which may also be given as -m or --model.
CLI::Option* AddModel(CLI::App& command, std::string* model,
                      const char* help = "A .gguf file, or a name in the model folder");

// MODEL and the flags of how it is loaded; llama.cpp's names and short forms where it has one.
struct ModelFlags {
  std::string model;
  std::string weights = "auto";
  std::string huge_pages = "auto";
  std::string numa = "auto";
  bool mlock = false;
  std::string kv_type = "auto", value_type;  // value_type: of -ctv, which must not differ
  std::string activations = "int8";
  size_t context = 0;
  size_t chunk = 512;
  int threads = 0, threads_batch = 0;
  bool portable = false, relaxed = false;
  std::string gpu_layers, flash_attention;
  bool no_warmup = false, no_mmap = false, no_conversation = false;  // accepted and ignored

  void AddTo(CLI::App& command);
  Result<RunnerOptions> Options() const;
  // Says which of the given flags mean nothing here.
  void ReportIgnored(const std::string& command) const;

 private:
  Result<std::optional<KvType>> KeyAndValueType() const;

  CLI::Option* kv_option_ = nullptr;
};

// The file of the model; on a terminal a missing default model is offered for download.
Result<std::string> FindOrOffer(const std::string& name);
// Prints what a fallback was chosen for, line by line.
void ReportNotes(const std::string& command, const std::string& notes);
// Finds the model, loads it with a progress bar, says on stderr what a fallback was chosen for.
Result<std::unique_ptr<ModelRunner>> LoadRunner(const std::string& command,
                                                const ModelFlags& flags);

// Whole file, or stdin when `path` is "-".
Result<std::string> ReadAll(const std::string& path);

}  // namespace sluice
#endif  // SLUICE_CLI_COMMAND_H_
