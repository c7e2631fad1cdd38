// The 16-entry value tables of the non-linear 4-bit formats: facts of the
// formats, read by their scalar code and, through a table look-up, their kernels.
#ifndef SLUICE_QUANT_VALUES16_H_
#define SLUICE_QUANT_VALUES16_H_

#include <stdint.h>

namespace sluice {

// IQ4_NL and IQ4_XS. Zero point of their codes: 128.
inline constexpr int8_t kIQ4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

// e2m1, doubled to be whole (MXFP4, NVFP4); index 8, minus zero, is 0. Zero point of the codes: 12.
inline constexpr int8_t kE2M1Doubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace sluice
#endif  // SLUICE_QUANT_VALUES16_H_
