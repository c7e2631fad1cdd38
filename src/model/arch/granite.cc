// Granite 3 (IBM 2024): Llama's shape with four multipliers, on the embedding,
// both residual branches, the scores and the logits; the MoE renormalises.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->rope.style = RopeStyle::kAdjacent;
  ReadDecoderConfig(r, c);
  ReadExperts(r, c);
  c->embedding_scale = r.PositiveOr("embedding_scale", 1);
  c->residual_scale = r.PositiveOr("residual_scale", 1);
  c->attention_scale = r.PositiveOr("attention.scale", c->attention_scale);
  c->logit_scale = 1 / r.PositiveOr("logit_scale", 1);
}

void Bind(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

}  // namespace

extern const Architecture kGranite{"granite", ReadConfig, Bind, DecoderForward};
extern const Architecture kGraniteMoe{"granitemoe", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
