#include "src/base/memory_lock.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace sluice {

Status LockMemory(const void* data, size_t bytes, const std::string& what, bool when_touched) {
  if (bytes == 0 || mlock2(data, bytes, when_touched ? MLOCK_ONFAULT : 0) == 0) return Status();
  const int error = errno;
  std::string message = "--mlock: " + what + ": cannot lock " +
                        std::to_string((bytes + (1 << 20) - 1) >> 20) +
                        " MiB: " + std::strerror(error);
  struct rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    message += "; the limit is " + std::to_string(limit.rlim_cur >> 10) +
               " KiB: raise it with ulimit -l (or LimitMEMLOCK= of the service)";
  }
  return Status(StatusCode::kIo, message);
}

}  // namespace sluice
