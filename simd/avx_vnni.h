// AVX-VNNI: the one instruction of AVX-512 that quantised products need most, for vectors of 256
// bits, on CPUs that have no AVX-512 (Intel's laptops since Alder Lake). Highway has no target for
// it, so the kernels of its AVX2 target ask.
#ifndef SLUICE_SIMD_AVX_VNNI_H_
#define SLUICE_SIMD_AVX_VNNI_H_

namespace sluice {

// Whether this CPU has it.
bool HasAvxVnni();
// Whether the kernels use it: where the CPU has it, unless told otherwise, by tests or by the
// choice of a target. Same bytes either way. Not while kernels run.
bool UsesAvxVnni();
void UseAvxVnni(bool wanted);

}  // namespace sluice
#endif  // SLUICE_SIMD_AVX_VNNI_H_
