// Arithmetic on sizes that came from outside (a file, a request): no result
// rather than a wrapped one. Used by every parser; any thread.
#ifndef SLUICE_SRC_BASE_CHECKED_MATH_H_
#define SLUICE_SRC_BASE_CHECKED_MATH_H_

#include <cstdint>
#include <optional>

namespace sluice {

inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The next multiple of `unit`, a power of two.
inline std::optional<uint64_t> CheckedRoundUp(uint64_t a, uint64_t unit) {
  const std::optional<uint64_t> sum = CheckedAdd(a, unit - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(unit - 1);
}

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_CHECKED_MATH_H_
