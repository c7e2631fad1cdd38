#include "cli/command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>
#include <sstream>

#include "cli/default_model.h"
#include "cli/interrupt.h"
#include "cli/model_path.h"
#include "cli/progress.h"
#include "cli/words.h"
#include "cli/wrap.h"

namespace sluice {

void Say(const std::string& command, const std::string& text) {
  const std::string line = "sluice" + (command.empty() ? "" : " " + command) + ": " + text;
  const size_t columns = ColumnsOf(stderr, 0);
  std::fprintf(stderr, "%s\n", columns > 0 ? Wrapped(line, 2, columns).c_str() : line.c_str());
}

int ReportError(const std::string& command, const Status& status) {
  Say(command, status.message());
  if (status.code() == StatusCode::kCancelled) return kExitInterrupted;
  const bool usage =
      status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kTooLong;
  return usage ? kExitUsage : kExitFailure;
}

CLI::Option* AddModel(CLI::App& command, std::string* model, const char* help) {
  return command.add_option("MODEL,-m,--model", *model, help)->type_name("MODEL");
}

void ModelFlags::AddTo(CLI::App& command) {
  AddModel(command, &model);
  command.add_option("-c,--ctx-size", context, "Positions the context holds; 0: as trained")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str();
  command
      .add_option("-b,--batch-size,--max-num-batched-tokens", chunk,
                  "Most tokens of one pass (prefill chunk)")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  command
      .add_option("-t,--threads", threads,
                  "Decode threads; 0: what measured best, at most one per allowed core")
      ->check(CLI::Range(0, 1024));
  command.add_option("--tb,--threads-batch", threads_batch, "Prefill threads; 0: as --threads")
      ->check(CLI::Range(0, 1024));
  command
      .add_option(
          "--weights", weights,
          "panels (a file in the cache, written once), repack (in memory), gguf (in place); auto: "
          "panels, or repack when the cache cannot be written")
      ->type_name("MODE")
      ->capture_default_str();
  command
      .add_option("--huge-pages", huge_pages,
                  "Pages of 2 MiB for the weights: on (at the cost of a copy where the file system "
                  "has none), off; auto: where they cost nothing and are no slower, and a copy "
                  "where a virtual machine holds the file in slow memory")
      ->type_name("MODE")
      ->capture_default_str();
  command
      .add_option("--numa", numa,
                  "On machines with several memory nodes: auto (each thread's weights on its own "
                  "node), interleave, or off")
      ->type_name("MODE")
      ->capture_default_str();
  command.add_flag("--mlock", mlock, "Keep weights, keys and values in RAM");
  kv_option_ =
      command
          .add_option("--kv-type,--cache-type-k,--ctk", kv_type,
                      "Keys and values in the cache: f32, f16, bf16, or q8 (also q8_0); auto: bf16 "
                      "on CPUs that multiply it for the model's heads (not with --portable), "
                      "else f16")
          ->type_name("TYPE")
          ->capture_default_str();
  command
      .add_option("--cache-type-v,--ctv", value_type,
                  "The same as --kv-type: both have one type here")
      ->type_name("TYPE");
  command
      .add_option(
          "--activations", activations,
          "int8 (full speed; bfloat16 with BF16 weights, and F16 with AMX, on CPUs that "
          "multiply it, not with --portable), or f32: exact products, slow, to judge a model alone")
      ->type_name("TYPE")
      ->capture_default_str();
  command.add_flag("--portable", portable,
                   "The same bytes on every CPU: no products that only some CPUs have");
  command.add_flag("--relaxed", relaxed,
                   "May use libraries whose results depend on the batch (oneDNN); bytes are then "
                   "not the same from run to run of another shape");
  command
      .add_option("--ngl,--n-gpu-layers,--gpu-layers", gpu_layers,
                  "Accepted and ignored: sluice runs on the CPU")
      ->type_name("N");
  const char* ignored = "Accepted and ignored";
  command.add_flag("--fa,--flash-attn", flash_attention, ignored);
  command.add_flag("--no-warmup", no_warmup, ignored);
  command.add_flag("--no-mmap", no_mmap, ignored);
  command.add_flag("--no-cnv,--no-conversation", no_conversation, ignored);
}

Result<std::optional<KvType>> ModelFlags::KeyAndValueType() const {
  if (value_type.empty()) return ParseKvType(kv_type);
  ASSIGN_OR_RETURN(const std::optional<KvType> value, ParseKvType(value_type));
  if (kv_option_ == nullptr || kv_option_->count() == 0) return value;
  ASSIGN_OR_RETURN(const std::optional<KvType> key, ParseKvType(kv_type));
  if (key == value) return key;
  return Status(
      StatusCode::kInvalidArgument,
      "-ctk, -ctv: keys and values share one type here; expected the same of both, found " +
          kv_type + " and " + value_type);
}

void ModelFlags::ReportIgnored(const std::string& command) const {
  const auto say = [&](bool given, const char* what) {
    if (given) Say(command, what);
  };
  say(!gpu_layers.empty() && gpu_layers != "0", "-ngl is ignored, sluice runs on the CPU");
  say(!flash_attention.empty(), "-fa is ignored, attention has one form here");
  say(no_warmup, "--no-warmup is ignored, nothing is warmed up");
  say(no_mmap, "--no-mmap is ignored; --weights repack holds the weights in memory");
  say(no_conversation, "-no-cnv is ignored; run continues a text, chat is the conversation");
}

Result<RunnerOptions> ModelFlags::Options() const {
  RunnerOptions o;
  ASSIGN_OR_RETURN(o.weights, ParseLoadMode(weights));
  ASSIGN_OR_RETURN(o.placement.huge_pages, ParseHugePages(huge_pages));
  ASSIGN_OR_RETURN(o.kv_type, KeyAndValueType());
  ASSIGN_OR_RETURN(o.placement.numa, ParseNumaMode(numa));
  o.placement.lock = mlock;
  ASSIGN_OR_RETURN(o.activations, ParseActivations(activations));
  if (portable && relaxed) {
    return Status(StatusCode::kInvalidArgument,
                  "--relaxed, --portable: expected one of them, found both; --portable keeps the "
                  "bytes, --relaxed gives them up");
  }
  o.portable = portable;
  o.relaxed = relaxed;
  o.context = context;
  o.chunk = chunk;
  o.threads = threads;
  o.threads_batch = threads_batch;
  return o;
}

Result<std::string> FindOrOffer(const std::string& name) {
  Result<std::string> found = FindModel(name);
  if (found.ok() || !name.empty() || found.status().code() != StatusCode::kNotFound ||
      !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
    return found;
  }
  std::fprintf(stderr, "The default model %s is not here. Download it (%s)?\n%s\n[Y/n] ",
               kDefaultModelName, HumanBytes(kDefaultModelBytes).c_str(), kDefaultModelTerms);
  std::string answer;
  if (!std::getline(std::cin, answer) ||
      (!answer.empty() && answer[0] != 'y' && answer[0] != 'Y')) {
    return found;
  }
  Progress bar("downloading");
  return PullDefaultModel([&](uint64_t done, uint64_t total) { bar.Update(done, total); });
}

void ReportNotes(const std::string& command, const std::string& notes) {
  std::istringstream lines(notes);
  for (std::string line; std::getline(lines, line);) {
    Say(command, line);
  }
}

Result<std::unique_ptr<ModelRunner>> LoadRunner(const std::string& command,
                                                const ModelFlags& flags) {
  ASSIGN_OR_RETURN(RunnerOptions options, flags.Options());
  options.warn = [command](const std::string& line) { Say(command, line); };
  ASSIGN_OR_RETURN(const std::string path, FindOrOffer(flags.model));
  flags.ReportIgnored(command);
  std::optional<LoadWatch> watch(std::in_place);
  Result<std::unique_ptr<ModelRunner>> runner =
      ModelRunner::Create(path, options, watch->progress());
  if (runner.ok() && watch->interrupted()) {
    return Status(StatusCode::kCancelled, path + ": interrupted while it was loaded");
  }
  watch.reset();
  if (runner.ok()) ReportNotes(command, (*runner)->load_note());
  return runner;
}

Result<std::string> ReadAll(const std::string& path) {
  const bool standard = path == "-";
  const int fd = standard ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  char buffer[1 << 16];
  ssize_t n = fd < 0 ? -1 : 1;
  while (n > 0 || (n < 0 && fd >= 0 && errno == EINTR)) {
    n = read(fd, buffer, sizeof(buffer));
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
  }
  const int error = errno;
  if (fd >= 0 && !standard) close(fd);
  if (n < 0) {
    return Status(StatusCode::kIo,
                  (standard ? "standard input" : path) + ": cannot read: " + std::strerror(error));
  }
  return text;
}

}  // namespace sluice
