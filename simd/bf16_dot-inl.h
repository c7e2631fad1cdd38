// Whether pairs of bfloat16 are worth their instruction on this target. On Intel (Sapphire Rapids
// and later) it is slower than two float FMAs: attention in cache 44 GMAC/s, with floats 62. Its
// AMX is not (attention_amx-inl.h).
#if defined(SLUICE_SIMD_BF16_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_BF16_DOT_INL_H_
#undef SLUICE_SIMD_BF16_DOT_INL_H_
#else
#define SLUICE_SIMD_BF16_DOT_INL_H_
#endif

#include "hwy/highway.h"

#undef SLUICE_FAST_DOT_BF16
#define SLUICE_FAST_DOT_BF16 (HWY_NATIVE_DOT_BF16 && HWY_TARGET != HWY_AVX3_SPR)

#endif
