// StarCoder 2 (Lozhkov et al. 2024): LayerNorm and biases everywhere, one-matrix
// GELU MLP.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->norm = NormKind::kLayer;
  c->gated_mlp = false;
  c->gate = Gate::kGeluTanh;
  ReadDecoderConfig(r, c);
}

void Bind(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

}  // namespace

extern const Architecture kStarCoder2{"starcoder2", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
