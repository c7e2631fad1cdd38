// What lies under a file: the file system, its free space, and how fast the disk reads.
// For `sluice doctor`; any thread.
#ifndef SLUICE_SRC_MACHINE_DISK_H_
#define SLUICE_SRC_MACHINE_DISK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/machine/system_files.h"

namespace sluice {

// The type of the mount that `path` (absolute) is on, "ext4", from /proc/self/mountinfo; empty when
// that cannot be read.
std::string FileSystemOf(const SystemFiles& files, const std::string& path);

enum class FileSystemKind : uint8_t { kLocal, kNetwork, kFuse, kMemory };
FileSystemKind KindOfFileSystem(const std::string& type);

// `path`, or the first of its parents that exists.
std::string ExistingParent(const std::string& path);
// Bytes an unprivileged user may still write there; nullopt when the system does not say.
std::optional<uint64_t> FreeBytes(const std::string& path);

// MB/s (1e6 bytes) of reading pieces of the file, past the page cache, for at most about `seconds`
// and 256 MB: with O_DIRECT, or, where there is none, after the pieces were dropped from the cache
// (pages that are mapped stay). One piece of 4 MB at a time, as one thread reads a mapped file.
// Error: too small a file, or one that stays in memory.
Result<double> MeasureDiskRead(const std::string& path, double seconds);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_DISK_H_
