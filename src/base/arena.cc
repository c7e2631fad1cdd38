#include "src/base/arena.h"

#include <sys/mman.h>

#include <string>
#include <utility>

#include "src/base/check.h"

namespace sluice {

Result<Arena> Arena::Create(size_t bytes) {
  Arena arena;
  if (bytes == 0) return arena;
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    return Status(StatusCode::kOutOfMemory,
                  "cannot reserve " + std::to_string(bytes >> 20) + " MiB of memory");
  }
  // Fewer TLB misses on long streams; a hint, so failure is fine. Small arenas stay on small pages.
  if (bytes >= (4u << 20)) madvise(p, bytes, MADV_HUGEPAGE);
  arena.data_ = static_cast<uint8_t*>(p);
  arena.size_ = bytes;
  return arena;
}

Arena::~Arena() {
  if (data_) munmap(data_, size_);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      used_(std::exchange(other.used_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this != &other) {
    if (data_) munmap(data_, size_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    used_ = std::exchange(other.used_, 0);
  }
  return *this;
}

uint8_t* Arena::Allocate(size_t bytes, size_t alignment) {
  const size_t begin = (used_ + alignment - 1) & ~(alignment - 1);
  CHECK(begin <= size_ && bytes <= size_ - begin);
  used_ = begin + bytes;
  return data_ + begin;
}

}  // namespace sluice
