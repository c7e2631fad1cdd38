// GPT-2 (Radford et al. 2019): learned positions, fused qkv, LayerNorm with
// bias, one-matrix GELU MLP.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->norm = NormKind::kLayer;
  c->gated_mlp = false;
  c->gate = Gate::kGeluTanh;
  c->rope.style = RopeStyle::kNone;
  ReadDecoderConfig(r, c);
}

void Bind(Binder& b, const Config& c, Weights* w) {
  BindDecoder(b, c, {}, w);
  w->position_embedding = b.Table("position_embd", c.context, c.dim);
}

}  // namespace

extern const Architecture kGpt2{"gpt2", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
