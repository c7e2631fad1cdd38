// One block of anonymous memory with huge-page advice, handed out by bumping an
// offset and freed as a whole. Owns weights in repack mode, KV pages,
// activations. Not thread-safe; allocation happens at load, never per token.
#ifndef SLUICE_SRC_BASE_ARENA_H_
#define SLUICE_SRC_BASE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/status.h"

namespace sluice {

class Arena {
 public:
  Arena() = default;  // empty
  // Reserves `bytes` of zeroed memory; a page costs RAM once it is touched. From 4 MB on it begins
  // at a multiple of 2 MB and asks for pages of that size, unless `huge` is false.
  static Result<Arena> Create(size_t bytes, bool huge = true);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  // The next `bytes`, aligned to `alignment` (a power of two, at most 4096). CHECKs that they fit:
  // sizes are added up before Create.
  uint8_t* Allocate(size_t bytes, size_t alignment = 64);
  template <class T>
  T* Array(size_t n) {
    return reinterpret_cast<T*>(Allocate(n * sizeof(T)));
  }

  // Keeps in RAM what has been touched and what will be; the error says what to do.
  Status Lock(const std::string& what) const;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  size_t used() const { return used_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0, used_ = 0;
  void* map_ = nullptr;  // what munmap takes; data_ is the first aligned address in it
  size_t map_bytes_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_ARENA_H_
