// What a request may ask of the sampler: names and defaults of llama.cpp's
// flags. Filled by the command line, checked once before a
// Sampler is made. Plain data; any thread.
#ifndef SLUICE_SRC_ENGINE_SAMPLER_OPTIONS_H_
#define SLUICE_SRC_ENGINE_SAMPLER_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/status.h"

namespace sluice {

// Steps of the chain whose order is free. Logit bias, penalties and DRY always come before them.
enum class SamplerStage { kTopNSigma, kTopK, kTypicalP, kTopP, kMinP, kXtc, kTemperature };

struct SamplerOptions {
  uint64_t seed = 0;  // "-1: a random one" is resolved by the caller

  // <= 0: the most likely token after bias, penalties and DRY; no other stage runs.
  float temp = 0.8f;
  float dynatemp_range = 0.0f;     // 0: off; else temp +- range, by the entropy
  float dynatemp_exponent = 1.0f;  // of the normalised entropy

  int32_t top_k = 40;            // <= 0: off
  float top_p = 0.95f;           // 1: off
  float min_p = 0.05f;           // 0: off
  float typical_p = 1.0f;        // 1: off
  float top_n_sigma = -1.0f;     // <= 0: off
  float xtc_probability = 0.0f;  // 0: off
  float xtc_threshold = 0.1f;    // > 0.5: off

  int32_t repeat_last_n = 64;     // tokens that the three penalties look back; -1: all; 0: off
  float repeat_penalty = 1.0f;    // 1: off
  float presence_penalty = 0.0f;  // 0: off
  float frequency_penalty = 0.0f;

  float dry_multiplier = 0.0f;  // 0: off
  float dry_base = 1.75f;       // < 1: off
  int32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = 64;  // -1: all; 0: off
  // Token sequences that a repetition does not reach across: see DryBreakers (dry_breakers.h).
  std::vector<std::vector<int32_t>> dry_breakers;

  std::vector<std::pair<int32_t, float>> logit_bias;  // {token, added}; -infinity bans

  std::vector<SamplerStage> stages = {
      SamplerStage::kTopNSigma, SamplerStage::kTopK, SamplerStage::kTypicalP,   SamplerStage::kTopP,
      SamplerStage::kMinP,      SamplerStage::kXtc,  SamplerStage::kTemperature};
};

// The texts whose tokens break repetitions unless the request names others.
inline constexpr const char* kDefaultDryBreakers[] = {"\n", ":", "\"", "*"};

// Ok, or which value is out of which range. `vocab`: tokens of the model.
Status CheckSamplerOptions(const SamplerOptions& options, size_t vocab);

// "top_k;typ_p;top_p;min_p;temperature" (llama.cpp's --samplers). "penalties" and "dry" may be
// named first and change nothing.
Result<std::vector<SamplerStage>> ParseSamplerStages(std::string_view text);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_SAMPLER_OPTIONS_H_
