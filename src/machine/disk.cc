#include "src/machine/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>
#include <vector>

namespace sluice {
namespace {

constexpr size_t kPiece = 4 << 20;
constexpr size_t kMostPieces = 64, kLeastPieces = 2;

double Seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// mountinfo writes blanks and backslashes as \040 and \134.
std::string Unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool IsBelow(const std::string& path, const std::string& mount) {
  if (mount == "/") return true;
  return path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/');
}

// Reads one piece; false at an error or the end.
bool ReadPiece(int fd, uint8_t* to, off_t at) {
  for (size_t done = 0; done < kPiece;) {
    const ssize_t n = pread(fd, to + done, kPiece - done, at + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

// A descriptor that reads past the cache, whether by itself or because pieces are dropped first.
struct Source {
  int fd = -1;
  bool direct = false;
  ~Source() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

std::string FileSystemOf(const SystemFiles& files, const std::string& path) {
  const Result<std::string> text = files.Text("/proc/self/mountinfo");
  if (!text.ok()) return "";
  // Of mounts at the same place the last hides the others.
  std::string type, mount;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    const std::vector<std::string> words(std::istream_iterator<std::string>(left), {});
    std::string here;
    if (words.size() < 5 || !(right >> here)) continue;
    const std::string at = Unescaped(words[4]);
    if (!IsBelow(path, at) || at.size() < mount.size()) continue;
    mount = at;
    type = here;
  }
  return type;
}

FileSystemKind KindOfFileSystem(const std::string& type) {
  constexpr const char* kNetwork[] = {"nfs",    "nfs4", "cifs",      "smb3",   "smbfs",
                                      "9p",     "ceph", "glusterfs", "lustre", "afs",
                                      "beegfs", "gpfs", "pvfs2",     "ocfs2",  "davfs"};
  if (std::find(std::begin(kNetwork), std::end(kNetwork), type) != std::end(kNetwork)) {
    return FileSystemKind::kNetwork;
  }
  // What these reach is mostly elsewhere.
  for (const char* remote :
       {"fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.gluster"}) {
    if (type.starts_with(remote)) return FileSystemKind::kNetwork;
  }
  if (type == "tmpfs" || type == "ramfs") return FileSystemKind::kMemory;
  return type.starts_with("fuse") ? FileSystemKind::kFuse : FileSystemKind::kLocal;
}

std::string ExistingParent(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path at = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::exists(at, ignored) && at.has_relative_path()) at = at.parent_path();
  const std::filesystem::path real = std::filesystem::canonical(at, ignored);
  return real.empty() ? at.string() : real.string();
}

std::optional<uint64_t> FreeBytes(const std::string& path) {
  struct statvfs info{};
  if (statvfs(path.c_str(), &info) != 0) return std::nullopt;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

Result<double> MeasureDiskRead(const std::string& path, double seconds) {
  Source source;
  source.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT);
  source.direct = source.fd >= 0;
  if (!source.direct) source.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info{};
  if (source.fd < 0 || fstat(source.fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return Status(StatusCode::kIo, path + ": cannot open a regular file");
  }
  const size_t pieces = static_cast<size_t>(info.st_size) / kPiece;
  if (pieces < kLeastPieces) {
    return Status(StatusCode::kUnsupported, path +
                                                ": expected 8 MiB at least to time a read, found " +
                                                std::to_string(info.st_size) + " bytes");
  }
  void* const memory = std::aligned_alloc(4096, kPiece);
  if (memory == nullptr) return Status(StatusCode::kOutOfMemory, "4 MiB for reading a file");
  const std::unique_ptr<void, decltype(&std::free)> owner(memory, &std::free);
  // Spread over the file: what was written last may still be in the disk's own cache.
  const size_t count = std::min(pieces, kMostPieces);
  if (!source.direct) {
    for (size_t i = 0; i < count; ++i) {
      posix_fadvise(source.fd, static_cast<off_t>(i * pieces / count * kPiece), kPiece,
                    POSIX_FADV_DONTNEED);
    }
  }
  const double start = Seconds();
  size_t done = 0;
  double took = 0;
  for (; done < count && (done == 0 || took < seconds); ++done) {
    const auto at = static_cast<off_t>(done * pieces / count * kPiece);
    if (!ReadPiece(source.fd, static_cast<uint8_t*>(memory), at)) {
      return Status(StatusCode::kIo, path + ": cannot read: " + std::strerror(errno));
    }
    took = Seconds() - start;
  }
  return static_cast<double>(done * kPiece) * 1e-6 / std::max(took, 1e-9);
}

}  // namespace sluice
