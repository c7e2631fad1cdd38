// sluice run: a prompt in, its continuation out, and how near the limit it ran.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/explain.h"
#include "cli/generate_flags.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/wrap.h"
#include "src/engine/engine.h"
#include "src/machine/energy.h"
#include "src/text/json_text.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

struct RunFlags {
  ModelFlags model;
  GenerateFlags generate;
  std::string prompt, file;
  bool has_prompt = false, parse_special = false, echo = false, json = false, explain = false;
};

// -p, else -f, else stdin. Of a file or stdin, one final newline is not part of the prompt.
Result<std::string> ReadPrompt(const RunFlags& f) {
  if (f.has_prompt) return f.prompt;
  if (f.file.empty() && isatty(STDIN_FILENO)) {
    return Status(StatusCode::kInvalidArgument,
                  "no prompt: give -p TEXT, -f FILE, or text on standard input");
  }
  ASSIGN_OR_RETURN(std::string text, ReadAll(f.file.empty() ? "-" : f.file));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void WriteOut(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Result<int> Run(RunFlags& f) {
  if (f.generate.ReadsStdin() && !f.has_prompt && (f.file.empty() || f.file == "-")) {
    return Status(
        StatusCode::kInvalidArgument,
        "standard input cannot be both the grammar and the prompt: give -p TEXT or -f FILE");
  }
  RETURN_IF_ERROR(f.generate.Prepare());
  ASSIGN_OR_RETURN(const std::string prompt, ReadPrompt(f));
  if (prompt.empty()) {
    Say("run", "the prompt is empty; the text starts from BOS alone");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, LoadRunner("run", f.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                   Tokenizer::Load(runner->model().gguf()));
  ASSIGN_OR_RETURN(Request request, f.generate.MakeRequest(*tokenizer, runner->config().vocab));
  request.prompt =
      tokenizer->Encode(prompt, {.add_special = true, .parse_special = f.parse_special});
  if (!f.json) request.on_token = [](const TokenEvent& token) { WriteOut(token.text); };

  Engine engine(*runner, *tokenizer);
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(Sequence* const sequence, engine.Add(std::move(request)));
  if (f.echo && !f.json) WriteOut(prompt);
  InterruptGuard interrupt;
  EnergyMeter energy;
  for (bool more = true; more;) {
    if (interrupt.interrupted()) sequence->Cancel();
    ASSIGN_OR_RETURN(more, engine.Step());
  }

  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  std::optional<double> joules;
  if (energy.available()) joules = energy.Joules();
  RunReport report = MakeReport(*runner, sequence->stats(), f.explain || f.json);
  report.joules = joules;
  report.wall_s = wall.count();
  if (f.json) {
    boost::json::object o = ReportJson(report);
    o["seed"] = sequence->request().sampler.seed;
    o["text"] = ReplaceBadUtf8(sequence->text());
    o["finish_reason"] = FinishReasonName(sequence->finish_reason());
    WriteOut(ToJson(o) + "\n");
  } else {
    WriteOut("\n");
    PrintReportLine(report);
    if (f.explain) {
      const std::string text = Explanation(report, Ink::For(stderr), ColumnsOf(stderr));
      std::fputs(text.c_str(), stderr);
    }
  }
  return interrupt.interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

void AddRun(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* c = app.add_subcommand("run", "Continue a prompt");
  flags->model.AddTo(*c);
  auto* prompt = c->add_option("-p,--prompt", flags->prompt, "The text to continue");
  c->add_option("-f,--file", flags->file, "File that holds the prompt; - is stdin")
      ->type_name("FILE")
      ->excludes(prompt);
  c->add_flag("--parse-special", flags->parse_special,
              "Text of control tokens in the prompt becomes those tokens");
  c->add_flag("--echo", flags->echo, "Print the prompt before its continuation");
  c->add_flag("--explain", flags->explain,
              "After the closing line, where the time went and what would make it less");
  c->add_flag("--json", flags->json, "One JSON object instead of the text and the closing line");
  flags->generate.AddTo(*c);
  c->footer(
      "MODEL defaults to gemma-3-270m. Text goes to stdout, the closing line to stderr.\n"
      "Example:\n  sluice run -p \"The capital of France is\" -n 32 --temp 0");
  c->callback([flags, prompt, exit_code] {
    flags->has_prompt = prompt->count() > 0;
    const Result<int> code = Run(*flags);
    *exit_code = code.ok() ? *code : ReportError("run", code.status());
  });
}

}  // namespace sluice
