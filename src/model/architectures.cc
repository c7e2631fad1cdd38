// The list of architectures. To add one: write arch/<family>.cc, add it here.
#include "src/model/architecture.h"

namespace sluice {

extern const Architecture kLlama, kQwen2, kQwen2Moe, kQwen3, kQwen3Moe, kGemma, kGemma2, kGemma3,
    kPhi2, kPhi3, kGptOss, kDeepSeek2, kGranite, kGraniteMoe, kOlmo2, kOlmoe, kSmolLm3, kGlm4,
    kGlm4Moe, kCohere2, kExaone4, kSeedOss, kStableLm, kStarCoder2, kGpt2, kGptNeoX;

std::span<const Architecture* const> Architectures() {
  static const Architecture* const kAll[] = {
      &kLlama,   &kQwen2,    &kQwen2Moe,   &kQwen3,  &kQwen3Moe,  &kGemma,   &kGemma2,
      &kGemma3,  &kPhi2,     &kPhi3,       &kGptOss, &kDeepSeek2, &kGranite, &kGraniteMoe,
      &kOlmo2,   &kOlmoe,    &kSmolLm3,    &kGlm4,   &kGlm4Moe,   &kCohere2, &kExaone4,
      &kSeedOss, &kStableLm, &kStarCoder2, &kGpt2,   &kGptNeoX,
  };
  return kAll;
}

const Architecture* FindArchitecture(std::string_view name) {
  for (const Architecture* a : Architectures()) {
    if (name == a->name) return a;
  }
  return nullptr;
}

}  // namespace sluice
