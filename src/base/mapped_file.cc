#include "src/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "src/base/memory_lock.h"

namespace sluice {
namespace {

size_t PageBytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

Status OsError(const std::string& path, const char* what) {
  const int error = errno;
  const StatusCode code = error == ENOENT || error == ENOTDIR ? StatusCode::kNotFound
                          : error == ENOMEM                   ? StatusCode::kOutOfMemory
                                                              : StatusCode::kIo;
  return Status(code, path + ": " + what + ": " + std::strerror(error));
}

// Closes a descriptor at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  const int fd_;
};

uint64_t Ns(const timespec& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

bool ReadAll(int fd, uint8_t* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = pread(fd, to + done, bytes - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // shorter than fstat said
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

// madvise wants page boundaries; widens to whole pages inside the map.
void Advise(const uint8_t* data, size_t size, size_t offset, size_t length, int advice) {
  if (offset >= size) return;
  const size_t begin = offset & ~(PageBytes() - 1);
  const size_t end = offset + std::min(length, size - offset);
  madvise(const_cast<uint8_t*>(data) + begin, end - begin, advice);  // a hint: failure is harmless
}

// Maps the file at an address that is a multiple of 2 MB: only there can the system map 2 MB of it
// with one entry. Linux does so by itself, for some file systems and since some versions.
void* MapAligned(int fd, size_t size) {
  constexpr size_t kHuge = 2 << 20;
  if (size < kHuge) return mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  void* reserved =
      mmap(nullptr, size + kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  const auto begin = reinterpret_cast<uintptr_t>(reserved);
  const uintptr_t at = (begin + kHuge - 1) / kHuge * kHuge;
  const uintptr_t end = (at + size + PageBytes() - 1) / PageBytes() * PageBytes();
  void* map = mmap(reinterpret_cast<void*>(at), size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
  if (map == MAP_FAILED) {
    const int error = errno;
    munmap(reserved, size + kHuge);
    errno = error;
    return MAP_FAILED;
  }
  // What was reserved on either side goes back.
  if (at > begin) munmap(reserved, at - begin);
  if (begin + size + kHuge > end) munmap(reinterpret_cast<void*>(end), begin + size + kHuge - end);
  return map;
}

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must fail below, not wait for a writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) return OsError(path, "cannot open");
  if (S_ISDIR(info.st_mode)) {
    return Status(StatusCode::kIo, path + ": is a directory, expected a file");
  }
  if (!S_ISREG(info.st_mode)) {
    return Status(StatusCode::kIo, path + ": is not a regular file");
  }
  if (info.st_size == 0) return Status(StatusCode::kCorrupt, path + ": the file is empty");

  std::unique_ptr<MappedFile> mapped(new MappedFile);
  mapped->path_ = path;
  mapped->size_ = static_cast<size_t>(info.st_size);
  mapped->stamp_ = {info.st_ino, Ns(info.st_mtim), Ns(info.st_ctim)};
  void* map = MapAligned(file.get(), mapped->size_);
  mapped->is_map_ = map != MAP_FAILED;
  if (!mapped->is_map_ && errno != ENODEV && errno != EINVAL) return OsError(path, "cannot map");
  if (!mapped->is_map_) {
    map = mmap(nullptr, mapped->size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return OsError(path, "cannot hold in memory");
  }
  mapped->data_ = static_cast<const uint8_t*>(map);
  if (!mapped->is_map_ && !ReadAll(file.get(), static_cast<uint8_t*>(map), mapped->size_)) {
    return OsError(path, "cannot read");
  }
  return mapped;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::WillNeed(size_t offset, size_t length) const {
  if (is_map_) Advise(data_, size_, offset, length, MADV_WILLNEED);
}

void MappedFile::DontNeed(size_t offset, size_t length) const {
  // On an anonymous copy this would zero the bytes.
  if (is_map_) Advise(data_, size_, offset, length, MADV_DONTNEED);
}

void MappedFile::PreferHugePages(bool on) const {
  if (!is_map_) return;
  Advise(data_, size_, 0, size_, on ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  Advise(data_, size_, 0, size_, MADV_DONTNEED);  // small entries made so far would stay small
}

uint64_t MappedFile::HugeBytes() const {
  std::ifstream maps("/proc/self/smaps");
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  uint64_t bytes = 0, kb = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
      ours = from >= begin && from < begin + size_;
    } else if (ours && std::sscanf(line.c_str(), "FilePmdMapped: %" SCNu64, &kb) == 1) {
      bytes += kb << 10;
    }
  }
  return bytes;
}

Status MappedFile::Lock() const { return LockMemory(data_, size_, path_); }

uint64_t MappedFile::ResidentBytes() const {
  const size_t pages = (size_ + PageBytes() - 1) / PageBytes();
  constexpr size_t kStep = 1 << 16;  // 256 MB of file a call: a 64 KB answer
  std::vector<unsigned char> in_core(std::min(pages, kStep));
  uint64_t resident = 0;
  for (size_t first = 0; first < pages; first += kStep) {
    const size_t n = std::min(kStep, pages - first);
    void* start = const_cast<uint8_t*>(data_) + first * PageBytes();
    if (mincore(start, n * PageBytes(), in_core.data()) != 0) continue;
    for (size_t i = 0; i < n; ++i) resident += in_core[i] & 1;
  }
  return std::min<uint64_t>(resident * PageBytes(), size_);
}

}  // namespace sluice
