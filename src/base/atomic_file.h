// A file that appears whole or not at all: written under a temporary name in
// the same folder, synced, then renamed. Used by the GGUF writer and the panel
// file; one AtomicFile belongs to one owner, but WriteAt may be called from
// several threads at once for disjoint ranges.
#ifndef SLUICE_SRC_BASE_ATOMIC_FILE_H_
#define SLUICE_SRC_BASE_ATOMIC_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/status.h"

namespace sluice {

class AtomicFile {
 public:
  // Makes `<path>.<process>-<n>.tmp`. The folder must exist; `path` may be a file or a link to one,
  // which is then replaced, but nothing else.
  static Result<std::unique_ptr<AtomicFile>> Create(const std::string& path);
  // Removes temporary files in `folder` that this user's killed processes left: no process has
  // their number any more, nor holds the lock that writers hold, also where numbers mean other
  // processes (containers, hosts that share the folder).
  static void RemoveLeftovers(const std::string& folder);
  ~AtomicFile();  // without Commit: removes the temporary file
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Makes the file this long, zeros, with the disk space claimed where the file
  // system can: a full disk is then an error before the work is done.
  Status Resize(uint64_t bytes);
  Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes);
  // Syncs and renames; afterwards the object only waits to be destroyed.
  Status Commit();

 private:
  AtomicFile() = default;
  Status Error(const char* what) const;

  std::string path_, temporary_;
  int fd_ = -1;
};

// Makes `folder` and its parents (mode 0700 for new ones).
Status MakeFolders(const std::string& folder);

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_ATOMIC_FILE_H_
