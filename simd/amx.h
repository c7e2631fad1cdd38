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

// Rows of a matrix product from which AMX is used. Xeon, GMAC/s of a layer with VNNI and AMX: Q4_0,
// 64 tokens 220 and 224, 512 tokens 195 and 220; Q4_K 216 and 199, 191 and 196.
constexpr size_t kAmxRows = 96;

// The first call asks Linux for the 8 KB of state that tiles add to every thread that uses them.
bool HasAmx();

}  // namespace sluice
#endif  // SLUICE_SIMD_AMX_H_
