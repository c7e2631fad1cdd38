#include "src/base/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <regex>
#include <system_error>

namespace sluice {

namespace {

// The process in "<name>.<process>-<n>.tmp"; 0: not such a name.
pid_t WriterOf(const std::string& name) {
  static const std::regex kName(R"(.+\.([0-9]{1,9})-[0-9]{1,9}\.tmp)");
  std::smatch match;
  return std::regex_match(name, match, kName) ? std::stoi(match[1]) : 0;
}

// A regular file of this user that no writer holds.
bool IsAbandoned(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat info{};
  const bool abandoned = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                         info.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return abandoned;
}

}  // namespace

void AtomicFile::RemoveLeftovers(const std::string& folder) {
  std::error_code none;
  std::filesystem::directory_iterator entry(folder, none);
  for (; !none && entry != std::filesystem::directory_iterator(); entry.increment(none)) {
    const pid_t writer = WriterOf(entry->path().filename().string());
    if (writer == 0 || kill(writer, 0) == 0 || errno != ESRCH) continue;
    if (IsAbandoned(entry->path().string())) unlink(entry->path().c_str());
  }
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::Create(const std::string& path) {
  static std::atomic<int> counter{0};
  std::unique_ptr<AtomicFile> file(new AtomicFile);
  // What a link names is replaced, not the link; and nothing that is no file.
  std::error_code none;
  const std::filesystem::file_status found = std::filesystem::status(path, none);
  file->path_ = path;
  if (std::filesystem::exists(found)) {
    if (!std::filesystem::is_regular_file(found)) {
      return Status(StatusCode::kIo,
                    path + ": expected a file or a new name, found a " +
                        (std::filesystem::is_directory(found)
                             ? "folder"
                             : "device, pipe or socket, which cannot be replaced"));
    }
    const std::filesystem::path real = std::filesystem::canonical(path, none);
    if (!none) file->path_ = real.string();
  }
  file->temporary_ =
      file->path_ + "." + std::to_string(getpid()) + "-" + std::to_string(counter++) + ".tmp";
  // O_TRUNC, not O_EXCL: a leftover of a crashed process with this id may go.
  file->fd_ =
      open(file->temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file->fd_ < 0) return file->Error("cannot create");
  (void)flock(file->fd_, LOCK_EX | LOCK_NB);  // for RemoveLeftovers; not every file system can
  return file;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

Status AtomicFile::Error(const char* what) const {
  return Status(StatusCode::kIo, path_ + ": " + what + ": " + std::strerror(errno));
}

Status AtomicFile::Resize(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(INT64_MAX)) errno = EFBIG;
  if (bytes > static_cast<uint64_t>(INT64_MAX) || ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
    return Error("cannot resize");
  }
  const int error = bytes == 0 ? 0 : posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
  if (error == 0 || error == EOPNOTSUPP || error == EINVAL) return Status();
  errno = error;
  return Error("cannot get the disk space");
}

Status AtomicFile::WriteAt(uint64_t offset, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error("cannot write");
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return Status();
}

Status AtomicFile::Commit() {
  if (fsync(fd_) != 0) return Error("cannot sync");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return Error("cannot rename into place");
  close(fd_);
  fd_ = -1;
  // The new name survives a power cut only once its folder is synced; a file
  // system that cannot sync folders is no reason to fail.
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const int dir = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    fsync(dir);
    close(dir);
  }
  return Status();
}

Status MakeFolders(const std::string& folder) {
  for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const std::string prefix = folder.substr(0, end);
    if (mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) {
      // An unwritable parent that exists answers EACCES or EROFS before EEXIST on some systems.
      struct stat info{};
      const int error = errno;
      if (stat(prefix.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
        return Status(StatusCode::kIo,
                      prefix + ": cannot make this folder: " + std::strerror(error));
      }
    }
    if (end == std::string::npos) return Status();
  }
}

}  // namespace sluice
