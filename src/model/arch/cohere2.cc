// Command R7B (Cohere 2024): LayerNorm without bias, attention and MLP in
// parallel from one norm; three windowed layers with rope, then a full one
// without; logits multiplied by a constant.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->norm = NormKind::kLayer;
  c->parallel_residual = true;
  c->rope.style = RopeStyle::kAdjacent;
  ReadDecoderConfig(r, c);
  c->logit_scale = r.PositiveOr("logit_scale", 1);
  ReadWindow(r, c, [](size_t layer) { return layer % 4 != 3; });
  for (size_t i = 3; i < c->no_rope.size(); i += 4) c->no_rope[i] = 1;
}

void Bind(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {.ffn_norm = nullptr}, w); }

}  // namespace

extern const Architecture kCohere2{"cohere2", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
