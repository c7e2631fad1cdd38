// Whether this process may use AMX, the matrix registers of Intel's servers (Sapphire Rapids and
// later): 8 tiles of 16 rows x 64 bytes, and 16 x 16 x 64 products of bytes in one instruction.
#ifndef SLUICE_SIMD_AMX_H_
#define SLUICE_SIMD_AMX_H_

#include <stddef.h>

#include "hwy/detect_compiler_arch.h"

#undef SLUICE_HAVE_AMX
#if HWY_ARCH_X86_64 && defined(__linux__)
#define SLUICE_HAVE_AMX 1
#else
#define SLUICE_HAVE_AMX 0
#endif

namespace sluice {

// Rows of a matrix product from which AMX is used. 1B on the Xeon, two threads, tok/s of prefill
// with VNNI and with AMX: Q4_0 of 56 tokens 410 and 392, of 64 419 and 464, of 80 431 and 505;
// Q4_K_M 401 and 362, 417 and 419, 399 and 406; Q6_K 283 and 237, 299 and 290, 312 and 315.
constexpr size_t kAmxRows = 64;

// The first call asks Linux for the 8 KB of state that tiles add to every thread that uses them.
bool HasAmx();

}  // namespace sluice
#endif  // SLUICE_SIMD_AMX_H_
