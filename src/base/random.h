// Random numbers as a pure function of (seed, stream, step): no state to carry,
// so a sequence that is preempted, moved to another slot or sampled in another
// batch draws the same numbers, on every machine. Used by the sampler and by
// tests; any thread.
#ifndef SLUICE_SRC_BASE_RANDOM_H_
#define SLUICE_SRC_BASE_RANDOM_H_

#include <array>
#include <cstdint>

namespace sluice {

// Philox4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011): four 32-bit words from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// 64 random bits. Definition: words 0 (low) and 1 (high) of Philox with
// counter {step low, step high, stream low, stream high} and key {seed low, seed high}.
uint64_t RandomBits(uint64_t seed, uint64_t stream, uint64_t step);

// Uniform in [0, 1): the top 53 of RandomBits, times 2^-53.
double RandomUniform(uint64_t seed, uint64_t stream, uint64_t step);

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_RANDOM_H_
