// Hints to the caches that kernels and their callers share.
#ifndef SLUICE_SIMD_PREFETCH_H_
#define SLUICE_SIMD_PREFETCH_H_

#include <stddef.h>

namespace sluice {

// Asks for the cache lines of p[0, bytes), which are going to be written: for the right to write
// them too, which another core may have. The stores would ask for them by themselves, but few at a
// time while later ones wait.
inline void PrefetchToWrite(const void* p, size_t bytes) {
  constexpr size_t kLine = 64;
  const char* const first = static_cast<const char*>(p);
  for (size_t at = 0; at < bytes; at += kLine) {
#if defined(__x86_64__)
    // Every CPU with 64 bits takes it; the builtin is this only where the target is said to have
    // it.
    asm volatile("prefetchw %0" ::"m"(first[at]));
#else
    __builtin_prefetch(first + at, 1);
#endif
  }
}

}  // namespace sluice
#endif  // SLUICE_SIMD_PREFETCH_H_
