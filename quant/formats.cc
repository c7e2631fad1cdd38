// The list of weight formats. To add one: write quant/<name>.cc, add it here.
#include <array>

#include "quant/format.h"

namespace sluice {

extern const Format kF32, kF16, kBF16;
extern const Format kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1;
extern const Format kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K;
extern const Format kIQ1_S, kIQ1_M, kIQ2_XXS, kIQ2_XS, kIQ2_S, kIQ3_XXS, kIQ3_S, kIQ4_NL, kIQ4_XS;
extern const Format kTQ1_0, kTQ2_0, kMXFP4, kNVFP4;

namespace {

constexpr std::array kAll = {
    &kF32,     &kF16,   &kBF16,   &kQ8_0,   &kQ4_0,  &kQ4_1,  &kQ5_0,    &kQ5_1,   &kQ2_K,
    &kQ3_K,    &kQ4_K,  &kQ5_K,   &kQ6_K,   &kIQ1_S, &kIQ1_M, &kIQ2_XXS, &kIQ2_XS, &kIQ2_S,
    &kIQ3_XXS, &kIQ3_S, &kIQ4_NL, &kIQ4_XS, &kTQ1_0, &kTQ2_0, &kMXFP4,   &kNVFP4,
};

// ASCII only: a locale must not decide what a tensor type is called.
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameName(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

}  // namespace

std::span<const Format* const> Formats() { return kAll; }

const Format* FindFormat(uint32_t gguf_type) {
  for (const Format* f : kAll) {
    if (f->gguf_type == gguf_type) return f;
  }
  return nullptr;
}

const Format* FindFormat(std::string_view name) {
  for (const Format* f : kAll) {
    if (SameName(f->name, name)) return f;
  }
  return nullptr;
}

}  // namespace sluice
