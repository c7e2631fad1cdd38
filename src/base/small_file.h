// Files of a line or a page in folders that others can write to: whatever lies there under the
// name, a named pipe for one, neither reading nor writing waits. Used for what is remembered in the
// cache folder; any thread.
#ifndef SLUICE_SRC_BASE_SMALL_FILE_H_
#define SLUICE_SRC_BASE_SMALL_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace sluice {

// The first `most_bytes` of a regular file. kNotFound: there is none; kIo: something else is there.
Result<std::string> ReadSmallFile(const std::string& path, size_t most_bytes);
// Replaces the file, whole or not at all.
Status WriteSmallFile(const std::string& path, std::string_view text);

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_SMALL_FILE_H_
