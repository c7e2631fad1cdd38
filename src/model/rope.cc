#include "src/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice {

namespace {

// The pair index at which `rotations` full turns fit in the original context (YaRN, equation 17).
double CorrectionDim(const RopeConfig& rope, double base, double rotations) {
  const double context = static_cast<double>(rope.original_context);
  return static_cast<double>(rope.dims) * std::log(context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(base));
}

// YaRN: high frequencies keep their value, low ones are divided by the factor, a ramp lies between.
void ApplyYarn(const RopeConfig& rope, double base, std::vector<float>& freq) {
  double low = CorrectionDim(rope, base, rope.beta_fast);
  double high = CorrectionDim(rope, base, rope.beta_slow);
  if (rope.truncate_ramp) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.dims) - 1);
  if (low == high) high += 0.001;  // as the reference: no division by zero
  for (size_t i = 0; i < freq.size(); ++i) {
    const double t = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const float keep = static_cast<float>(1 - t);
    freq[i] = freq[i] / rope.factor * (1 - keep) + freq[i] * keep;
  }
}

}  // namespace

std::vector<float> RopeFrequencies(const RopeConfig& rope, bool windowed, const float* factors) {
  const float base = windowed && rope.base_window > 0 ? rope.base_window : rope.base;
  std::vector<float> freq(rope.dims / 2);
  for (size_t i = 0; i < freq.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rope.dims);
    freq[i] = 1.0f / static_cast<float>(std::pow(static_cast<double>(base), exponent));
    if (factors) freq[i] /= factors[i];
  }
  if (windowed && !rope.scale_window) return freq;
  if (rope.scaling == RopeScaling::kLinear) {
    for (float& f : freq) f /= rope.factor;
  } else if (rope.scaling == RopeScaling::kYarn) {
    ApplyYarn(rope, base, freq);
  }
  return freq;
}

void RopeAngles(const std::vector<float>& frequencies, int32_t position, float attention_factor,
                float* cos, float* sin) {
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float angle =
        static_cast<float>(position) * frequencies[i];  // float32, as the references
    cos[i] = static_cast<float>(std::cos(static_cast<double>(angle))) * attention_factor;
    sin[i] = static_cast<float>(std::sin(static_cast<double>(angle))) * attention_factor;
  }
}

}  // namespace sluice
