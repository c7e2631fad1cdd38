// The sidecar of a GGUF: its matrices in panel form, converted once, then mapped
// read-only and shared by all processes. It lies in the cache folder under a
// name made of which file the GGUF is, the time of its last change and samples of its
// content, so that no other model finds it; one that was changed or renamed in place
// has it written again. Made and read by src/model/weight_store.
#ifndef SLUICE_SRC_FILE_PANEL_FILE_H_
#define SLUICE_SRC_FILE_PANEL_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/mapped_file.h"
#include "src/base/status.h"
#include "src/file/gguf.h"

namespace sluice {

// Raised with every change of quant/panels.h or of this file's layout: older sidecars are then not
// found. 2: the layout of 1, written in stretches that the page cache holds in 2 MB pages. 3: BF16
// in pairs of k.
inline constexpr uint32_t kPanelLayoutVersion = 3;

class PanelFile {
 public:
  // Calls the function for each of 0..n-1, in any order, on any threads, and returns when all are
  // done.
  using ParallelFor = std::function<void(size_t n, const std::function<void(size_t)>&)>;
  // Bytes written so far, of all, first 0 before the file exists; false: give up, with kCancelled.
  // Called from the threads of ParallelFor.
  using Progress = std::function<bool(uint64_t done, uint64_t total)>;

  // Where the sidecar of `gguf` belongs.
  static Result<std::string> PathOf(const Gguf& gguf);

  // kNotFound: there is none; kCorrupt: there is one that contradicts itself or `gguf`, or was
  // made before `gguf` was last touched (write it again).
  static Result<std::unique_ptr<PanelFile>> Open(const Gguf& gguf);

  // Converts `tensors` (those without a panel form are left out) and puts the file into place. On
  // any failure, a full or read-only disk for one, nothing is left behind.
  static Status Write(const Gguf& gguf, std::span<const GgufTensor* const> tensors,
                      const ParallelFor& parallel_for, const Progress& progress);

  // The panels of a tensor, 4096-byte aligned, in the order of MakePanels; null: not in this file.
  const uint8_t* Find(std::string_view tensor) const;

  // Compares all data with its checksums, kCorrupt if they differ; reads the whole file. Open
  // checks the directory only.
  Status Verify(const ParallelFor& parallel_for) const;

  // The same, unless it was done since the machine started: what was read then is in memory or was
  // written by us. Remembered in a file of a line beside this one.
  Status VerifyOncePerBoot(const ParallelFor& parallel_for) const;

  const std::string& path() const { return file_->path(); }
  uint64_t bytes() const { return file_->bytes().size(); }
  uint64_t ResidentBytes() const { return file_->ResidentBytes(); }
  // The map, for hints on how to hold it in memory.
  const MappedFile& file() const { return *file_; }

 private:
  struct Entry {
    std::string_view name;  // in the map
    uint64_t offset = 0, bytes = 0, panel_bytes = 0;
    uint64_t hash = 0;
  };
  Status ReadDirectory(const Gguf& gguf, std::span<const uint8_t> directory, uint64_t entries);

  std::unique_ptr<MappedFile> file_;
  std::vector<Entry> entries_;  // sorted by name
};

}  // namespace sluice
#endif  // SLUICE_SRC_FILE_PANEL_FILE_H_
