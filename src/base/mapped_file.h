// A file mapped read-only, with hints to the system and a residency meter.
// With arena.cc and src/machine (cores, NUMA) the only place that talks to the
// operating system about memory. Used by src/file; any thread.
#ifndef SLUICE_SRC_BASE_MAPPED_FILE_H_
#define SLUICE_SRC_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/status.h"

namespace sluice {

// What tells a file, and a state of it, from others without reading it. Times in ns since the
// epoch.
struct FileStamp {
  uint64_t inode = 0;
  uint64_t modified_ns = 0;  // of the content; programs can set it as they like
  uint64_t changed_ns = 0;   // of anything, its name and its times included; nobody can set it
};

// A whole file, mapped shared and read-only; the map lives as long as the
// object. On a file system without mmap the file is read into memory instead.
// Whoever cuts the file short while it is mapped raises SIGBUS in the reader:
// replace model files by rename, never in place.
class MappedFile {
 public:
  // Regular, non-empty files only; the error names the path and the reason.
  static Result<std::unique_ptr<MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  const FileStamp& stamp() const { return stamp_; }  // as it was at Open
  bool Contains(const uint8_t* p) const { return p >= data_ && p < data_ + size_; }

  // Hints for [offset, offset + length), which is clipped to the file.
  void WillNeed(size_t offset, size_t length) const;  // start reading ahead
  void DontNeed(size_t offset,
                size_t length) const;  // leave our page table; the bytes stay readable
  // Whether to map the file 2 MB at a time. `true` also makes reads from disk fetch 2 MB pieces
  // that stay together in the page cache, which is what such mappings need; so say it before the
  // first touch, and not of a file of which only parts will be read. Hints: file systems without
  // large folios (ext4 before Linux 6.16) keep small pages.
  void PreferHugePages(bool on) const;
  // Bytes that are mapped by huge pages now; 0 where the system cannot say.
  uint64_t HugeBytes() const;
  // Keeps the file in RAM until the object dies; reads all of it. The error says what to do.
  Status Lock() const;
  // Bytes of the file now in RAM (mincore), whole pages.
  uint64_t ResidentBytes() const;

 private:
  MappedFile() = default;

  std::string path_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  FileStamp stamp_;
  bool is_map_ = false;  // false: anonymous copy
};

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_MAPPED_FILE_H_
