// The 12 bytes that hold 8 scales and 8 minimums of 6 bits in Q4_K and Q5_K:
//
//   byte 0..3    sc[i] 0..5 | sc[i + 4] 4,5     (bits 0-5 | 6-7)
//   byte 4..7    mn[i] 0..5 | mn[i + 4] 4,5
//   byte 8..11   sc[i + 4] 0..3 | mn[i + 4] 0..3
#ifndef SLUICE_QUANT_K_SCALES_H_
#define SLUICE_QUANT_K_SCALES_H_

#include <stddef.h>
#include <stdint.h>

namespace sluice {

inline void UnpackKScales(const uint8_t p[12], uint8_t sc[8], uint8_t mn[8]) {
  for (size_t i = 0; i < 4; ++i) {
    sc[i] = p[i] & 63;
    mn[i] = p[i + 4] & 63;
    sc[i + 4] = static_cast<uint8_t>((p[i + 8] & 15) | p[i] >> 6 << 4);
    mn[i + 4] = static_cast<uint8_t>(p[i + 8] >> 4 | p[i + 4] >> 6 << 4);
  }
}

inline void PackKScales(const uint8_t sc[8], const uint8_t mn[8], uint8_t p[12]) {
  for (size_t i = 0; i < 4; ++i) {
    p[i] = static_cast<uint8_t>(sc[i] | sc[i + 4] >> 4 << 6);
    p[i + 4] = static_cast<uint8_t>(mn[i] | mn[i + 4] >> 4 << 6);
    p[i + 8] = static_cast<uint8_t>((sc[i + 4] & 15) | mn[i + 4] << 4);
  }
}

}  // namespace sluice
#endif  // SLUICE_QUANT_K_SCALES_H_
