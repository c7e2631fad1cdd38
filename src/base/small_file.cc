#include "src/base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "src/base/atomic_file.h"

namespace sluice {

Result<std::string> ReadSmallFile(const std::string& path, size_t most_bytes) {
  // O_NONBLOCK: opening a named pipe would wait for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const StatusCode code =
        errno == ENOENT || errno == ENOTDIR ? StatusCode::kNotFound : StatusCode::kIo;
    return Status(code, path + ": cannot open: " + std::strerror(errno));
  }
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return Status(StatusCode::kIo, path + ": expected a regular file, found something else");
  }
  std::string text;
  char buffer[4096];
  ssize_t n = 1;
  while (n > 0 && text.size() < most_bytes) {
    do {
      n = read(fd, buffer, std::min(sizeof(buffer), most_bytes - text.size()));
    } while (n < 0 && errno == EINTR);
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
  }
  const int error = errno;
  close(fd);
  if (n < 0) return Status(StatusCode::kIo, path + ": cannot read: " + std::strerror(error));
  return text;
}

Status WriteSmallFile(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  RETURN_IF_ERROR(file->WriteAt(0, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  return file->Commit();
}

}  // namespace sluice
