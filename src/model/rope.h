// Rotary position embedding: the angle of each pair of a head at a position.
// Plain, linear and YaRN scaling (Peng et al. 2023), Llama 3 and LongRoPE factor
// tensors. Frequencies follow the reference implementations in float32.
#ifndef SLUICE_SRC_MODEL_ROPE_H_
#define SLUICE_SRC_MODEL_ROPE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/model/config.h"

namespace sluice {

// Frequencies of one kind of layer: [dims / 2] radians per position. `factors` (or null) divide
// them. `windowed`: a sliding-window layer (its own base, scaling only where the config says so).
std::vector<float> RopeFrequencies(const RopeConfig& rope, bool windowed, const float* factors);

// cos and sin [frequencies.size()] at one position, times the attention factor.
void RopeAngles(const std::vector<float>& frequencies, int32_t position, float attention_factor,
                float* cos, float* sin);

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_ROPE_H_
