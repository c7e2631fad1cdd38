// sluice chat: a conversation with a model that was trained for one, in the
// form of its own chat template.
#include <unistd.h>

#include <cstdio>

#include "cli/command.h"
#include "cli/generate_flags.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/model_path.h"
#include "cli/report.h"
#include "src/engine/engine.h"
#include "src/text/chat_format.h"

namespace sluice {
namespace {

struct ChatFlags {
  ModelFlags model;
  GenerateFlags generate;
  std::string system, prompt;
};

constexpr char kHelp[] =
    "  /clear  forget the conversation\n"
    "  /exit   leave (also Ctrl-D); Ctrl-C ends an answer\n";

void WriteOut(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// A conversation. What turns have in common is computed once: the engine keeps it.
class Chat {
 public:
  Chat(ModelRunner& runner, const Tokenizer& tokenizer, const ChatFormat& format,
       const ChatFlags& flags)
      : runner_(runner),
        tokenizer_(tokenizer),
        format_(format),
        flags_(flags),
        engine_(runner, tokenizer, {.prefix_cache = true}) {
    Clear();
  }

  void Clear() {
    messages_.clear();
    if (!flags_.system.empty()) messages_.push_back({"system", flags_.system});
  }

  // Streams the answer to `text`; a failed turn leaves the conversation as it was.
  Status Turn(const std::string& text) {
    messages_.push_back({"user", text});
    Status status = Answer();
    if (!status.ok()) messages_.pop_back();
    return status;
  }

 private:
  Status Answer() {
    ASSIGN_OR_RETURN(Request request,
                     flags_.generate.MakeRequest(tokenizer_, runner_.config().vocab));
    ASSIGN_OR_RETURN(request.prompt, format_.Encode(tokenizer_, messages_, true));
    request.on_token = [](const TokenEvent& token) { WriteOut(token.text); };
    if (sequence_ != nullptr) engine_.Remove(sequence_);
    sequence_ = nullptr;
    ASSIGN_OR_RETURN(sequence_, engine_.Add(std::move(request)));
    InterruptGuard interrupt;
    for (bool more = true; more;) {
      if (interrupt.interrupted()) sequence_->Cancel();
      ASSIGN_OR_RETURN(more, engine_.Step());
    }
    messages_.push_back({"assistant", sequence_->text()});
    WriteOut("\n");
    PrintReportLine(MakeReport(runner_, sequence_->stats(), false));
    return Status();
  }

  ModelRunner& runner_;
  const Tokenizer& tokenizer_;
  const ChatFormat& format_;
  const ChatFlags& flags_;
  Engine engine_;
  Sequence* sequence_ = nullptr;
  std::vector<ChatMessage> messages_;
};

// False: leave.
bool Command(const std::string& line, Chat& chat) {
  if (line == "/exit" || line == "/quit" || line == "/bye") return false;
  if (line == "/clear") {
    chat.Clear();
  } else {
    WriteOut(kHelp);
  }
  return true;
}

// Looks at the template before any weight is loaded.
Result<ChatFormat> DetectFormat(const std::string& model) {
  if (model.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "expected MODEL, one that has a chat template (the default model has none), such "
                  "as `sluice pull hf:Qwen/Qwen3-0.6B-GGUF:q8_0` fetches; found none");
  }
  ASSIGN_OR_RETURN(const std::string path, FindModel(model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Gguf> gguf, Gguf::Open(path));
  Result<ChatFormat> format = ChatFormat::Detect(*gguf);
  if (format.ok()) return format;
  return Status(format.status().code(),
                format.status().message() + ", such as `sluice pull hf:Qwen/Qwen3-0.6B-GGUF:q8_0`");
}

Status Run(ChatFlags& f) {
  if (f.generate.ReadsStdin() && f.prompt.empty()) {
    return Status(
        StatusCode::kInvalidArgument,
        "standard input cannot be both the grammar and the turns: give the grammar's file");
  }
  RETURN_IF_ERROR(f.generate.Prepare());
  ASSIGN_OR_RETURN(const ChatFormat format, DetectFormat(f.model.model));
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, LoadRunner("chat", f.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                   Tokenizer::Load(runner->model().gguf()));
  Chat chat(*runner, *tokenizer, format, f);
  if (!f.prompt.empty()) RETURN_IF_ERROR(chat.Turn(f.prompt));
  if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
    std::fprintf(stderr, "\033[2m%s, context %zu; /help lists the commands\033[0m\n",
                 runner->config().name.c_str(), runner->context());
  }
  LineReader lines("> ");
  while (std::optional<std::string> line = lines.Next()) {
    if (line->empty()) continue;
    if (line->front() == '/') {
      if (!Command(*line, chat)) break;
    } else if (Status s = chat.Turn(*line); !s.ok()) {
      if (!isatty(STDIN_FILENO)) return s;  // nobody is there to try again
      ReportError("chat", s);
    }
  }
  return Status();
}

}  // namespace

void AddChat(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* c = app.add_subcommand("chat", "Talk with a model that has a chat template");
  flags->model.AddTo(*c);
  c->add_option("--system,--sys,--system-prompt", flags->system, "The system turn");
  c->add_option("-p,--prompt", flags->prompt, "The first user turn");
  flags->generate.AddTo(*c);
  c->footer(std::string(kHelp) +
            "Each line of standard input is a user turn.\n"
            "Example:\n  sluice pull hf:Qwen/Qwen3-0.6B-GGUF:q8_0\n"
            "  sluice chat qwen3-0.6b --system \"Answer in one sentence.\"");
  c->callback([flags, exit_code] {
    if (Status s = Run(*flags); !s.ok()) *exit_code = ReportError("chat", s);
  });
}

}  // namespace sluice
