// Qwen 2 and 2.5 (Yang et al. 2024): Llama's shape with biases on q, k, v; the
// MoE adds one shared expert behind a sigmoid gate and keeps the soft-max
// weights of the chosen experts as they are.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  ReadDecoderConfig(r, c);
  ReadExperts(r, c);
  c->moe.renormalise = false;
}

void Bind(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

}  // namespace

extern const Architecture kQwen2{"qwen2", ReadConfig, Bind, DecoderForward};
extern const Architecture kQwen2Moe{"qwen2moe", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
