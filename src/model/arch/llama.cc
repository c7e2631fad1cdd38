// Llama 1-3, Mistral, Mixtral (Touvron et al. 2023; Jiang et al. 2024): RMS
// norms, rotary positions on adjacent pairs (the converter has permuted q and
// k), grouped-query attention, SwiGLU or a mixture of SwiGLU experts.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->rope.style = RopeStyle::kAdjacent;
  ReadDecoderConfig(r, c);
  ReadExperts(r, c);
}

void Bind(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

}  // namespace

extern const Architecture kLlama{"llama", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
