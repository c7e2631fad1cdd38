// Keeps memory from being written out or dropped. Used by MappedFile and Arena; any thread.
#ifndef SLUICE_SRC_BASE_MEMORY_LOCK_H_
#define SLUICE_SRC_BASE_MEMORY_LOCK_H_

#include <cstddef>
#include <string>

#include "src/base/status.h"

namespace sluice {

// Locks [data, data + bytes): all of it now, or, with `when_touched`, each page from its first use
// on. The error names `what` and the limit that stands in the way.
Status LockMemory(const void* data, size_t bytes, const std::string& what,
                  bool when_touched = false);

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_MEMORY_LOCK_H_
