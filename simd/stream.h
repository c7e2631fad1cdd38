// Reading memory as fast as one thread can: the kernel of the bandwidth probe.
// It does as little as proves that every byte was read.
#ifndef SLUICE_SIMD_STREAM_H_
#define SLUICE_SIMD_STREAM_H_

#include <stddef.h>
#include <stdint.h>

namespace sluice {

// Sum modulo 2^64 of the little-endian 64-bit words at `data`; the last word is padded with zeros.
// `prefetch`: asks for the lines ahead too, which is faster on some CPUs and slower on others.
uint64_t ReadSum(const void* data, size_t bytes, bool prefetch = false);

// Name of the target that ReadSum runs on: "AVX3_ZEN4". What dispatch really chose, not what it
// should.
const char* StreamTarget();

}  // namespace sluice
#endif  // SLUICE_SIMD_STREAM_H_
