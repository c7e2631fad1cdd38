// Where the parts of a KV page lie. For the kernels that read pages and the one that writes them.
#ifndef SLUICE_SIMD_KV_PAGE_H_
#define SLUICE_SIMD_KV_PAGE_H_

#include <stddef.h>
#include <stdint.h>

#include "simd/attention.h"

namespace sluice {

constexpr size_t kKvGroup = 32;  // values that share a scale in kQ8

// Byte offsets inside a page, each a multiple of 64; the keys start at 0.
//   keys [key_dim][64], key scales [key_dim/32][64] f16, values [64][value_dim], value scales
//   [value_dim/32][64] f16
// Only kQ8 has scales; they are position-major like the keys so that one load serves a vector of
// positions. kBF16 stores pairs, what one step of a bfloat16 dot product reads:
//   keys [key_dim/2][64][2 dimensions], values [64/2][value_dim][2 positions]
struct KvLayout {
  size_t key_scales, values, value_scales, bytes;

  explicit constexpr KvLayout(const KvShape& s)
      : key_scales(kSpan * s.key_dim * ElementBytes(s.type)),
        values(key_scales + ScaleBytes(s, s.key_dim)),
        value_scales(values + kSpan * s.value_dim * ElementBytes(s.type)),
        bytes(value_scales + ScaleBytes(s, s.value_dim)) {}

  static constexpr size_t ElementBytes(KvType t) {
    return t == KvType::kF32 ? 4 : t == KvType::kQ8 ? 1 : 2;
  }
  static constexpr size_t ScaleBytes(const KvShape& s, size_t dim) {
    return s.type == KvType::kQ8 ? dim / kKvGroup * kSpan * 2 : 0;
  }
};

}  // namespace sluice
#endif  // SLUICE_SIMD_KV_PAGE_H_
