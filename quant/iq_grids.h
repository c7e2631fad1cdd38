// The code books of the IQ1, IQ2 and IQ3 formats: small vectors of 4 or 8
// magnitudes that an index in the block selects. Facts of the formats; how they
// are stored is in iq_grids.cc. Built at compile time, read by quant/iq*.cc.
#ifndef SLUICE_QUANT_IQ_GRIDS_H_
#define SLUICE_QUANT_IQ_GRIDS_H_

#include <stddef.h>
#include <stdint.h>

#include <array>
#include <bit>

namespace sluice {

template <size_t kEntries, size_t kValues>
using Grid = std::array<std::array<int8_t, kValues>, kEntries>;

extern const Grid<2048, 8> kGridIQ1;  // -1, 0, 1: IQ1_S and IQ1_M
extern const Grid<256, 8> kGridIQ2_XXS;
extern const Grid<512, 8> kGridIQ2_XS;
extern const Grid<1024, 8> kGridIQ2_S;
extern const Grid<256, 4> kGridIQ3_XXS;
extern const Grid<512, 4> kGridIQ3_S;

// The sign masks of IQ2_XXS, IQ2_XS and IQ3_XXS take 7 bits: the eighth makes their number even.
inline uint32_t EvenSigns(uint32_t bits7) {
  return bits7 | static_cast<uint32_t>(std::popcount(bits7) & 1) << 7;
}

// out[j] = scale * entry[j], negative where bit j of `signs` is set.
template <size_t kValues>
void SignedEntry(float scale, const std::array<int8_t, kValues>& entry, uint32_t signs,
                 float* out) {
  for (size_t j = 0; j < kValues; ++j) {
    const float v = scale * static_cast<float>(entry[j]);
    out[j] = signs >> j & 1 ? -v : v;
  }
}

}  // namespace sluice
#endif  // SLUICE_QUANT_IQ_GRIDS_H_
