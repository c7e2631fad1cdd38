// The tile registers of CPUs with AMX (amx.h): their shapes, loads, stores and products. Included
// by the kernels that use them: dot_amx-inl.h (bytes) and float_amx-inl.h (bfloat16).
//
// The instructions are written in assembly: no target of Highway enables them, and the compilers
// need not know the registers, which nothing else uses.
#if defined(SLUICE_SIMD_AMX_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SIMD_AMX_TILES_INL_H_
#undef SLUICE_SIMD_AMX_TILES_INL_H_
#else
#define SLUICE_SIMD_AMX_TILES_INL_H_
#endif

#include <stddef.h>
#include <stdint.h>

#include "hwy/highway.h"
#include "simd/amx.h"

// Every CPU with AMX has AVX512-BF16; the target below is left to VNNI, to compare with.
#undef SLUICE_AMX_TILES
#define SLUICE_AMX_TILES (SLUICE_HAVE_AMX && HWY_TARGET <= HWY_AVX3_ZEN4)

#if SLUICE_AMX_TILES
HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace HWY_NAMESPACE {

// Rows and bytes of a row of each register, as the instruction reads them.
struct alignas(64) AmxShape {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// The registers have a shape while it lives. Released at the end, or every switch of threads would
// save 8 KB.
class AmxTiles {
 public:
  AmxTiles() = default;
  explicit AmxTiles(const AmxShape& shape) { Shape(shape); }
  ~AmxTiles() { asm volatile("tilerelease"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  void Shape(const AmxShape& shape) { asm volatile("ldtilecfg %0" ::"m"(shape)); }
};

template <int kTile>
HWY_INLINE void LoadTile(const void* p, size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
HWY_INLINE void StoreTile(void* p, size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
HWY_INLINE void ZeroTile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
// sums += a x b: signed bytes to int32, pairs of bfloat16 to float.
template <int kSums, int kA, int kB>
HWY_INLINE void MultiplyBytes() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
}
template <int kSums, int kA, int kB>
HWY_INLINE void MultiplyBf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_AMX_TILES
#endif
