#include "src/base/arena.h"

#include <sys/mman.h>

#include <string>
#include <utility>

#include "src/base/check.h"
#include "src/base/memory_lock.h"

namespace sluice {

Result<Arena> Arena::Create(size_t bytes, bool huge) {
  constexpr size_t kHuge = 2 << 20;
  Arena arena;
  if (bytes == 0) return arena;
  // Small arenas stay on small pages.
  const bool aligned = bytes >= 2 * kHuge;
  const size_t map_bytes = aligned ? bytes + kHuge : bytes;
  void* p = mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED || map_bytes < bytes) {
    return Status(StatusCode::kOutOfMemory,
                  "cannot reserve " + std::to_string(bytes >> 20) + " MiB of memory");
  }
  arena.map_ = p;
  arena.map_bytes_ = map_bytes;
  arena.data_ = static_cast<uint8_t*>(p);
  if (aligned) {
    arena.data_ += (kHuge - reinterpret_cast<uintptr_t>(p) % kHuge) % kHuge;
    // Fewer TLB misses on long streams; a hint, so failure is fine.
    madvise(arena.data_, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
  arena.size_ = bytes;
  return arena;
}

Arena::~Arena() {
  if (map_) munmap(map_, map_bytes_);
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this != &other) {
    if (map_) munmap(map_, map_bytes_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    used_ = std::exchange(other.used_, 0);
    map_ = std::exchange(other.map_, nullptr);
    map_bytes_ = std::exchange(other.map_bytes_, 0);
  }
  return *this;
}

Status Arena::Lock(const std::string& what) const { return LockMemory(data_, size_, what, true); }

uint8_t* Arena::Allocate(size_t bytes, size_t alignment) {
  const size_t begin = (used_ + alignment - 1) & ~(alignment - 1);
  CHECK(begin <= size_ && bytes <= size_ - begin);
  used_ = begin + bytes;
  return data_ + begin;
}

}  // namespace sluice
